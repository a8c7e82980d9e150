// SPDX-License-Identifier: Apache-2.0
// One graph: a painter with mouse, keyboard and zoom. For screen readers there is also a tree of elements around the selected
// frame.
'use strict';

const ZOOM_MS = 140;
const MAX_ITEMS = 24; // siblings and children in the tree for screen readers
const MIN_FRAME = 40; // pixels: "next" zooms to a selected frame that is narrower

class Graph {
	// listener: { select(graph, node), hover(graph, node, event), sandwich(frame), describe(tree, node), zoomed(), moved(), opened(), back(),
	// menu(graph, node, x, y), chip(does, frame) }
	constructor(holder, label, listener) {
		this.listener = listener;
		this.scroller = holder.appendChild(element('div', '', 'scroller'));
		this.spacer = this.scroller.appendChild(element('div', '', 'spacer'));
		this.canvas = this.spacer.appendChild(element('canvas'));
		this.items = this.scroller.appendChild(element('div', '', 'hidden'));
		this.canvas.setAttribute('aria-hidden', 'true');
		this.items.setAttribute('role', 'none');
		this.scroller.tabIndex = 0;
		this.scroller.setAttribute('role', 'tree');
		this.scroller.setAttribute('aria-label', label);
		this.id = holder.id;
		this.painter = new Painter(this.canvas, this.scroller, this.spacer);
		this.minimap = new Minimap(holder, this.painter);
		this.calm = matchMedia('(prefers-reduced-motion: reduce)');
		this.listen();
	}

	// Shows another tree. The zoomed and the selected node are looked up in it.
	setTree(tree) {
		const old = this.painter.tree, was = this.painter;
		const zoomed = old && was.zoomed ? old.path(was.zoomed) : [], selected = old && was.selected > 0 ? old.path(was.selected) : null;

		this.tree = tree;
		this.painter.setTree(tree);
		if (zoomed.length && old.profile === tree.profile && old.frame[0] === tree.frame[0])
			this.painter.zoomed = this.drawn(tree.follow(zoomed), 0);
		this.painter.look(tree.start[this.painter.zoomed], tree.end(this.painter.zoomed));
		this.select(selected && old.profile === tree.profile ? this.drawn(tree.follow(selected), -1) || -1 : -1);
	}

	// The node, or `otherwise` if nothing is drawn of it.
	drawn(node, otherwise) {
		return node < this.tree.nr && this.tree.width[node] > 0 && !this.tree.isInside(node) ? node : otherwise;
	}

	// Shows a state of before, at once.
	restore(node, range, selected) {
		const zoomed = this.drawn(node, 0), [from, to] = range || [this.tree.start[zoomed], this.tree.end(zoomed)];

		this.moving = null;
		this.painter.zoomed = zoomed;
		this.painter.look(from, to);
		this.select(selected > 0 ? this.drawn(selected, -1) : -1, true);
	}

	// Shows what a closed box has.
	open(node) {
		if (this.tree.frame[node] !== this.tree.closed && !this.tree.isInside(node))
			return;
		this.tree.open();
		this.painter.look(this.painter.from, this.painter.to);
		this.painter.resize();
		this.listener.opened();
	}

	select(node, quietly) {
		this.painter.selected = node;
		if (node >= 0 && !quietly)
			this.painter.reveal(node);
		this.painter.draw();
		this.fillItems();
		this.listener.select(this, node);
	}

	// Moves smoothly to a range of the width.
	move(from, to) {
		const painter = this.painter, [oldFrom, oldTo] = [painter.from, painter.to], began = performance.now(), ticket = this.moving = { from, to };
		const step = now => {
			const part = this.calm.matches ? 1 : clamp((now - began) / ZOOM_MS, 0, 1), ease = part * (2 - part);

			if (this.moving !== ticket)
				return; // another move began
			painter.look(oldFrom + (from - oldFrom) * ease, oldTo + (to - oldTo) * ease);
			if (part < 1)
				requestAnimationFrame(step);
			else
				this.moving = null;
		};

		step(began);
	}

	zoom(node) {
		const painter = this.painter, isSame = painter.zoomed === node && painter.from === this.tree.start[node] && painter.to === this.tree.end(node);

		this.listener.hover(this, -1);
		this.open(node);
		painter.zoomed = node;
		this.move(this.tree.start[node], this.tree.end(node));
		this.select(node || -1);
		if (!isSame)
			this.listener.zoomed();
	}

