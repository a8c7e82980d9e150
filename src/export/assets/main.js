// SPDX-License-Identifier: Apache-2.0
// Wires the page: header, search, mouse and keyboard.
'use strict';

const data = JSON.parse(document.getElementById('profile').textContent);
const account = data.account;
const tree = new Tree(data);
const $ = id => document.getElementById(id);
const plain = text => String(text).replace(UNSEEN, '?');
const count = new Intl.NumberFormat('en');
const sum = reasons => Object.values(reasons).reduce((total, value) => total + Number(value), 0);
const plural = (nr, word, many = word + 's') => `${count.format(nr)} ${Number(nr) === 1 ? word : many}`;

function share(part, whole) {
	return `${(whole ? 100 * part / whole : 0).toFixed(part && part < whole / 1000 ? 3 : 1)} %`;
}

function seconds(ns) {
	const units = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs']], [size, unit] = units.find(([size]) => ns >= size) || [1, 'ns'];

	return `${count.format(Number((ns / size).toPrecision(ns >= 1e12 ? 6 : 3)))} ${unit}`;
}

function element(tag, text, className) {
	const made = document.createElement(tag);

	made.textContent = text;
	if (className)
		made.className = className;
	return made;
}

// What one tick stands for, in nanoseconds; 0 when it is not time or not known.
function tickNs() {
	if (account.event_unit !== 'nanoseconds')
		return 0;
	return Number(account.period) || (Number(account.freq_hz) ? 1e9 / Number(account.freq_hz) : 0);
}

function amount(ticks) {
	const time = tickNs() ? `, ${seconds(ticks * tickNs())}` : '';

	return `${plural(ticks, 'sample')}, ${share(ticks, tree.total[0])}${time}`;
}

// Reasons that occurred, in words: "3 ring_full, 1 reader".
function reasons(counts, except) {
	return Object.entries(counts).filter(([name, nr]) => Number(nr) && name !== except)
		.map(([name, nr]) => `${count.format(nr)} ${name.replaceAll('_', ' ')}`).join(', ');
}

function fillHeader() {
	const rate = Number(account.freq_hz) ? `${count.format(account.freq_hz)} Hz` : `every ${count.format(account.period)} ${account.event_unit}`;
	const start = new Date(Number(account.start_unix_ns) / 1e6);
	const facts = [`${account.event}, ${rate}`, plural(account.nr_cpus, 'CPU'), seconds(Number(account.duration_ns)), account.host,
		Number(account.start_unix_ns) ? start.toLocaleString([], { dateStyle: 'medium', timeStyle: 'medium' }) : '',
		account.kernel ? `Linux ${account.kernel}` : ''];

	$('title').textContent = 'sonde flame graph';
	document.title = plain(`${account.host || 'sonde'}: ${account.event} flame graph`);
	for (const fact of facts.filter(Boolean))
		$('facts').append(element('span', plain(fact)));
	$('notes').hidden = !account.notes.length;
	for (const note of account.notes)
		$('notes').append(element('li', plain(note)));
	if (Number(account.nr_notes_refused))
		$('notes').append(element('li', `${plural(account.nr_notes_refused, 'more warning')} found no room.`));
}

function pair(list, term, description, className) {
	const holder = list.id === 'tallies' ? list.appendChild(element('div', '', className)) : list;

	holder.append(element('dt', term), element('dd', plain(description)));
}

function fillTallies() {
	const recorded = Number(account.recorded), complete = Number(account.stopped.complete), cut = sum(account.stopped) - complete;
	const lost = sum(account.dropped), missed = Number(account.missed_user) + Number(account.missed_kernel);
	const tally = (term, nr, bad) => pair($('tallies'), term, count.format(nr), bad && nr ? 'bad' : '');

	tally('Samples', recorded);
	tally('Filtered', sum(account.filtered));
	tally('Lost', lost, true);
	tally('Stacks missed', missed, true);
	tally('Stacks truncated', cut, true);
	if (complete + cut)
		pair($('tallies'), 'User stacks complete', share(complete, complete + cut));
}

function fillAccount() {
	const list = $('account'), mib = bytes => `${(Number(bytes) / 1048576).toFixed(1)} MiB`;

	pair(list, 'Command', `sonde ${account.command_line}`);
	pair(list, 'Ticks', `${count.format(account.ticks)} = recorded + filtered + lost`);
	pair(list, 'Filtered', reasons(account.filtered) || 'none');
	pair(list, 'Lost', reasons(account.dropped) || 'none');
	pair(list, 'User stacks', `${count.format(account.stopped.complete)} complete; cut short: ${reasons(account.stopped, 'complete') || 'none'}`);
	pair(list, 'Missed', `${plural(account.missed_user, 'user stack')}, ${plural(account.missed_kernel, 'kernel stack')}; ` +
		`${count.format(account.missed_full)} because the store was full`);
	pair(list, 'Side-band lost', plural(account.lost_sideband, 'event'));
	pair(list, 'Own cost', `${seconds(Number(account.cpu_user_ns))} user, ${seconds(Number(account.cpu_system_ns))} system, ` +
		`${mib(account.max_rss_bytes)} memory, ${mib(account.bpf_map_bytes)} BPF maps`);
	pair(list, 'Ready after', seconds(Number(account.startup_ns)));
	pair(list, 'Unwind tables', `${plural(account.unwind_rows, 'row')}, ${mib(account.unwind_bytes)}, ` +
		`${plural(account.nr_objects, 'file')} of ${plural(account.nr_processes, 'process', 'processes')}`);
}

const LABELS = { native: 'native code', kernel: 'kernel', process: 'process', mark: 'not known', missed: 'not known', thread: 'thread', all: '' };

