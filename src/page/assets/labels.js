// SPDX-License-Identifier: Apache-2.0
// The labels of the samples, with their shares: each becomes a chip.
'use strict';

class Labels {
	// listener: { chip(does, label) }
	constructor(listener) {
		this.listener = listener;
		$('label-find').addEventListener('input', () => this.list());
	}

	setProfile(profile) {
		this.profile = profile;
		$('labels').hidden = !profile.labels.length;
		$('label-find').value = '';
	}

	// Chips for frames do not count here: they change stacks, not samples.
	setChoice(choice, value) {
		this.sums = this.profile.labelSums(value, choice);
		this.whole = 0;
		this.profile.chosen(choice, i => this.whole += this.profile.values[value][i]);
		this.list();
	}

	open() {
		if (!$('labels').hidden) {
			$('labels').open = true;
			$('label-find').focus();
		}
	}

	button(does, label) {
		const button = element('button', { focus: 'Only', hide: 'Without' }[does]);

		button.type = 'button';
		button.setAttribute('aria-label', `${button.textContent} ${short(this.profile.labels[label])}`);
		button.addEventListener('click', () => {
			this.listener.chip(does, label);
			$('label-find').focus(); // the list was rebuilt
		});
		return button;
	}

	list() {
		const { profile, sums } = this, wanted = $('label-find').value.toLowerCase();
		const found = profile.labels.map((_, i) => i).filter(i => profile.labels[i].toLowerCase().includes(wanted)).sort((a, b) => sums[b] - sums[a] || a - b);

		$('label-list').replaceChildren(...found.slice(0, MAX_LISTED).map(i => {
			const item = element('li', '', 'check');

			item.title = short(profile.labels[i]);
			item.append(element('span', short(profile.labels[i]), 'what'), element('span', share(sums[i], this.whole), 'percent'), this.button('focus', i), this.button('hide', i));
			return item;
		}));
		$('label-more').textContent = found.length > MAX_LISTED ? `${count.format(found.length - MAX_LISTED)} more: type to find them` : 'Shares of the samples of the chosen processes, times and labels.';
	}
}
