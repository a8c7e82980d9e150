// SPDX-License-Identifier: Apache-2.0
// Draws the tree on a canvas that covers what can be seen of it: only boxes in sight cost anything.
'use strict';

const ROW = 19;          // CSS pixels, with the gap below
const MIN_BOX = 0.8;     // of what is narrower, one box in this width is drawn
const MIN_TEXT = 26;     // narrower boxes have no text
const ZOOM_MS = 160;
const PADDING = 4;

// Hue, saturation, lightness, and how far hue and lightness vary with the name.
const COLOURS = {
	light: {
		all: [35, 10, 84, 0, 0], process: [35, 14, 80, 0, 3], thread: [35, 14, 86, 0, 2],
		native: [30, 88, 70, 14, 5], kernel: [208, 62, 76, 12, 4], missed: [340, 52, 82, 0, 0], mark: [340, 52, 82, 0, 0],
		match: [284, 62, 80, 0, 0], ink: '#1d1712', faint: 'rgb(253 252 250 / .5)', edge: '#211d19', stripe: 'rgb(120 10 50 / .22)',
	},
	dark: {
		all: [260, 5, 27, 0, 0], process: [260, 6, 30, 0, 3], thread: [260, 6, 26, 0, 2],
		native: [24, 52, 36, 13, 4], kernel: [210, 42, 38, 12, 4], missed: [338, 34, 34, 0, 0], mark: [338, 34, 34, 0, 0],
		match: [285, 46, 46, 0, 0], ink: '#fbf7f2', faint: 'rgb(23 22 26 / .5)', edge: '#fbf7f2', stripe: 'rgb(255 190 215 / .25)',
	},
};

function hashName(name) {
	let hash = 2166136261;

	for (let i = 0; i < name.length; i++)
		hash = Math.imul(hash ^ name.charCodeAt(i), 16777619);
	return hash >>> 0;
}

function colourOf(theme, kind, name) {
	const [hue, saturation, lightness, dHue, dLightness] = theme[kind];
	const hash = hashName(name);
	const vary = (by, bits) => by * ((bits & 255) / 127.5 - 1);

	return `hsl(${(hue + vary(dHue, hash)).toFixed(1)} ${saturation}% ${(lightness + vary(dLightness, hash >>> 8)).toFixed(1)}%)`;
}

class Painter {
	constructor(tree, canvas, scroller, spacer) {
		Object.assign(this, { tree, canvas, scroller, spacer });
		this.context = canvas.getContext('2d');
		this.dark = matchMedia('(prefers-color-scheme: dark)');
		this.calm = matchMedia('(prefers-reduced-motion: reduce)');
		this.zoomed = 0;
		this.selected = -1;
		this.hovered = -1;
		this.matches = null;  // per frame, or null without a search
		this.icicle = false;  // the root on top
		this.from = 0;        // what is in sight, in ticks
		this.to = tree.total[0] || 1;
		this.recolour();
		this.dark.addEventListener('change', () => this.recolour());
		scroller.addEventListener('scroll', () => this.draw());
		new ResizeObserver(() => this.resize()).observe(scroller);
	}

	recolour() {
		const tree = this.tree;

		this.theme = COLOURS[this.dark.matches ? 'dark' : 'light'];
		this.fills = tree.frameName.map((name, i) => colourOf(this.theme, tree.kinds[tree.frameKind[i]], name));
		this.matchFill = colourOf(this.theme, 'match', '');
		this.stripes = this.context.createPattern(stripesOf(this.theme), 'repeat');
		this.draw();
	}

	resize() {
		const scale = devicePixelRatio || 1;
		const bottom = this.scroller.scrollHeight - this.scroller.scrollTop - this.height;

		this.width = this.scroller.clientWidth;
		this.height = this.scroller.clientHeight;
		this.spacer.style.height = `${Math.max(this.height, this.tree.rows.length * ROW)}px`;
		this.canvas.style.height = `${this.height}px`;
		this.canvas.width = Math.round(this.width * scale);
		this.canvas.height = Math.round(this.height * scale);
		this.context.setTransform(scale, 0, 0, scale, 0, 0);
		if (!this.icicle) // the root is at the bottom and stays there
			this.scroller.scrollTop = this.scroller.scrollHeight - this.height - (bottom || 0);
		this.draw();
	}

	flip() {
		this.icicle = !this.icicle;
		this.scroller.scrollTop = this.icicle ? 0 : this.scroller.scrollHeight;
		this.draw();
	}

	zoom(node) {
		const from = this.from, to = this.to, aim = this.tree.start[node], aimTo = this.tree.end(node) || 1, began = performance.now();
		const step = now => {
			const part = this.calm.matches ? 1 : Math.min(1, Math.max(0, (now - began) / ZOOM_MS)), ease = part * (2 - part);

			if (this.zoomed !== node)
				return; // another zoom began
			this.from = from + (aim - from) * ease;
			this.to = to + (aimTo - to) * ease;
			this.draw();
			if (part < 1)
				requestAnimationFrame(step);
		};

		this.zoomed = node;
		step(this.calm.matches ? Infinity : began);
		requestAnimationFrame(step);
	}

