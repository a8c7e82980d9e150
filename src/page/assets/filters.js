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
		$('processes').addEventListener('keydown', event => {
			if (event.key !== 'Escape' || !$('processes').open)
				return;
			$('processes').open = false;
			$('processes').querySelector('summary').focus();
			event.stopPropagation();
		});
		document.addEventListener('pointerdown', event => {
			if (!$('processes').contains(event.target))
				$('processes').open = false;
		});
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

	clear() {
		this.on.fill(1);
		this.hidden.fill(false);
		this.list();
	}

	setAll(on) {
		for (const process of this.listed || [])
			process.threads.forEach(thread => this.on[thread] = on ? 1 : 0);
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

	list() {
		const { profile } = this, sums = profile.threadSums(this.value), wanted = $('process-find').value.toLowerCase();
		const sum = threads => threads.reduce((total, thread) => total + sums[thread], 0);
		const fits = process => !wanted || `${process.name} ${process.tgid}`.toLowerCase().includes(wanted) ||
			process.threads.some(thread => `${profile.threads[thread].name} ${profile.threads[thread].tid}`.toLowerCase().includes(wanted));

		this.whole = sum(profile.threads.map((_, i) => i));
		this.listed = profile.processes.filter(fits).sort((a, b) => sum(b.threads) - sum(a.threads));
		$('process-list').replaceChildren(...this.listed.slice(0, MAX_LISTED).flatMap(process => {
			const item = element('li'), inner = element('ul');

			item.append(this.box(`${short(process.name)}${process.tgid ? `  ${process.tgid}` : ''}`, sum(process.threads), process.threads));
			if (process.threads.length > 1)
				item.append(inner);
			for (const thread of process.threads.slice().sort((a, b) => sums[b] - sums[a]).slice(0, MAX_LISTED)) {
				const { name, tid } = profile.threads[thread];

				inner.appendChild(element('li')).append(this.box(`${short(name)}${tid ? `  ${tid}` : ''}`, sums[thread], [thread]));
			}
			return [item];
		}));
		$('process-more').textContent = this.listed.length > MAX_LISTED ? `${count.format(this.listed.length - MAX_LISTED)} more: type to find them` : '';
		this.tell();
	}

	tell() {
		const { profile } = this, shown = profile.processes.filter(process => process.threads.some(thread => this.on[thread])).length;

		$('processes').querySelector('summary').textContent = this.threads() ?
			`${count.format(shown)} of ${plural(profile.processes.length, 'process', 'processes')}` : plural(profile.processes.length, 'process', 'processes');
	}

	// The kinds that occur, as switches that are also the legend.
	fillLegend(themeName) {
		const { profile } = this, used = new Set(profile.frameKind), theme = THEMES[themeName];

		$('legend').replaceChildren(...profile.kinds.map((kind, i) => [kind, i]).filter(([kind, i]) => used.has(i) && kind !== 'all').map(([kind, i]) => {
			const button = element('button', '', 'kind'), swatch = element('canvas'), context = swatch.getContext('2d');

			swatch.width = swatch.height = 20;
			context.fillStyle = colourOf(themeName, kind, '');
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