	reset() {
		if (this.tree)
			this.zoom(0);
	}

	// Scales the visible range around a position that stays in place.
	scale(by, at) {
		const { from, to } = this.painter, all = this.tree.width[0], wide = clamp((to - from) * by, all / 1e7, all);
		const start = clamp(at - (at - from) * wide / (to - from), 0, all - wide);

		this.moving = null;
		this.painter.look(start, start + wide);
		if (start + wide > this.tree.end(this.painter.zoomed) || start < this.tree.start[this.painter.zoomed])
			this.painter.zoomed = 0;
		this.listener.select(this, this.painter.selected);
		this.listener.moved();
	}

	pan(by) {
		const { from, to } = this.painter, start = clamp(from + by * (to - from), 0, this.tree.width[0] - (to - from));

		this.moving = null;
		this.painter.look(start, start + to - from);
		this.painter.zoomed = start > 0 || to - from < this.tree.width[0] ? this.painter.zoomed : 0;
		this.listener.moved();
	}

	isWhole() {
		return this.painter.zoomed === 0 && this.painter.from === 0 && this.painter.to >= this.tree.width[0];
	}

	// Selects any node, and makes it wide enough to be visible.
	goTo(node) {
		const painter = this.painter;

		this.open(node);
		if (!this.tree.isAncestor(painter.zoomed, node))
			this.zoom(0);
		if (this.tree.width[node] / (painter.to - painter.from) * painter.width < MIN_FRAME)
			this.zoom(this.tree.parent[node] && this.tree.width[this.tree.parent[node]] < 20 * this.tree.width[node] ? this.tree.parent[node] : node);
		else if (this.tree.start[node] < painter.from || this.tree.end(node) > painter.to)
			this.zoom(0);
		this.select(node);
	}

	// The node that an arrow key leads to. Deeper is up in a flame graph and down in an icicle.
	neighbour(key) {
		const { tree, painter } = this, at = painter.selected, row = tree.rows[tree.depth[Math.max(at, 0)]];

		if (at < 0)
			return painter.zoomed;
		if (key === 'ArrowLeft' || key === 'ArrowRight')
			return row[row.indexOf(at) + (key === 'ArrowLeft' ? -1 : 1)] ?? at;
		if (key !== (painter.icicle ? 'ArrowDown' : 'ArrowUp'))
			return tree.parent[at];
		return tree.shown(at)[0] ?? at;
	}

	key(event) {
		const { painter, tree } = this, middle = (painter.from + painter.to) / 2, key = event.key;
		const does = {
			Enter: () => this.zoom(Math.max(0, painter.selected)), ' ': () => this.zoom(Math.max(0, painter.selected)),
			Backspace: () => this.listener.back(), Home: () => this.select(painter.zoomed),
			'+': () => this.scale(0.5, middle), '=': () => this.scale(0.5, middle), '-': () => this.scale(2, middle),
			s: () => painter.selected > 0 && this.listener.sandwich(tree.frame[painter.selected]),
		};

		for (const [name, chip] of Object.entries(CHIPS))
			does[chip.key] = () => painter.selected > 0 && this.listener.chip(name, tree.frame[painter.selected]);

		if (!tree || event.ctrlKey || event.altKey || event.metaKey)
			return;
		if (event.shiftKey && (key === 'ArrowLeft' || key === 'ArrowRight')) {
			this.pan(key === 'ArrowLeft' ? -0.2 : 0.2);
		} else if (key.startsWith('Arrow')) {
			const node = this.neighbour(key);

			if (tree.isAncestor(painter.zoomed, node) || tree.isAncestor(node, painter.zoomed))
				this.select(node);
		} else if (Object.hasOwn(does, key)) {
			does[key]();
		} else {
			return;
		}
		this.listener.hover(this, -1);
		event.preventDefault();
	}

	hover(event) {
		const node = event ? this.painter.nodeAt(event.offsetX, event.offsetY) : -1;

		this.listener.hover(this, node, event);
		if (node !== this.painter.hovered) {
			this.painter.hovered = node;
			this.painter.draw();
		}
	}

