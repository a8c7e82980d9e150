// SPDX-License-Identifier: Apache-2.0
// Wires the page. The profile may come from anywhere: call new Viewer() once, then load(object) for each profile.
'use strict';

const VIEWS = ['graph', 'sandwich', 'table'];
const SCHEMES = ['system', 'light', 'dark'];

class Viewer {
	constructor() {
		const listener = {
			select: (graph, node) => this.selected(graph, node), hover: (graph, node, event) => this.tip(graph, node, event),
			sandwich: frame => this.sandwich(frame), describe: (tree, node) => this.describe(tree, node),
		};

		this.graph = new Graph($('graph'), 'Flame graph', listener);
		this.callers = new Graph($('callers'), 'Callers', listener);
		this.callees = new Graph($('callees'), 'Callees', listener);
		this.graphs = [this.graph, this.callers, this.callees];
		this.table = new Table($('table'), { choose: row => this.showFunction(row), sandwich: frame => this.sandwich(frame) });
		this.timeline = new Timeline($('timeline'), { range: () => this.rebuild() });
		this.filters = new Filters({ changed: () => this.rebuild() });
		this.search = new Search({ changed: () => this.mark(), goTo: node => this.goTo(node) });
		this.callees.painter.icicle = true;
		this.view = 'graph';
		this.scheme = 'system';
		this.dark = matchMedia('(prefers-color-scheme: dark)');
		this.setTheme();
		this.listen();
	}

	load(data) {
		this.profile = new Profile(data);
		this.report = new Report(this.profile);
		this.value = this.profile.shown;
		this.frame = -1;
		this.filters.setProfile(this.profile, this.value);
		this.timeline.setProfile(this.profile);
		$('value').replaceChildren(...this.profile.valueTypes.map(({ type, unit }, i) => new Option(unit && unit !== 'count' ? `${type} (${unit})` : type, i)));
		$('value').value = this.value;
		$('value-holder').hidden = this.profile.valueTypes.length < 2;
		$('scale').hidden = !this.profile.isDiff;
		document.body.classList.toggle('difference', this.profile.isDiff);
		$('sandwich-empty').hidden = true;
		this.rebuild();
	}

	type() {
		const type = this.profile.valueTypes[this.value];

		return this.profile.isDiff ? { type: 'samples', unit: 'count' } : type;
	}

	// Rebuilds the tree for all views after any choice.
	rebuild() {
		const { profile, filters, timeline } = this;
		const choice = { value: this.value, threads: filters.threads(), range: timeline.range, hidden: filters.hidden };

		this.whole = profile.values[this.value].reduce((sum, value) => sum + value, 0);
		this.tree = callTree(profile, choice);
		for (const graph of this.graphs)
			graph.painter.isDiff = profile.isDiff;
		this.graph.setTree(this.tree);
		timeline.setChoice(choice);
		filters.tell();
		filters.fillLegend(this.themeName);
		this.search.setTree(this.tree, sum => this.amount(this.tree, sum));
		this.isStale = { sandwich: true, table: true };
		this.tellShown(choice);
		this.show(this.view);
	}

	tellShown({ threads, range, hidden }) {
		const isAll = !threads && !range && !hidden.some(Boolean), { tree, profile } = this;

		$('shown').hidden = isAll;
		$('shown-text').textContent = `Shown: ${quantity(tree.total[0], this.type())} of ${quantity(this.whole, this.type())}, ${share(tree.total[0], this.whole)}` +
			(hidden.some(Boolean) ? `, without ${profile.kinds.filter((_, i) => hidden[i]).map(kind => kindOf(kind).label).join(' and ')} frames` : '') +
			(range && profile.untimed ? `; ${plural(profile.untimed, 'entry', 'entries')} without a time in every range` : '');
		$('empty').hidden = tree.width[0] > 0;
		$('empty').textContent = this.whole || !isAll ? 'Nothing is left by these filters.' : 'No samples: nothing that was asked for ran while the profile was taken.';
	}

	show(view) {
		this.view = view;
		for (const name of VIEWS) {
			$(`tab-${name}`).setAttribute('aria-selected', String(name === view));
			$(`tab-${name}`).tabIndex = name === view ? 0 : -1;
			$(`view-${name}`).hidden = name !== view || !$('empty').hidden;
		}
		if (view === 'table' && this.isStale.table)
			this.table.setFunctions(this.tree, this.type(), this.profile.isDiff);
		if (view === 'sandwich' && this.isStale.sandwich)
			this.fillSandwich();
		this.isStale[view] = false;
		this.mark();
		this.selected(this.current(), this.current().painter.selected);
	}