function fillLegend(painter) {
	$('legend').replaceChildren();
	for (const [kind, label] of Object.entries(LABELS).slice(0, 4)) {
		const item = element('li', label), swatch = document.createElement('canvas'), context = swatch.getContext('2d');

		swatch.width = swatch.height = 16;
		context.fillStyle = colourOf(painter.theme, kind, '');
		context.fillRect(0, 0, 16, 16);
		if (kind === 'mark') {
			context.fillStyle = context.createPattern(stripesOf(painter.theme), 'repeat');
			context.fillRect(0, 0, 16, 16);
		}
		item.prepend(swatch);
		$('legend').append(item);
	}
}

function describe(node) {
	const self = tree.self[node] ? `; ${share(tree.self[node], tree.total[0])} in itself` : '';

	return `${amount(tree.total[node])}${self}`;
}

function showTip(node, event) {
	const tip = $('tip');

	tip.hidden = node < 0;
	if (node < 0)
		return;
	tip.replaceChildren(element('b', tree.name(node)), element('span', describe(node)));
	if (tree.path(node))
		tip.append(element('span', tree.path(node)));
	tip.append(element('span', LABELS[tree.kind(node)]));
	tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8))}px`;
	tip.style.top = `${event.clientY + tip.offsetHeight + 24 > innerHeight ? event.clientY - tip.offsetHeight - 10 : event.clientY + 16}px`;
}

class Viewer {
	constructor() {
		this.painter = new Painter(tree, $('graph'), $('scroller'), $('spacer'));
		fillLegend(this.painter);
		this.painter.dark.addEventListener('change', () => fillLegend(this.painter));
		this.listen();
	}

	select(node) {
		this.painter.selected = node;
		$('selected').textContent = node < 0 ? '' : `${tree.name(node)}  (${describe(node)})`;
		if (node >= 0)
			this.painter.reveal(node);
		else
			this.painter.draw();
	}

	zoom(node) {
		this.hover(null);
		$('reset').disabled = node === 0;
		this.painter.zoom(node);
		this.select(node || -1);
	}

	flip() {
		this.painter.flip();
		$('flip').textContent = this.painter.icicle ? 'Flame' : 'Icicle';
	}

	search() {
		const input = $('search');
		let found = null;

		input.setCustomValidity('');
		try {
			found = input.value ? tree.match(new RegExp(input.value, 'i')) : null;
		} catch (error) {
			input.setCustomValidity('This is not a regular expression.');
		}
		$('matched').textContent = found ? `matched ${amount(found.ticks)}` : input.validationMessage;
		this.painter.matches = found && found.frames;
		this.painter.draw();
	}

	hover(event) {
		const node = event ? this.painter.nodeAt(event.offsetX, event.offsetY) : -1;

		showTip(node, event);
		if (node !== this.painter.hovered) {
			this.painter.hovered = node;
			this.painter.draw();
		}
	}

	// Where an arrow key leads from the selected node; deeper is up in a flame graph and down in an icicle.
	neighbour(key) {
		const at = this.painter.selected, row = tree.rows[tree.depth[Math.max(at, 0)]];
		const deeper = key === (this.painter.icicle ? 'ArrowDown' : 'ArrowUp');

		if (at < 0)
			return this.painter.zoomed;
		if (key === 'ArrowLeft' || key === 'ArrowRight')
			return row[row.indexOf(at) + (key === 'ArrowLeft' ? -1 : 1)] ?? at;
		if (!deeper)
			return tree.parent[at];
		const below = tree.rows[tree.depth[at] + 1] || [], child = below[tree.find(tree.depth[at] + 1, tree.start[at])];

		return child !== undefined && tree.parent[child] === at ? child : at;
	}

	key(event) {
		if (event.key.startsWith('Arrow')) {
			const node = this.neighbour(event.key);

			if (!tree.isAncestor(this.painter.zoomed, node) && !tree.isAncestor(node, this.painter.zoomed))
				return; // out of sight
			this.select(node);
		} else if ((event.key === 'Enter' || event.key === ' ') && this.painter.selected >= 0) {
			this.zoom(this.painter.selected);
		} else {
			return;
		}
		this.hover(null);
		event.preventDefault();
	}

	pageKey(event) {
		const typing = event.target === $('search');

		if (event.ctrlKey || event.altKey || event.metaKey)
			return;
		if (event.key === 'Escape' && typing && $('search').value) {
			$('search').value = '';
			this.search();
		} else if (event.key === 'Escape') {
			this.zoom(0);
		} else if (event.key === '/' && !typing) {
			$('search').focus();
		} else if (event.key === 'i' && !typing) {
			this.flip();
		} else {
			return;
		}
		event.preventDefault();
	}

	listen() {
		const graph = $('graph');

		graph.addEventListener('mousemove', event => this.hover(event));
		graph.addEventListener('mouseleave', () => this.hover(null));
		graph.addEventListener('click', event => {
			const node = this.painter.nodeAt(event.offsetX, event.offsetY);

			if (node >= 0)
				this.zoom(node);
		});
		graph.addEventListener('dblclick', () => this.zoom(0));
		graph.addEventListener('keydown', event => this.key(event));
		document.addEventListener('keydown', event => this.pageKey(event));
		$('search').addEventListener('input', () => this.search());
		$('controls').addEventListener('submit', event => event.preventDefault());
		$('reset').addEventListener('click', () => this.zoom(0));
		$('flip').addEventListener('click', () => this.flip());
		$('more').addEventListener('click', () => {
			$('account').hidden = !$('account').hidden;
			$('more').setAttribute('aria-expanded', String(!$('account').hidden));
		});
	}
}

fillHeader();
fillTallies();
fillAccount();
$('empty').hidden = tree.total[0] > 0;
$('spacer').hidden = !tree.total[0];
const viewer = new Viewer();