	// The top of a depth's row on the canvas.
	rowTop(depth) {
		const full = parseFloat(this.spacer.style.height);
		const top = this.icicle ? depth * ROW : full - (depth + 1) * ROW;

		return top - this.scroller.scrollTop;
	}

	// The node under a point of the canvas, or -1.
	nodeAt(x, y) {
		const full = parseFloat(this.spacer.style.height), down = y + this.scroller.scrollTop;
		const depth = Math.floor((this.icicle ? down : full - down) / ROW);

		return depth < 0 ? -1 : this.tree.at(depth, this.from + x / this.width * (this.to - this.from));
	}

	reveal(node) {
		const top = this.rowTop(this.tree.depth[node]);

		if (top < 0)
			this.scroller.scrollTop += top - ROW;
		else if (top + ROW > this.height)
			this.scroller.scrollTop += top + 2 * ROW - this.height;
		this.draw();
	}

	draw() {
		if (this.pending || !this.width)
			return;
		this.pending = requestAnimationFrame(() => {
			this.pending = 0;
			this.drawNow();
		});
	}

	drawNow() {
		const context = this.context;

		context.clearRect(0, 0, this.width, this.height);
		context.font = `12px ${getComputedStyle(document.documentElement).getPropertyValue('--mono')}`;
		context.textBaseline = 'middle';
		this.letter = context.measureText('m').width;
		for (let depth = 0; depth < this.tree.rows.length; depth++) {
			const top = this.rowTop(depth);

			if (top > -ROW && top < this.height)
				this.drawRow(depth, top);
		}
	}

	drawRow(depth, top) {
		const tree = this.tree, row = tree.rows[depth], scale = this.width / (this.to - this.from);
		let drawnTo = -1;

		for (let i = Math.max(0, tree.find(depth, this.from)); i < row.length && tree.start[row[i]] < this.to; i++) {
			const left = Math.max(0, (tree.start[row[i]] - this.from) * scale);
			const right = Math.min(this.width, (tree.end(row[i]) - this.from) * scale);

			if (right <= 0 || right - drawnTo < MIN_BOX)
				continue;
			if (right - left < MIN_BOX)
				this.drawSliver(row[i], left, top);
			else
				this.drawBox(row[i], left, top, right - left);
			drawnTo = Math.max(right, left + MIN_BOX);
		}
	}

	// Too narrow for anything but its colour; there can be very many.
	drawSliver(node, left, top) {
		const frame = this.tree.frame[node];

		this.context.globalAlpha = this.matches && !this.matches[frame] ? 0.4 : 1;
		this.context.fillStyle = this.matches && this.matches[frame] ? this.matchFill : this.fills[frame];
		this.context.fillRect(left, top, MIN_BOX, ROW - 1);
		this.context.globalAlpha = 1;
	}

	drawBox(node, left, top, width) {
		const context = this.context, tree = this.tree, kind = tree.kind(node), frame = tree.frame[node];
		const matched = this.matches && this.matches[frame], gap = width > 3 ? 1 : 0;

		context.fillStyle = matched ? this.matchFill : this.fills[frame];
		context.fillRect(left, top, width - gap, ROW - 1);
		if (kind === 'mark' || kind === 'missed') {
			context.fillStyle = this.stripes;
			context.fillRect(left, top, width - gap, ROW - 1);
		}
		if (width > MIN_TEXT)
			this.drawText(tree.name(node), left + PADDING, top + ROW / 2, width - gap - 2 * PADDING);
		if ((this.matches && !matched) || (node !== this.zoomed && tree.depth[node] < tree.depth[this.zoomed])) {
			context.fillStyle = this.theme.faint;
			context.fillRect(left, top, width - gap, ROW - 1);
		}
		if (node === this.selected || node === this.hovered) {
			context.strokeStyle = this.theme.edge;
			context.lineWidth = node === this.selected ? 2 : 1;
			context.strokeRect(left + 1, top + 1, Math.max(1, width - gap - 2), ROW - 3);
		}
	}

	drawText(name, left, middle, width) {
		const context = this.context;
		const fits = text => /^[ -~]*$/.test(text) ? text.length * this.letter <= width : context.measureText(text).width <= width;
		let text = name.slice(0, Math.ceil(width / this.letter * 2) + 2); // enough for the narrowest letters

		context.fillStyle = this.theme.ink;
		if (!fits(name.length === text.length ? name : text + '…')) {
			text = Array.from(text.slice(0, Math.max(0, Math.floor(width / this.letter) - 1)));
			while (text.length && context.measureText(text.join('') + '…').width > width + 0.5)
				text.pop();
			if (text.length < 2)
				return;
			text = text.join('') + '…';
		}
		context.fillText(text, left, middle);
	}
}

// A tile of diagonal stripes: what is not known must look different without colour too.
function stripesOf(theme) {
	const tile = document.createElement('canvas'), context = tile.getContext('2d');

	tile.width = tile.height = 8;
	context.strokeStyle = theme.stripe;
	context.lineWidth = 2;
	for (const at of [-8, 0, 8]) {
		context.beginPath();
		context.moveTo(at - 1, 9);
		context.lineTo(at + 9, -1);
		context.stroke();
	}
	return tile;
}