	current() {
		if (this.view === 'sandwich')
			return this.callers.scroller.contains(document.activeElement) ? this.callers : this.callees;
		return this.graph;
	}

	fillSandwich() {
		const rows = functionsOf(this.tree), row = rows.find(({ frame }) => frame === this.frame) ||
			(this.frame < 0 && rows.reduce((most, row) => !most || row.self > most.self ? row : most, null));

		$('sandwich').hidden = !row;
		$('sandwich-empty').hidden = Boolean(row);
		if (!row)
			return;
		this.frame = row.frame;
		$('sandwich-name').textContent = short(this.profile.frameName[row.frame]);
		$('sandwich-sums').textContent = `self ${this.amount(this.tree, row.self)}; total ${this.amount(this.tree, row.total)}`;
		this.callers.setTree(callersOf(this.tree, row.frame));
		this.callees.setTree(calleesOf(this.tree, row.frame));
		for (const graph of [this.callers, this.callees]) // height by number of rows
			graph.scroller.parentElement.style.flexGrow = clamp(graph.tree.rows.length, 4, 30);
	}

	sandwich(frame) {
		this.frame = frame;
		this.isStale.sandwich = true;
		this.show('sandwich');
		this.callees.scroller.focus();
	}

	showFunction({ node }) {
		this.show('graph');
		this.goTo(node);
		this.graph.scroller.focus();
	}

	goTo(node) {
		if (this.view !== 'graph')
			this.show('graph');
		this.graph.goTo(node);
	}

	// Marks what the search found, in all visible views.
	mark() {
		for (const graph of this.graphs) {
			graph.painter.matches = this.search.found;
			graph.painter.draw();
		}
		if (this.view === 'table')
			this.table.filter(this.search.found);
	}

	setValue(value) {
		this.value = value;
		this.filters.value = value;
		this.filters.list();
		this.rebuild();
	}

	clear() {
		this.filters.clear();
		this.timeline.choose(null);
		this.rebuild();
	}

	amount(tree, sum) {
		const type = this.type(), time = type.unit === 'count' && type.type === 'samples' && !this.profile.isDiff && this.report.tickNs();

		return `${quantity(sum, type)}, ${share(sum, tree.profile === this.profile ? this.tree.total[0] : 0)}${time ? `, ${seconds(sum * time)}` : ''}`;
	}

	describe(tree, node) {
		const self = tree.self[node] && tree !== this.callers.tree ? `; ${share(tree.self[node], this.tree.total[0])} in itself` : '';

		return this.amount(tree, tree.total[node]) + self + this.change(tree, node);
	}

	change(tree, node) {
		if (!tree.before)
			return '';
		const before = tree.before[node], after = tree.after[node], [beforeAll, afterAll] = [this.tree.before[0], this.tree.after[0]];

		return `; before ${share(before, beforeAll)}, after ${share(after, afterAll)}: ` +
			(before === after ? 'the same' : !before ? 'new' : !after ? 'gone' : `${after > before ? '+' : '−'}${share(Math.abs(after - before), Math.abs(before))}`);
	}

	source(tree, node) {
		const { profile } = tree, frame = tree.frame[node], file = profile.frameFile[frame];
		const [from, to] = tree.minLine.length ? [tree.minLine[node], tree.maxLine[node]] : [0, 0];

		if (!file)
			return '';
		return file + (from ? `:${from}${to > from ? `–${to}` : ''}` : profile.frameLine[frame] ? `:${profile.frameLine[frame]}` : '');
	}

	// The mapped file. '' for interpreted frames, where it is the source, which is shown with its line.
	path(tree, node) {
		return INTERPRETED.includes(tree.kind(node)) ? '' : tree.profile.framePath[tree.frame[node]];
	}

	selected(graph, node) {
		if (!graph.tree || graph !== this.current())
			return;
		const tree = graph.tree, isOne = node >= 0;

		$('details-name').textContent = isOne ? short(tree.name(node)) : '';
		$('details-text').textContent = isOne ? [this.describe(tree, node), kindOf(tree.kind(node)).label, this.path(tree, node),
			this.source(tree, node)].filter(Boolean).join('  ·  ') : 'Select a frame: click, or arrow keys and Enter. ? shows all keys.';
		$('details-sandwich').disabled = !isOne || !node;
		$('back').disabled = !graph.history.length;
		$('reset').disabled = graph.isWhole();
	}

