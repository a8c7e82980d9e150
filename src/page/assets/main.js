// SPDX-License-Identifier: Apache-2.0
// Wires the page. The profile may come from anywhere: call new Viewer() once, then load(object) for each profile.
'use strict';

const VIEWS = ['graph', 'sandwich', 'calls', 'table'];
const SCHEMES = ['system', 'light', 'dark'];

class Viewer {
	constructor() {
		const listener = {
			select: (graph, node) => this.selected(graph, node), hover: (graph, node, event) => this.tip(graph, node, event),
			sandwich: frame => this.sandwich(frame), describe: (tree, node) => this.describe(tree, node),
			zoomed: () => this.state.write('zoom', true), moved: () => this.state.write(''), back: () => this.back(),
			opened: () => this.isIdleOpen = true, chip: (does, frame) => this.addChip({ does, by: 'frame', of: frame }),
			menu: (graph, node, x, y) => this.openMenu(graph, node, x, y),
		};

		this.graph = new Graph($('graph'), 'Flame graph', listener);
		this.callers = new Graph($('callers'), 'Callers', listener);
		this.callees = new Graph($('callees'), 'Callees', listener);
		this.graphs = [this.graph, this.callers, this.callees];
		this.table = new Table($('table'), { choose: row => this.showFunction(row), sandwich: frame => this.sandwich(frame) });
		this.calls = new CallTree($('calls'), { choose: ({ node }) => this.showNode(node), sandwich: frame => this.sandwich(frame) });
		this.timeline = new Timeline($('timeline'), { range: () => this.changed('range'), tip: (lines, event) => this.showTip(lines, event) });
		this.filters = new Filters({ changed: () => this.changed('filter', true) });
		this.labels = new Labels({ chip: (does, of) => this.addChip({ does, by: 'label', of }) });
		this.code = new Code({ changed: () => this.state.write('code', true), left: () => this.current().scroller.focus({ preventScroll: true }) });
		this.search = new Search({ changed: () => {
			this.mark();
			this.state.write('search');
		}, goTo: node => this.goTo(node) });
		this.answer = new Answer($('answer'), {
			threads: threads => this.filters.only(threads), chip: chip => this.addChip(chip), goTo: frame => this.showFunction({ frame }),
		});
		this.menu = new Menu($('menu'));
		this.state = new State(this);
		this.callees.painter.icicle = true;
		this.view = 'graph';
		this.scheme = 'system';
		this.dark = matchMedia('(prefers-color-scheme: dark)');
		this.isPhone = matchMedia('(max-width: 560px)').matches; // there the root is at the top: below it the page scrolls
		this.graph.painter.icicle = this.isPhone;
		this.wide = matchMedia('(min-width: 1380px)'); // room for the table beside the graph
		this.setTheme();
		this.listen();
	}

	// isOwn: the profile in the page, to which the hash of its URL belongs.
	load(data, isOwn = false) {
		const profile = this.profile = new Profile(data);

		this.data = data;

		this.tree = null;
		this.report = new Report(profile);
		this.value = this.firstValue = profile.isDiff ? 2 : profile.shown;
		this.frame = -1;
		this.chips = [];
		this.isInverted = this.isIdleOpen = false;
		this.colouring = 'kind';
		this.filters.setProfile(profile, profile.shown);
		this.timeline.setProfile(profile);
		this.labels.setProfile(profile);
		this.code.setProfile(profile);
		const names = profile.valueTypes.map(({ type, unit }) => unit === 'count' || unit === 'nanoseconds' ? type : `${type} (${unit})`);

		$('value').replaceChildren(...(profile.isDiff ? [...names, 'the larger'] : names).map((name, i) => new Option(name, i)));
		$('value-holder').hidden = profile.valueTypes.length < 2;
		$('scale').hidden = !profile.isDiff;
		document.body.classList.toggle('difference', profile.isDiff);
		$('sandwich-empty').hidden = true;
		this.rebuild();
		this.answer.fill(profile, this.value, this.tree);
		this.state.begin(isOwn);
	}

	type() {
		const type = this.profile.valueTypes[Math.min(this.value, this.profile.valueTypes.length - 1)];

		return this.profile.isDiff ? { type: type.unit === 'count' ? 'samples' : '', unit: type.unit } : type;
	}

	choice() {
		const { filters, timeline } = this;

		return { value: this.value, threads: filters.threads(), range: timeline.range, hidden: filters.hidden, chips: this.chips };
	}

	changed(kind, isStep = false) {
		this.rebuild();
		this.state.write(kind, isStep);
	}

