// SPDX-License-Identifier: Apache-2.0
// The source and the instructions of a function, if the page has them (src/output/annotate.c): each row with its share of the function's
// total. They are of the whole profile, whatever the filters.
'use strict';

const CODE_TABS = ['source', 'instructions'];
const SOURCE_ROWS = ['file', 'line', 'line gap', 'no source'];

class Code {
	// listener: { changed(), left(): it had the focus, and was closed }
	constructor(listener) {
		this.listener = listener;
		this.tab = ''; // '': closed
		this.before = 'source';
		this.rows = $('code-rows');
		for (const tab of CODE_TABS)
			$(`tab-${tab}`).addEventListener('click', () => this.choose(tab));
		$('code-tabs').addEventListener('keydown', event => {
			if (!['ArrowLeft', 'ArrowRight'].includes(event.key))
				return;
			this.choose(CODE_TABS[1 - CODE_TABS.indexOf(this.tab)]);
			$(`tab-${this.tab}`).focus();
			event.preventDefault();
		});
		$('code').addEventListener('keydown', event => {
			if (event.key !== 'Escape')
				return;
			this.toggle();
			event.stopPropagation();
		});
		$('code-close').addEventListener('click', () => this.toggle());
		$('details-code').addEventListener('click', () => this.toggle());
	}

	setProfile(profile) {
		this.profile = profile;
		this.frame = -1;
		this.shown = null; // the frame whose rows are in the page
	}

	restore(tab) {
		this.tab = CODE_TABS.includes(tab) ? tab : '';
		this.shown = null;
		this.draw();
	}

	choose(tab) {
		this.restore(tab);
		this.listener.changed();
	}

	// Opens and closes it. The keyboard's user reads on in the rows.
	toggle() {
		const hadFocus = $('code').contains(document.activeElement);

		this.before = this.tab || this.before;
		this.choose(this.tab ? '' : this.before);
		if (this.tab) {
			this.rows.focus({ preventScroll: true });
			$('code').scrollIntoView({ block: 'nearest' }); // a phone's page is longer than its window
		} else if (hadFocus) {
			this.listener.left();
		}
	}

	// frame: -1 for none.
	show(frame) {
		this.frame = frame;
		this.draw();
	}

	draw() {
		const isOpen = this.tab !== '', { frame, profile } = this;

		$('code').hidden = !isOpen;
		document.body.classList.toggle('reading', isOpen);
		$('details-code').setAttribute('aria-pressed', String(isOpen));
		for (const tab of CODE_TABS) {
			$(`tab-${tab}`).setAttribute('aria-selected', String(tab === this.tab));
			$(`tab-${tab}`).tabIndex = tab === this.tab ? 0 : -1;
		}
		if (!isOpen || !profile || this.shown === frame)
			return;
		this.shown = frame;
		$('code-name').textContent = frame < 0 ? '' : short(profile.frameName[frame]);
		this.rows.replaceChildren(...this.lines());
		const hottest = this.rows.querySelector('.hottest');

		this.rows.scrollTop = hottest ? hottest.offsetTop - this.rows.clientHeight / 2 : 0;
		this.rows.scrollLeft = 0;
	}

	lines() {
		const { profile, frame } = this, isSource = this.tab === 'source', found = profile.code && profile.code.filter(one => one.frame === frame);

		if (frame < 0)
			return [element('p', 'Select a function: its source and instructions are shown here.', 'soft')];
		if (!profile.code)
			return [element('p', 'This page was written without source: sonde puts it in with --source 3.', 'soft')];
		if (!found.length && profile.kinds[profile.frameKind[frame]] === 'kernel')
			return [element('p', 'The kernel’s code is in no file; its source is here for the hottest functions if sonde profile --vmlinux knew its lines.', 'soft')];
		if (!found.length)
			return [element('p', `This page has the source of the ${profile.code.length} functions that took most by themselves; this is none of them.`, 'soft')];
		const rows = found.flatMap(one => this.linesOf(one, one.kind.map((_, i) => i).filter(i => SOURCE_ROWS.includes(one.kind[i]) === isSource), found.length > 1));

		const isNumbered = rows.some(row => row.className.startsWith('code-row'));

		return isNumbered ? [element('p', 'Self and total of each row: shares of the function’s total in the whole profile.', 'soft'), ...rows] : rows;
	}

	// numbers: of the rows of the chosen kind. isOneOfMany: files with other build ids have this function, too.
	linesOf(one, numbers, isOneOfMany) {
		const most = numbers.reduce((most, i) => Number(one.self[i]) > Number(one.self[most]) && !one.kind[i].endsWith('gap') ? i : most, numbers[0]);
		const heading = isOneOfMany ? [element('p', `build id ${one.build_id}`, 'code-file')] : [];

		return [...heading, ...numbers.map(i => {
			const row = this.line(one, i);

			row.classList.toggle('hottest', i === most && Number(one.self[i]) > 0);
			return row;
		})];
	}

	line({ kind, number, self, total, text, all }, i) {
		const say = { 'file': '', 'code': 'code: ', 'no source': 'No source: ', 'no code': 'No instructions: ' }[kind[i]], part = sum => Number(sum) ? share(Number(sum), Number(all)) : '';

		if (say !== undefined)
			return element('p', say + short(text[i]), 'code-file');
		if (kind[i] === 'nowhere')
			return element('p', `${plural(number[i], 'sampled address', 'sampled addresses')} at none of these instructions`, 'code-file');
		const isGap = kind[i].endsWith('gap'), row = element('div', '', isGap ? 'code-row soft' : 'code-row'), bar = element('span', '', 'bar-track');
		const what = isGap ? `… ${Number(number[i]) ? plural(number[i], kind[i] === 'line gap' ? 'row' : 'instruction') : ''}` : text[i];
		const at = isGap ? '' : kind[i] === 'line' ? String(number[i]) : BigInt(number[i]).toString(16);

		if (Number(self[i]))
			bar.appendChild(element('span', '', 'bar-fill')).style.width = `${clamp(100 * Number(self[i]) / (Number(all) || 1), 0, 100)}%`;
		row.append(element('span', part(self[i]), 'percent'), bar, element('span', part(total[i]), 'percent soft'), element('span', at, 'at soft'), element('code', plain(what)));
		return row;
	}
}
