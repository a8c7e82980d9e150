// SPDX-License-Identifier: Apache-2.0
// Searches by text or regular expression. Matches are marked in the graphs, filter the table, and can be stepped through.
'use strict';

class Search {
	// listener: { changed(), goTo(node) }
	constructor(listener) {
		this.listener = listener;
		this.isPattern = false;
		this.found = null; // by frame; null: no search
		$('search').addEventListener('input', () => this.run());
		$('search').addEventListener('keydown', event => {
			if (event.key !== 'Enter')
				return;
			this.step(event.shiftKey ? -1 : 1);
			event.preventDefault();
		});
		$('pattern').addEventListener('click', () => {
			this.isPattern = !this.isPattern;
			$('pattern').setAttribute('aria-pressed', String(this.isPattern));
			this.run();
		});
		$('next').addEventListener('click', () => this.step(1));
		$('previous').addEventListener('click', () => this.step(-1));
	}

	setTree(tree, describe) {
		this.tree = tree;
		this.describe = describe;
		this.count();
	}

	test() {
		const text = $('search').value;

		if (this.isPattern) {
			const pattern = new RegExp(text, 'iu');

			return name => pattern.test(name);
		}
		const wanted = text.toLowerCase();

		return name => name.toLowerCase().includes(wanted);
	}

	text() {
		return $('search').value;
	}

	restore(text, isPattern) {
		if (text === this.text() && isPattern === this.isPattern)
			return;
		$('search').value = text;
		this.isPattern = isPattern;
		$('pattern').setAttribute('aria-pressed', String(isPattern));
		this.run();
	}

	run() {
		const { profile } = this.tree;

		$('search').setCustomValidity('');
		this.found = null;
		try {
			if ($('search').value) {
				const test = this.test();

				this.found = Uint8Array.from(profile.frameName, name => test(name) ? 1 : 0);
				this.found[profile.frame[0]] = 0; // the root, "all", never matches
			}
		} catch (error) {
			$('search').setCustomValidity('This is not a regular expression.');
		}
		this.count();
		this.listener.changed();
	}

	// The share under the outermost matches: a match inside another counts once.
	count() {
		this.nodes = this.found ? this.tree.outermost(this.found) : [];
		this.at = -1;
		const sum = column => column && this.nodes.reduce((sum, node) => sum + column[node], 0);

		this.sums = [sum(this.tree.total), sum(this.tree.before), sum(this.tree.after)];
		this.tell();
	}

	tell() {
		const nr = this.nodes.length, place = this.at < 0 ? '' : `${count.format(this.at + 1)} of `;

		$('matched').textContent = !this.found ? $('search').validationMessage :
			nr ? `${place}${plural(nr, 'place')}: ${this.describe(...this.sums)}` : 'nothing found';
		$('next').disabled = $('previous').disabled = !nr;
	}

	// The largest first.
	step(by) {
		if (!this.nodes.length)
			return;
		this.at = this.at < 0 ? (by > 0 ? 0 : this.nodes.length - 1) : (this.at + by + this.nodes.length) % this.nodes.length;
		this.listener.goTo(this.nodes[this.at]);
		this.tell();
	}
}
