// SPDX-License-Identifier: Apache-2.0
// Selects the processes, threads and kinds of frames that are shown.
'use strict';

const MAX_LISTED = 400;

class Filters {
	// listener: { changed() }
	constructor(listener) {
		this.listener = listener;
		$('process-find').addEventListener('input', () => this.list());
		$('process-all').addEventListener('click', () => this.setAll(true));
		$('process-none').addEventListener('click', () => this.setAll(false));
		for (const menu of document.querySelectorAll('.menu')) {
			menu.addEventListener('keydown', event => {
				if (event.key !== 'Escape' || !menu.open)
					return;
				menu.open = false;
				menu.querySelector('summary').focus();
				event.stopPropagation();
			});
			document.addEventListener('pointerdown', event => {
				if (!menu.contains(event.target))
					menu.open = false;
			});
		}
	}

	setProfile(profile, value) {
		this.profile = profile;
		this.on = new Uint8Array(profile.threads.length).fill(1);
		this.hidden = profile.kinds.map(() => false);
		this.value = value;
		this.list();
	}

	// null: all threads
	threads() {
		return this.on.includes(0) ? this.on : null;
	}

	// Shows these threads alone.
	only(threads) {
		this.on.fill(0);
		threads.forEach(thread => this.on[thread] = 1);
		this.list();
		this.listener.changed();
	}

	restore(value, isOn, isHidden) {
		this.value = value;
		this.on.forEach((_, thread) => this.on[thread] = isOn(thread) ? 1 : 0);
		this.hidden = this.hidden.map((_, kind) => isHidden(kind));
		this.list();
	}

	clear() {
		this.on.fill(1);
		this.hidden.fill(false);
		this.list();
	}

	setAll(on) {
		for (const program of this.listed || [])
			program.threads.forEach(thread => this.on[thread] = on ? 1 : 0);
		this.list();
		this.listener.changed();
	}

	toggleKind(kind) {
		this.hidden[kind] = !this.hidden[kind];
		this.listener.changed();
	}

	box(label, value, threads) {
		const item = element('label', '', 'check'), input = item.appendChild(element('input')), nr = threads.filter(thread => this.on[thread]).length;

		input.type = 'checkbox';
		input.checked = nr > 0;
		input.indeterminate = nr > 0 && nr < threads.length;
		input.addEventListener('change', () => {
			threads.forEach(thread => this.on[thread] = input.checked ? 1 : 0);
			const at = [...$('process-list').querySelectorAll('input')].indexOf(input);

			this.list();
			$('process-list').querySelectorAll('input')[at].focus(); // the list was rebuilt
			this.listener.changed();
		});
		item.append(element('span', label, 'what'), element('span', share(value, this.whole), 'percent'));
		return item;
	}

	// Programs; in them their processes, if there are several or several threads; in these their threads.
	list() {
		const { profile } = this, sums = profile.threadSums(this.value), wanted = $('process-find').value.toLowerCase();
		const sum = threads => threads.reduce((total, thread) => total + sums[thread], 0), most = (a, b) => sum(b.threads) - sum(a.threads);
		const has = text => !wanted || text.toLowerCase().includes(wanted);
		const fits = program => has(program.name) || program.threads.some(thread => {
			const { name, tgid, tid } = profile.threads[thread];

			return has(`${name} ${tgid} ${tid}`);
		});
		const add = (list, label, threads) => {
			const item = list.appendChild(element('li'));

			item.append(this.box(short(label), sum(threads), threads));
			return item.appendChild(element('ul'));
		};
		const top = element('ul');

		this.whole = sum(profile.threads.map((_, i) => i));
		this.listed = profile.programs.filter(fits).sort(most);
		for (const program of this.listed.slice(0, MAX_LISTED)) {
			const processes = [...program.processes.values()].sort(most).slice(0, MAX_LISTED), isOne = processes.length === 1;
			const inner = add(top, `${program.name}${isOne ? `  ${processes[0].tgid || ''}` : `  (${count.format(program.processes.size)} processes)`}`, program.threads);

			for (const { tgid, threads } of processes) {
				const list = isOne ? inner : add(inner, `${program.name}  ${tgid || ''}`, threads);

				for (const thread of threads.length > 1 ? threads.slice().sort((a, b) => sums[b] - sums[a]).slice(0, MAX_LISTED) : [])
					add(list, `${profile.threads[thread].name}  ${profile.threads[thread].tid || ''}`, [thread]);
			}
		}
		$('process-list').replaceChildren(...top.children);
		$('process-more').textContent = this.listed.length > MAX_LISTED ? `${count.format(this.listed.length - MAX_LISTED)} more: type to find them` : '';
		this.tell();
	}

	tell() {
		const { profile } = this, all = plural(profile.nrProcesses, 'process', 'processes');
		const shown = profile.programs.reduce((nr, program) =>
			nr + [...program.processes.values()].filter(process => process.threads.some(thread => this.on[thread])).length, 0);

		$('processes').querySelector('summary').textContent = this.threads() ? `${count.format(shown)} of ${all}` : all;
	}

	// The kinds that occur, as switches that are also the legend.
	fillLegend(themeName) {
		const { profile } = this, used = new Set(profile.frameKind), theme = THEMES[themeName];

		$('legend').replaceChildren(...profile.kinds.map((kind, i) => [kind, i]).filter(([kind, i]) => used.has(i) && kind !== 'all').map(([kind, i]) => {
			const button = element('button', '', 'kind'), swatch = element('canvas'), context = swatch.getContext('2d');

			swatch.width = swatch.height = 20;
			context.fillStyle = css(colourOf(themeName, kind, ''));
			context.fillRect(0, 0, 20, 20);
			if (kindOf(kind).striped) {
				context.fillStyle = context.createPattern(stripesOf(theme), 'repeat');
				context.fillRect(0, 0, 20, 20);
			}
			swatch.setAttribute('aria-hidden', 'true');
			button.type = 'button';
			button.setAttribute('aria-pressed', String(!this.hidden[i]));
			button.title = `Leave out or show frames of this kind: ${kindOf(kind).label}. What ends in them counts for their callers.`;
			button.append(swatch, kindOf(kind).label);
			button.addEventListener('click', () => this.toggleKind(i));
			button.dataset.kind = kind;
			const item = element('li');

			item.append(button);
			return item;
		}));
	}
}
