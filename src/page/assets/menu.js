// SPDX-License-Identifier: Apache-2.0
// The menu of a frame, by the mouse's right button or the menu key, and the chips of what was chosen.
'use strict';

class Menu {
	constructor(holder) {
		this.holder = holder;
		holder.addEventListener('keydown', event => this.key(event));
		holder.addEventListener('focusout', event => holder.contains(event.relatedTarget) || this.close());
	}

	// entries: [text, key, does]; null: a line.
	open(name, entries, x, y) {
		const { holder } = this;

		this.before = document.activeElement;
		holder.setAttribute('aria-label', name);
		holder.replaceChildren(...entries.map(entry => {
			const item = element('li');

			if (!entry) {
				item.setAttribute('role', 'separator');
				return item;
			}
			const [text, key, does] = entry, button = item.appendChild(element('button'));

			item.setAttribute('role', 'none');
			button.append(element('span', short(text)), element('kbd', key));
			button.type = 'button';
			button.tabIndex = -1;
			button.setAttribute('role', 'menuitem');
			button.addEventListener('click', () => {
				this.close();
				does();
			});
			return item;
		}));
		holder.hidden = false;
		holder.style.left = `${clamp(x, 4, Math.max(4, innerWidth - holder.offsetWidth - 8))}px`;
		holder.style.top = `${clamp(y, 4, Math.max(4, innerHeight - holder.offsetHeight - 8))}px`;
		holder.querySelector('button').focus();
	}

	close() {
		if (this.holder.hidden)
			return;
		this.holder.hidden = true;
		if (this.before && (this.holder.contains(document.activeElement) || document.activeElement === document.body))
			this.before.focus({ preventScroll: true });
	}

	key(event) {
		const buttons = [...this.holder.querySelectorAll('button')], at = buttons.indexOf(document.activeElement);
		const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[event.key];

		if (event.key === 'Escape' || event.key === 'Tab')
			this.close();
		else if (to !== undefined)
			buttons.at(to % buttons.length).focus();
		else
			return;
		event.preventDefault();
		event.stopPropagation();
	}
}

// The buttons that take chips away again. listener: { changed(chips) }
function fillChips(holder, profile, chips, changed) {
	holder.replaceChildren(...chips.map((chip, i) => {
		const button = element('button', `${CHIPS[chip.does].label} ${short(nameOfChip(profile, chip))}`, 'chip');

		button.type = 'button';
		button.title = 'Take it away';
		button.addEventListener('click', () => changed(chips.filter((_, other) => other !== i)));
		return button;
	}));
}