	listen() {
		const { canvas, scroller } = this;

		canvas.addEventListener('pointermove', event => this.dragged(event) || this.hover(event));
		canvas.addEventListener('pointerleave', () => this.hover(null));
		canvas.addEventListener('pointerdown', event => this.drag = event.button === 0 && { x: event.clientX, y: event.clientY, moved: false });
		canvas.addEventListener('click', event => {
			const node = this.painter.nodeAt(event.offsetX, event.offsetY), moved = this.drag && this.drag.moved;

			this.drag = null;
			if (node >= 0 && !moved)
				this.zoom(node);
		});
		canvas.addEventListener('dblclick', () => this.reset());
		canvas.addEventListener('wheel', event => {
			if (event.ctrlKey || event.metaKey)
				this.scale(Math.exp(clamp(event.deltaY, -50, 50) / 100), this.painter.placeAt(event.offsetX));
			else if (Math.abs(event.deltaX) > Math.abs(event.deltaY) && !this.isWhole())
				this.pan(event.deltaX / this.painter.width);
			else
				return;
			event.preventDefault();
		}, { passive: false });
		scroller.addEventListener('keydown', event => this.key(event));
		scroller.addEventListener('scroll', () => this.hover(null)); // what was under the pointer is elsewhere
		scroller.addEventListener('contextmenu', event => this.menu(event));
	}

	// The menu of the frame under the pointer or, by keyboard, of the selected one.
	menu(event) {
		const isMouse = event.target === this.canvas && event.button === 2, box = this.scroller.getBoundingClientRect();
		const node = isMouse ? this.painter.nodeAt(event.offsetX, event.offsetY) : this.painter.selected;

		if (node <= 0)
			return;
		event.preventDefault();
		this.listener.hover(this, -1);
		this.select(node, true);
		this.listener.menu(this, node, isMouse ? event.clientX : box.left + 40, isMouse ? event.clientY : box.top + this.painter.rowTop(this.tree.depth[node]) + ROW);
	}

	// Moves the graph with the pointer while a button is held. True if it does.
	dragged(event) {
		const drag = this.drag;

		if (!drag || !event.buttons)
			return false;
		if (!drag.moved && Math.abs(event.clientX - drag.x) + Math.abs(event.clientY - drag.y) < 5)
			return true;
		if (!drag.moved)
			this.canvas.setPointerCapture(event.pointerId);
		drag.moved = true;
		this.listener.hover(this, -1);
		this.pan((drag.x - event.clientX) / this.painter.width);
		this.scroller.scrollTop += drag.y - event.clientY;
		drag.x = event.clientX;
		drag.y = event.clientY;
		return true;
	}

	item(node, place, size) {
		const made = element('div', `${short(this.tree.name(node))}, ${this.listener.describe(this.tree, node)}`);

		made.id = `${this.id}-${node}`;
		made.setAttribute('role', 'treeitem');
		made.setAttribute('aria-level', this.tree.depth[node] + 1);
		made.setAttribute('aria-posinset', place + 1);
		made.setAttribute('aria-setsize', size);
		made.setAttribute('aria-selected', String(node === this.painter.selected));
		if (this.tree.firstChild[node])
			made.setAttribute('aria-expanded', String(this.tree.frame[node] !== this.tree.closed));
		return made;
	}

	// Fills in the path from the root to the selected node, its siblings and its children.
	fillItems() {
		const { tree } = this, selected = Math.max(0, this.painter.selected), items = [], way = [];
		const list = nodes => nodes.map((node, i) => [node, i, nodes.length]);
		const beside = list(selected ? tree.shown(tree.parent[selected]) : [0]), own = beside.findIndex(([node]) => node === selected);

		for (let node = selected; node && tree.parent[node] !== node; node = tree.parent[node])
			way.unshift([tree.parent[node], 0, 1]);
		for (const [node, place, size] of way.concat(beside.slice(Math.max(0, own - MAX_ITEMS / 2), own + MAX_ITEMS / 2)))
			items.push(this.item(node, place, size));
		const at = items.findIndex(item => item.id === `${this.id}-${selected}`);

		items.splice(at + 1, 0, ...list(tree.shown(selected)).slice(0, MAX_ITEMS).map(entry => this.item(...entry)));
		this.items.replaceChildren(...items);
		this.scroller.setAttribute('aria-activedescendant', `${this.id}-${selected}`);
	}
}
