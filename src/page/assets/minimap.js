// SPDX-License-Identifier: Apache-2.0
// The whole of a graph that is taller than its window, beside it: what is in sight has a frame, and a click or a drag leads elsewhere. Only
// for the mouse: keys walk the graph itself.
'use strict';

class Minimap {
	constructor(holder, painter) {
		this.painter = painter;
		this.box = holder.appendChild(element('div', '', 'minimap'));
		this.canvas = this.box.appendChild(element('canvas'));
		this.sight = this.box.appendChild(element('div', '', 'sight'));
		this.canvas.setAttribute('aria-hidden', 'true');
		this.box.addEventListener('pointerdown', event => {
			this.box.setPointerCapture(event.pointerId);
			this.go(event);
		});
		this.box.addEventListener('pointermove', event => event.buttons && this.go(event));
		painter.onSize = isTall => holder.classList.toggle('tall', this.isTall = isTall);
		painter.onDrawn = () => this.follow();
	}

	// Shows where the painter is, and draws anew if the tree, its colours or its size are others.
	follow() {
		const { painter } = this, { tree, full, height, from, to, icicle } = painter;
		const look = [full, height, icicle, painter.colouredFor, this.box.clientWidth].join();

		if (!this.isTall)
			return;
		const wide = this.box.clientWidth, { style } = this.sight, all = tree.width[0] || 1;

		style.left = `${from / all * wide}px`;
		style.width = `${Math.max(3, (to - from) / all * wide)}px`;
		style.top = `${painter.scroller.scrollTop / full * height}px`;
		style.height = `${Math.max(6, height / full * height)}px`;
		if (this.tree === tree && this.look === look)
			return;
		this.tree = tree;
		this.look = look;
		clearTimeout(this.later); // while a page is loaded it changes its size
		this.later = setTimeout(() => this.draw(this.box.clientWidth, painter.height), 50);
	}

	draw(wide, height) {
		const { painter, canvas } = this, { tree } = painter, context = canvas.getContext('2d'), rows = Math.max(tree.rows.length, painter.full / ROW);
		const scale = devicePixelRatio || 1, high = height / rows, across = wide / (tree.width[0] || 1);

		canvas.width = Math.round(wide * scale);
		canvas.height = Math.round(height * scale);
		context.setTransform(scale, 0, 0, scale, 0, 0);
		tree.rows.forEach((row, depth) => {
			const starts = tree.rowStart[depth], ends = tree.rowEnd[depth], top = painter.icicle ? depth * high : height - (depth + 1) * high;
			let right = -1;

			for (let i = this.next(ends, 0); i < row.length; i = this.next(ends, (right + 1) / across)) { // a pixel's last box stands for all in it
				context.fillStyle = css(painter.fillOf(row[i]));
				context.fillRect(starts[i] * across, top, Math.max(1, (ends[i] - starts[i]) * across), Math.max(1, high));
				right = ends[i] * across;
			}
		});
	}

	// The index of the first end at or behind a place.
	next(ends, place) {
		let low = 0, high = ends.length;

		while (low < high) {
			const middle = (low + high) >> 1;

			if (ends[middle] < place)
				low = middle + 1;
			else
				high = middle;
		}
		return low;
	}

	go(event) {
		const { painter } = this, box = this.box.getBoundingClientRect();

		painter.scroller.scrollTop = (event.clientY - box.top) / painter.height * painter.full - painter.height / 2;
	}
}