	// Rebuilds the tree for all views after any choice.
	rebuild() {
		const { profile, filters, timeline } = this, choice = this.choice();

		this.whole = profile.values[Math.min(this.value, profile.values.length - 1)].reduce((sum, value) => sum + value, 0);
		this.tree = callTree(profile, choice, this.isIdleOpen);
		for (const graph of this.graphs)
			Object.assign(graph.painter, { isDiff: profile.isDiff, colouring: this.colouring });
		this.graph.setTree(this.isInverted ? invertedTree(this.tree) : this.tree);
		timeline.setChoice(choice);
		if (profile.labels.length)
			this.labels.setChoice(choice, Math.min(this.value, profile.values.length - 1));
		filters.tell();
		filters.fillLegend(this.themeName);
		this.search.setTree(this.graph.tree, (...sums) => this.amount(...sums));
		this.isStale = { sandwich: true, table: true, calls: true };
		this.tellShown(choice);
		this.show(this.view);
		this.tellControls();
	}

	tellControls() {
		const { painter } = this.graph;

		$('value').value = this.value;
		$('colour').value = this.colouring;
		$('colour-holder').hidden = this.profile.isDiff;
		$('invert').setAttribute('aria-pressed', String(this.isInverted));
		$('flip').textContent = painter.icicle ? 'Flame' : 'Icicle';
		for (const [id, sign] of [['least', '−'], ['most', '+']])
			$(id).textContent = painter.isDiff ? `${sign}${painter.most.toFixed(1)} points` : '';
	}

	tellShown({ threads, range, hidden, chips }) {
		const isAll = !threads && !range && !hidden.some(Boolean) && !chips.length, { tree, profile } = this, { limit = 0 } = this.graph.tree;

		$('shown').hidden = isAll && !limit;
		$('clear').hidden = isAll;
		fillChips($('chips'), profile, chips, left => this.setChips(left));
		$('shown-text').textContent = (profile.isDiff ? `Shown: ${this.amount(tree.total[0], tree.before[0], tree.after[0])}` :
			`Shown: ${quantity(tree.total[0], this.type())} of ${quantity(this.whole, this.type())}, ${share(tree.total[0], this.whole)}`) +
			(hidden.some(Boolean) ? `, without ${profile.kinds.filter((_, i) => hidden[i]).map(kind => kindOf(kind).label).join(' and ')} frames` : '') +
			(range && profile.untimed ? `; ${plural(profile.untimed, 'entry', 'entries')} without a time in every range` : '') +
			(limit ? `; only the nearest ${limit} callers, for want of room` : '');
		$('empty').hidden = tree.width[0] > 0;
		$('empty').textContent = this.whole || !isAll ? 'Nothing is left by these filters.' : 'No samples: nothing that was asked for ran while the profile was taken.';
	}

	show(view) {
		const isBeside = view === 'graph' && this.wide.matches;

		this.view = view;
		document.body.classList.toggle('beside', isBeside);
		for (const name of VIEWS) {
			$(`tab-${name}`).setAttribute('aria-selected', String(name === view));
			$(`tab-${name}`).tabIndex = name === view ? 0 : -1;
			$(`view-${name}`).hidden = (name !== view && !(isBeside && name === 'table')) || !$('empty').hidden;
		}
		if (view === 'table')
			this.fillTable();
		else if (isBeside && this.isStale.table)
			setTimeout(() => this.view === 'graph' && this.fillTable()); // the graph is drawn first
		if (view === 'sandwich' && this.isStale.sandwich)
			this.fillSandwich();
		if (view === 'calls' && this.isStale.calls)
			this.calls.setTree(this.graph.tree, this.type(), this.profile.isDiff, this.graph.painter.selected);
		if (view !== 'table')
			this.isStale[view] = false;
		this.mark();
		this.selected(this.current(), this.current().painter.selected);
	}

	fillTable() {
		if (!this.isStale.table)
			return;
		this.table.found = this.search.found;
		this.table.setFunctions(this.tree, this.type(), this.profile.isDiff);
		this.isStale.table = false;
	}

	current() {
		if (this.view === 'sandwich')
			return this.callers.scroller.contains(document.activeElement) ? this.callers : this.callees;
		return this.graph;
	}