	tip(graph, node, event) {
		const tip = $('tip'), { tree } = graph;

		tip.hidden = node < 0;
		if (node < 0)
			return;
		tip.replaceChildren(element('b', short(tree.name(node))), element('span', this.describe(tree, node)));
		for (const text of [this.path(tree, node), this.source(tree, node), kindOf(tree.kind(node)).label])
			if (text)
				tip.append(element('span', short(text)));
		tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8))}px`;
		tip.style.top = `${event.clientY + tip.offsetHeight + 24 > innerHeight ? event.clientY - tip.offsetHeight - 10 : event.clientY + 16}px`;
	}

	flip() {
		this.graph.painter.flip(!this.graph.painter.icicle);
		$('flip').textContent = this.graph.painter.icicle ? 'Flame' : 'Icicle';
	}

	setTheme() {
		this.themeName = this.isPrinted ? 'light' : this.scheme === 'system' ? (this.dark.matches ? 'dark' : 'light') : this.scheme;
		document.documentElement.dataset.theme = this.themeName;
		$('theme').textContent = { system: 'Auto', light: 'Light', dark: 'Dark' }[this.scheme];
		for (const graph of this.graphs)
			graph.painter.setTheme(this.themeName);
		this.timeline.setTheme(this.themeName);
		if (this.profile)
			this.filters.fillLegend(this.themeName);
	}

	async copy() {
		const graph = this.current(), text = graph.tree.folded(graph === this.graph ? graph.painter.zoomed : 0);

		try {
			await navigator.clipboard.writeText(text);
			this.say(`Copied ${plural(text.split('\n').length - 1, 'line')}.`);
		} catch {
			this.say('The browser does not allow copying here.');
		}
	}

	say(text) {
		$('said').textContent = text;
		setTimeout(() => $('said').textContent = '', 4000);
	}

	print(isPrinted) {
		this.isPrinted = isPrinted; // browsers may change the colour scheme for printing
		document.body.classList.toggle('printed', isPrinted);
		this.setTheme();
		for (const graph of this.graphs) {
			graph.painter.resize();
			if (graph.tree && graph.painter.width)
				graph.painter.drawNow();
		}
	}

	pageKey(event) {
		const typing = event.target.matches('input, select'), inDialog = $('help').open;
		const does = {
			'/': () => $('search').select(), '?': () => $('help').showModal(), i: () => this.flip(), n: () => this.search.step(1), N: () => this.search.step(-1),
			1: () => this.tab('graph'), 2: () => this.tab('sandwich'), 3: () => this.tab('table'), c: () => this.copy(), x: () => this.clear(),
			t: () => this.nextTheme(), a: () => $('more').click(), r: () => $('pattern').click(),
		};

		if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || inDialog)
			return;
		if (event.key === 'Escape' && event.target === $('search') && $('search').value) {
			$('search').value = '';
			this.search.run();
		} else if (event.key === 'Escape') {
			this.current().reset();
		} else if (!typing && Object.hasOwn(does, event.key)) {
			does[event.key]();
		} else {
			return;
		}
		event.preventDefault();
	}

	tab(view) {
		this.show(view);
		({ graph: this.graph.scroller, sandwich: this.callees.scroller, table: $('table') })[view].focus();
	}

	nextTheme() {
		this.scheme = SCHEMES[(SCHEMES.indexOf(this.scheme) + 1) % SCHEMES.length];
		this.setTheme();
	}

	listen() {
		const on = (id, does) => $(id).addEventListener('click', does);

		for (const view of VIEWS)
			on(`tab-${view}`, () => this.show(view));
		$('tabs').addEventListener('keydown', event => {
			const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];

			if (!step)
				return;
			this.show(VIEWS[(VIEWS.indexOf(this.view) + step + VIEWS.length) % VIEWS.length]);
			$(`tab-${this.view}`).focus();
			event.preventDefault();
		});
		for (const graph of [this.callers, this.callees])
			graph.scroller.addEventListener('focus', () => this.selected(graph, graph.painter.selected));
		document.addEventListener('keydown', event => this.pageKey(event));
		$('controls').addEventListener('submit', event => event.preventDefault());
		on('back', () => this.current().back());
		on('reset', () => this.current().reset());
		on('flip', () => this.flip());
		on('theme', () => this.nextTheme());
		on('copy', () => this.copy());
		on('clear', () => this.clear());
		on('keys', () => $('help').showModal());
		on('help-close', () => $('help').close());
		on('details-sandwich', () => this.sandwich(this.current().tree.frame[this.current().painter.selected]));
		on('more', () => {
			$('account').hidden = !$('account').hidden;
			$('more').setAttribute('aria-expanded', String(!$('account').hidden));
		});
		$('value').addEventListener('change', () => this.setValue(Number($('value').value)));
		this.dark.addEventListener('change', () => this.setTheme());
		addEventListener('beforeprint', () => this.print(true));
		addEventListener('afterprint', () => this.print(false));
	}
}
