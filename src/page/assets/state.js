// SPDX-License-Identifier: Apache-2.0
// What is shown, as text in the URL's hash: a mailed file opens where the sender looked, and the browser's Back leads back.
'use strict';

const LATER_MS = 150; // so much later changes that follow each other fast are written
const GRAPHS = ['graph', 'callers', 'callees'];

// Numbers as ranges: 0-5.9
function rangesOf(numbers) {
	const ranges = [];

	for (const number of numbers) {
		const last = ranges[ranges.length - 1];

		if (last && last[1] === number - 1)
			last[1] = number;
		else
			ranges.push([number, number]);
	}
	return ranges.map(([from, to]) => from === to ? from : `${from}-${to}`).join('.');
}

function numbersIn(text, limit) {
	const numbers = [];

	for (const range of text.split('.').filter(Boolean)) {
		const [from, to = from] = range.split('-').map(Number);

		for (let number = from; number <= to && number < limit; number++)
			numbers.push(number);
	}
	return numbers;
}

const chipText = ({ does, by, of }) => `${does}-${by}-${of}`;

function chipOf(profile, text) {
	const [does, by, number] = text.split('-'), of = Number(number), limits = { frame: profile.nrFrames, module: profile.nrFrames, kind: profile.kinds.length,
		label: ['focus', 'hide'].includes(does) ? profile.labels.length : 0 };

	return Object.hasOwn(CHIPS, does) && Object.hasOwn(limits, by) && Number.isInteger(of) && of >= 0 && of < limits[by] ? { does, by, of } : null;
}

class State {
	// viewer: has what is written here, and restore(params)
	constructor(viewer) {
		this.viewer = viewer;
		this.depth = 0;
		addEventListener('popstate', event => {
			clearTimeout(this.later);
			this.later = 0;
			this.depth = event.state?.depth || 0;
			this.restore();
		});
	}

	// A new profile: begins anew, at the place in the hash if it is the page's own.
	begin(isOwn) {
		this.depth = isOwn && history.state?.depth || 0;
		this.kind = '';
		if (isOwn && location.hash.length > 1)
			this.restore();
		else
			this.put('replaceState', '');
	}

	restore() {
		this.isRestoring = true;
		try {
			this.viewer.restore(new URLSearchParams(location.hash.slice(1)));
		} finally {
			this.isRestoring = false;
		}
		this.viewer.told();
	}

	put(how, text) {
		clearTimeout(this.later);
		this.later = 0;
		if (how === 'replaceState' && text === location.hash.slice(1))
			return;
		try {
			history[how]({ depth: this.depth }, '', `#${text}`);
		} catch {
			// A browser may refuse it in a file; the page works without.
		}
	}

	// kind: of the change. A step by itself, or one that follows another of its kind ("range") and continues it; "" is never a step.
	write(kind, isStep) {
		if (this.isRestoring || !this.viewer.tree)
			return;
		if (isStep || (kind && kind !== this.kind)) {
			if (this.later)
				this.put('replaceState', this.text);
			this.depth++;
			this.put('pushState', this.text = this.compose());
		}
		this.kind = kind || this.kind;
		this.noteLater();
		this.viewer.told();
	}

	// Composes the text when the current event is over: what follows in it belongs to this step, and what comes before a step in it, too.
	noteLater() {
		if (this.isNoted)
			return;
		this.isNoted = true;
		queueMicrotask(() => {
			this.isNoted = false;
			clearTimeout(this.later);
			this.text = this.compose();
			this.later = setTimeout(() => this.put('replaceState', this.text), LATER_MS);
		});
	}

	compose() {
		const { viewer } = this, { filters, timeline, search, profile } = viewer, params = new URLSearchParams(), off = [];
		const set = (key, value) => value && params.set(key, value);

		filters.on.forEach((on, thread) => on || off.push(thread));
		set('v', viewer.view !== 'graph' && viewer.view);
		set('w', viewer.value !== viewer.firstValue && String(viewer.value));
		set('off', rangesOf(off));
		set('k', filters.hidden.map((hidden, kind) => hidden ? kind : -1).filter(kind => kind >= 0).join('.'));
		set('t', timeline.range && timeline.range.map(Math.round).join('-'));
		set('c', viewer.chips.map(chipText).join('.'));
		set('i', viewer.isInverted && '1');
		set('d', viewer.graph.painter.icicle !== viewer.isPhone && (viewer.isPhone ? '0' : '1'));
		set('o', profile.idle && viewer.isIdleOpen && '1');
		set('by', viewer.colouring !== 'kind' && viewer.colouring);
		set('q', search.text());
		set('p', search.isPattern && '1');
		set('s', viewer.code.tab);
		set('f', viewer.frame >= 0 && viewer.view === 'sandwich' && String(viewer.frame));
		for (const name of GRAPHS) {
			const { painter, tree, moving } = viewer[name], { zoomed, selected } = painter, { from, to } = moving || painter;
			const isWhole = tree && from === tree.start[zoomed] && to === tree.end(zoomed);

			if (tree && (zoomed || selected > 0 || !isWhole) && (name === 'graph' || viewer.view === 'sandwich'))
				set(name, [zoomed, Math.max(0, selected), ...(isWhole ? [] : [from, to])].join('_'));
		}
		return params.toString();
	}
}