	fillSandwich() {
		const rows = this.tree.functions(), row = rows.find(({ frame }) => frame === this.frame) ||
			(this.frame < 0 && rows.reduce((most, row) => !most || row.self > most.self ? row : most, null));

		$('sandwich').hidden = !row;
		$('sandwich-empty').hidden = Boolean(row);
		if (!row)
			return;
		this.frame = row.frame;
		$('sandwich-name').textContent = short(this.profile.frameName[row.frame]);
		$('sandwich-sums').textContent = `self ${this.amount(row.self, row.selfBefore, row.selfAfter)}; total ${this.amount(row.total, row.before, row.after)}`;
		this.callers.setTree(callersOf(this.tree, row.frame));
		this.callees.setTree(calleesOf(this.tree, row.frame));
		for (const graph of [this.callers, this.callees]) { // height by number of rows
			graph.painter.whole = this.tree.total[0];
			graph.scroller.parentElement.style.flexGrow = clamp(graph.tree.rows.length, 4, 30);
		}
	}

	sandwich(frame) {
		this.frame = frame;
		this.isStale.sandwich = true;
		this.tab('sandwich');
	}

	// The widest box of a function, in the tree that is drawn.
	showFunction({ frame }) {
		const [box] = this.graph.tree.outermost(Uint8Array.from(this.profile.frameName, (_, i) => i === frame ? 1 : 0));

		if (box)
			this.showNode(box);
	}

	showNode(node) {
		this.tab('graph');
		this.goTo(node);
	}

	goTo(node) {
		if (this.view !== 'graph')
			this.show('graph');
		this.graph.goTo(node);
		this.state.write('');
	}

	// Marks what the search found, in all visible views.
	mark() {
		for (const graph of this.graphs) {
			graph.painter.matches = this.search.found;
			graph.painter.draw();
		}
		if (this.view === 'calls')
			this.calls.filter(this.search.found);
		if (!$('view-table').hidden && !this.isStale.table)
			this.table.filter(this.search.found);
	}

	setValue(value) {
		this.value = value;
		this.filters.value = Math.min(value, this.profile.values.length - 1);
		this.filters.list();
		this.changed('value', true);
	}

	setChips(chips) {
		this.chips = chips;
		this.changed('chips', true);
	}

	addChip(chip) {
		const isThere = this.chips.some(other => chipText(other) === chipText(chip));

		if (!isThere)
			this.setChips([...this.chips, chip]);
	}

	invert() {
		this.isInverted = !this.isInverted;
		this.changed('invert', true);
	}

	clear() {
		this.filters.clear();
		this.timeline.choose(null, true);
		this.chips = [];
		this.changed('clear', true);
	}

	back() {
		if (this.state.depth)
			history.back();
	}

	// Shows what a hash says.
	restore(params) {
		const { profile, filters, timeline, search, code } = this, before = JSON.stringify([this.choice(), this.isInverted, this.isIdleOpen, this.colouring]);
		const get = key => params.get(key) || '', off = new Set(numbersIn(get('off'), profile.threads.length)), hidden = new Set(numbersIn(get('k'), profile.kinds.length));
		const range = get('t').split('-').map(Number);

		this.view = VIEWS.includes(get('v')) ? get('v') : 'graph';
		this.value = params.has('w') ? clamp(Math.floor(Number(get('w'))) || 0, 0, $('value').options.length - 1) : this.firstValue;
		filters.restore(Math.min(this.value, profile.values.length - 1), thread => !off.has(thread), kind => hidden.has(kind));
		timeline.choose(range.length === 2 && range.every(Number.isFinite) ? range : null, true);
		this.chips = get('c').split('.').filter(Boolean).map(text => chipOf(profile, text)).filter(Boolean);
		this.isInverted = get('i') === '1';
		this.isIdleOpen = get('o') === '1';
		this.colouring = Object.hasOwn(COLOURINGS, get('by')) ? get('by') : 'kind';
		code.restore(get('s'));
		this.frame = params.has('f') ? clamp(Math.floor(Number(get('f'))) || 0, 0, profile.nrFrames - 1) : -1;
		if (this.graph.painter.icicle !== (params.has('d') ? get('d') === '1' : this.isPhone))
			this.graph.painter.flip(!this.graph.painter.icicle);
		if (JSON.stringify([this.choice(), this.isInverted, this.isIdleOpen, this.colouring]) !== before)
			this.rebuild();
		this.isStale.sandwich = true;
		search.restore(get('q'), get('p') === '1');
		this.show(this.view);
		this.tellControls();
		for (const name of GRAPHS) {
			const [zoomed = 0, selected = 0, from, to] = get(name).split('_').filter(Boolean).map(Number);

			if (this[name].tree && (name === 'graph' || this.view === 'sandwich'))
				this[name].restore(Math.floor(zoomed) || 0, from >= 0 && to > from ? [from, to] : null, Math.floor(selected) || 0);
		}
	}

	// After each change of the state.
	told() {
		$('back').disabled = !this.state.depth;
	}

	// A sum in words: before and after only of a difference.
	amount(sum, before, after) {
		const type = this.type(), time = type.unit === 'count' && type.type === 'samples' && !this.profile.isDiff && this.report.tickNs();

		if (this.profile.isDiff)
			return this.change(before, after);
		return `${quantity(sum, type)}, ${share(sum, this.tree.total[0])}${time ? `, ${seconds(sum * time)}` : ''}`;
	}

	// True counts, shares, and the change in points of percent.
	change(before, after) {
		const { sides } = this.profile, values = [before, after];
		const [was, is] = values.map((value, i) => `${quantity(Math.round(value * sides[i].all / (sides[i].whole || 1)), this.type())}, ${share(value, sides[i].whole)}`);
		const how = before === after ? 'the same' : !before ? 'new' : !after ? 'gone' : `${signed(100 * (after - before) / Math.abs(before))} %`;

		return `before ${was}; after ${is}: ${signed(pointsOf(sides, before, after))} points, ${how}${before !== after && isNoise(sides, before, after) ? ', within noise' : ''}`;
	}

	describe(tree, node) {
		const self = tree.self[node] && !tree.before && tree !== this.callers.tree ? `; ${share(tree.self[node], this.tree.total[0])} in itself` : '';

		return this.amount(tree.total[node], tree.before && tree.before[node], tree.before && tree.after[node]) + self;
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
			this.source(tree, node)].filter(Boolean).join('  ·  ') : 'Select a frame: click, or arrow keys and Enter. A right click shows what can be done. ? shows all keys.';
		$('details-sandwich').disabled = $('details-menu').disabled = !isOne || !node;
		$('reset').disabled = graph.isWhole();
		this.code.show(isOne && node ? tree.frame[node] : this.view === 'sandwich' ? this.frame : -1);
		this.state.write('');
	}

	tip(graph, node, event) {
		const { tree } = graph;

		this.showTip(node < 0 ? null : [tree.name(node), this.describe(tree, node), this.path(tree, node), this.source(tree, node), kindOf(tree.kind(node)).label], event);
	}

	// lines: the first is the title; null: no tip.
	showTip(lines, event) {
		const tip = $('tip');

		tip.hidden = !lines;
		if (!lines)
			return;
		tip.replaceChildren(element('b', short(lines[0])), ...lines.slice(1).filter(Boolean).map(text => element('span', short(text))));
		tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8))}px`;
		tip.style.top = `${event.clientY + tip.offsetHeight + 24 > innerHeight ? event.clientY - tip.offsetHeight - 10 : event.clientY + 16}px`;
	}

	openMenu(graph, node, x, y) {
		const { tree } = graph, frame = tree.frame[node], path = this.profile.framePath[frame], file = baseName(path);
		const add = (does, by) => () => this.addChip({ does, by, of: frame }), copy = text => () => this.copyText(text);

		this.menu.open(tree.name(node), [
			['Zoom', 'Enter', () => graph.zoom(node)],
			['Callers and callees', 's', () => this.sandwich(frame)],
			null,
			['Only stacks with it', 'f', add('focus', 'frame')],
			['Hide stacks with it', 'h', add('hide', 'frame')],
			['Merge into its callers', 'm', add('merge', 'frame')],
			['Close: count what it calls for it', 'd', add('collapse', 'frame')],
			['Collapse its recursion', 'u', add('recursion', 'frame')],
			...(path ? [null, [`Only stacks with ${file}`, '', add('focus', 'module')], [`Hide stacks with ${file}`, '', add('hide', 'module')],
				[`Merge ${file} into its callers`, '', add('merge', 'module')], [`Close ${file}`, '', add('collapse', 'module')]] : []),
			null,
			['Invert all', 'v', () => this.invert()],
			['Copy the name', '', copy(tree.name(node))],
			['Copy the stack', '', copy(tree.path(node).map(frame => this.profile.frameName[frame]).join('\n'))],
			['Copy folded from here', '', copy(tree.folded(node))],
		], x, y);
	}

	// Shows the difference to the profile in another page.
	async compareWith(file) {
		try {
			const data = profileIn(await file.text()), own = baseName(decodeURIComponent(location.pathname)) || 'this page';

			this.load(compare({ name: own, data: this.data }, { name: file.name, data }));
			this.say('This is the difference. Load the page again to leave it.');
		} catch (error) {
			this.say(`Cannot be compared: ${short(plain(error instanceof SyntaxError || error instanceof TypeError ? 'not a page of sonde' : error.message))}.`);
		}
	}

	flip() {
		this.graph.painter.flip(!this.graph.painter.icicle);
		this.tellControls();
		this.state.write('flip', true);
	}

	setColouring(colouring) {
		this.colouring = colouring;
		for (const { painter } of this.graphs) {
			painter.colouring = colouring;
			if (painter.tree)
				painter.recolour();
		}
		this.state.write('colour', true);
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

	copy() {
		const graph = this.current();

		return graph.tree && this.copyText(graph.tree.folded(graph === this.graph ? graph.painter.zoomed : 0));
	}

	async copyText(text) {
		try {
			await navigator.clipboard.writeText(text);
			this.say(`Copied ${plural(text.trimEnd().split('\n').length, 'line')}.`);
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
			'/': () => $('search').select(), '?': () => $('help').showModal(), i: () => this.flip(), v: () => this.invert(), n: () => this.search.step(1),
			N: () => this.search.step(-1), 1: () => this.tab('graph'), 2: () => this.tab('sandwich'), 3: () => this.tab('table'), 4: () => this.tab('calls'), c: () => this.copy(),
			x: () => this.clear(), t: () => this.nextTheme(), a: () => $('more').click(), r: () => $('pattern').click(),
			o: () => this.code.toggle(), l: () => this.labels.open(),
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
		} else if (event.target === document.body && ['graph', 'sandwich'].includes(this.view)) { // nothing has the focus yet: the graph takes it
			this.current().scroller.focus({ preventScroll: true });
			this.current().key(event);
			return;
		} else {
			return;
		}
		event.preventDefault();
	}

	tab(view) {
		this.show(view);
		({ graph: this.graph.scroller, sandwich: this.callees.scroller, calls: $('calls'), table: $('table') })[view].focus();
		this.state.write('view', true);
	}

	nextTheme() {
		this.scheme = SCHEMES[(SCHEMES.indexOf(this.scheme) + 1) % SCHEMES.length];
		this.setTheme();
	}

	listen() {
		const on = (id, does) => $(id).addEventListener('click', does);

		for (const view of VIEWS)
			on(`tab-${view}`, () => {
				this.show(view);
				this.state.write('view', true);
			});
		$('tabs').addEventListener('keydown', event => {
			const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];

			if (!step)
				return;
			this.show(VIEWS[(VIEWS.indexOf(this.view) + step + VIEWS.length) % VIEWS.length]);
			this.state.write('view', true);
			$(`tab-${this.view}`).focus();
			event.preventDefault();
		});
		for (const graph of [this.callers, this.callees])
			graph.scroller.addEventListener('focus', () => this.selected(graph, graph.painter.selected));
		document.addEventListener('keydown', event => this.pageKey(event));
		addEventListener('scroll', () => this.showTip(null), true);
		$('controls').addEventListener('submit', event => event.preventDefault());
		on('back', () => this.back());
		on('reset', () => this.current().reset());
		on('flip', () => this.flip());
		on('invert', () => this.invert());
		on('theme', () => this.nextTheme());
		on('copy', () => this.copy());
		on('clear', () => this.clear());
		on('compare', () => $('compare-file').click());
		$('compare-file').addEventListener('change', () => $('compare-file').files[0] && this.compareWith($('compare-file').files[0]));
		addEventListener('dragover', event => event.preventDefault());
		addEventListener('drop', event => {
			event.preventDefault();
			if (event.dataTransfer.files[0])
				this.compareWith(event.dataTransfer.files[0]);
		});
		on('keys', () => $('help').showModal());
		on('help-close', () => $('help').close());
		on('details-sandwich', () => this.sandwich(this.current().tree.frame[this.current().painter.selected]));
		on('details-menu', () => {
			const { left, top } = $('details-menu').getBoundingClientRect(), graph = this.current();

			this.openMenu(graph, graph.painter.selected, left, top);
		});
		on('more', () => {
			$('account').hidden = !$('account').hidden;
			$('more').setAttribute('aria-expanded', String(!$('account').hidden));
		});
		$('value').addEventListener('change', () => this.setValue(Number($('value').value)));
		$('colour').addEventListener('change', () => this.setColouring($('colour').value));
		this.dark.addEventListener('change', () => this.setTheme());
		this.wide.addEventListener('change', () => this.profile && this.show(this.view));
		addEventListener('beforeprint', () => this.print(true));
		addEventListener('afterprint', () => this.print(false));
	}
}
