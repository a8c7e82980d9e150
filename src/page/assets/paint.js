// SPDX-License-Identifier: Apache-2.0
// Draws a tree on a canvas as large as the visible part: only visible boxes cost anything. Boxes too narrow to see are drawn as one as
// long as they are alike. `from` and `to` are the visible range of the tree's width.
'use strict';

const ROW = 20;          // CSS pixels, including the gap below
const MIN_BOX = 1;       // nothing is drawn narrower
const NARROW = 2;        // narrower boxes side by side are drawn together
const MIN_LETTERS = 5;   // of a name that is cut; less is no text
const SHARE = 46;        // pixels of a percentage
const PADDING = 5;

class Painter {
	constructor(canvas, scroller, spacer) {
		Object.assign(this, { canvas, scroller, spacer, zoomed: 0, selected: -1, hovered: -1, matches: null, icicle: false, isDiff: false, colouring: 'kind', forms: [] });
		this.context = canvas.getContext('2d');
		this.width = this.height = this.full = this.bottom = 0;
		scroller.addEventListener('scroll', () => this.scrolled());
		new ResizeObserver(() => this.resize()).observe(scroller);
	}

	setTree(tree) {
		this.tree = tree;
		this.whole = tree.total[0];
		this.zoomed = 0;
		this.selected = this.hovered = -1;
		this.look(0, tree.width[0]);
		this.most = this.isDiff ? tree.mostPoints() : 0;
		this.recolour();
		this.resize();
	}

	// Sets the visible range of the width.
	look(from, to) {
		this.from = from;
		this.to = to > from ? to : from + 1;
		this.draw();
	}

	setTheme(name) {
		this.themeName = name;
		this.theme = THEMES[name];
		this.stripes = this.context.createPattern(stripesOf(this.theme), 'repeat');
		this.letter = 0;
		if (this.tree)
			this.recolour();
	}

	recolour() {
		const { profile } = this.tree;

		if (this.colouredFor !== this.themeName + this.colouring || this.colouredProfile !== profile) {
			const hueOf = COLOURINGS[this.colouring];

			if (this.colouredProfile !== profile)
				this.forms = [];
			this.fills = profile.frameName.map((name, i) => {
				const text = hueOf(profile, i);

				return text ? hueColour(this.themeName, text) : colourOf(this.themeName, profile.kinds[profile.frameKind[i]], name);
			});
			this.runFills = profile.kinds.map(kind => css(colourOf(this.themeName, kind, '')));
			this.striped = profile.kinds.map(kind => Boolean(kindOf(kind).striped));
		}
		this.colouredFor = this.themeName + this.colouring;
		this.colouredProfile = profile;
		this.draw();
	}

	resize() {
		const scale = devicePixelRatio || 1;

		if (!this.tree || !this.scroller.clientWidth)
			return;
		this.onSize?.(this.tree.rows.length * ROW > this.scroller.clientHeight + ROW); // a map takes room
		this.width = this.scroller.clientWidth;
		this.height = this.scroller.clientHeight;
		this.full = Math.max(this.height, this.tree.rows.length * ROW);
		this.spacer.style.height = `${this.full}px`;
		this.canvas.style.height = `${this.height}px`;
		this.canvas.width = Math.round(this.width * scale);
		this.canvas.height = Math.round(this.height * scale);
		this.context.setTransform(scale, 0, 0, scale, 0, 0);
		if (!this.icicle) // the root is at the bottom and stays there
			this.scroller.scrollTop = this.full - this.height - this.bottom;
		this.draw();
	}

	scrolled() {
		if (this.scroller.clientHeight === this.height) // else the size has changed, and a resize follows
			this.bottom = Math.max(0, this.full - this.height - this.scroller.scrollTop);
		this.draw();
	}

	flip(icicle) {
		this.icicle = icicle;
		this.scroller.scrollTop = icicle ? 0 : this.scroller.scrollHeight;
		this.draw();
	}

	// The top of a depth's row on the canvas.
	rowTop(depth) {
		return (this.icicle ? depth * ROW : this.full - (depth + 1) * ROW) - this.scroller.scrollTop;
	}

	placeAt(x) {
		return this.from + x / this.width * (this.to - this.from);
	}

	// The node under a point of the canvas, or -1.
	nodeAt(x, y) {
		const down = y + this.scroller.scrollTop, depth = Math.floor((this.icicle ? down : this.full - down) / ROW);

		return depth < 0 ? -1 : this.tree.at(depth, this.placeAt(x));
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
		const first = Math.floor((this.icicle ? this.scroller.scrollTop : this.full - this.scroller.scrollTop - this.height) / ROW);
		const last = Math.min(this.tree.rows.length - 1, first + Math.ceil(this.height / ROW) + 1);

		context.clearRect(0, 0, this.width, this.height);
		if (!this.letter) {
			context.font = `12px ${getComputedStyle(document.documentElement).getPropertyValue('--mono')}`;
			this.font = context.font;
			this.letter = context.measureText('m').width;
		}
		context.font = this.font;
		context.textBaseline = 'middle';
		for (let depth = Math.max(0, first); depth <= last; depth++)
			this.drawRow(depth, this.rowTop(depth));
		this.outline(this.hovered, 1);
		this.outline(this.selected, 2);
		this.onDrawn?.();
	}

	// By its points of percent, from -1 to 1; 0 within noise.
	changeOf(node) {
		return this.tree.isNoise(node) ? 0 : this.tree.points(node) / this.most;
	}

	fillOf(node) {
		const frame = this.tree.frame[node];

		if (this.matches && this.matches[frame])
			return this.theme.match;
		return this.isDiff && node ? diffColour(this.theme, this.changeOf(node)) : this.fills[frame];
	}

	// Boxes drawn as one look alike: one kind (in a difference: about the same change), all or none of them found.
	drawRow(depth, top) {
		const { tree, from, to, matches } = this, row = tree.rows[depth], starts = tree.rowStart[depth], ends = tree.rowEnd[depth];
		const frames = tree.rowFrame[depth], kinds = tree.profile.frameKind, scale = this.width / (to - from);
		let look = -2, first = 0, left = 0, right = 0; // of the run; look -1: found, -2: no run

		for (let i = Math.max(0, tree.find(depth, from)); i < row.length && starts[i] < to; i++) {
			const boxLeft = Math.max(0, (starts[i] - from) * scale), boxRight = Math.min(this.width, (ends[i] - from) * scale);

			if (boxRight <= 0)
				continue;
			if (boxRight - boxLeft >= NARROW) {
				this.drawRun(look, first, left, right, top);
				look = -2;
				this.drawBox(row[i], boxLeft, top, boxRight - boxLeft);
				continue;
			}
			const boxLook = matches && matches[frames[i]] ? -1 : this.isDiff ?
				Math.round(4 + 4 * this.changeOf(row[i])) : kinds[frames[i]];

			if (boxLook === look && boxLeft - right < MIN_BOX / 2) {
				right = boxRight;
			} else if (look === -2 || boxLeft >= left + MIN_BOX || (boxLook < 0 && look >= 0)) {
				this.drawRun(look, first, left, right, top);
				look = boxLook;
				first = row[i];
				left = boxLeft;
				right = boxRight;
			}
		}
		this.drawRun(look, first, left, right, top);
	}

	drawRun(look, first, left, right, top) {
		if (look < -1)
			return;
		this.context.globalAlpha = this.matches && look >= 0 ? 0.4 : 0.85;
		this.context.fillStyle = this.isDiff || look < 0 || this.colouring !== 'kind' ? css(this.fillOf(first)) : this.runFills[look];
		this.context.fillRect(left, top, Math.max(MIN_BOX, right - left), ROW - 1);
		this.context.globalAlpha = 1;
	}

	drawBox(node, left, top, width) {
		const { context, tree } = this, frame = tree.frame[node], gap = width > 3 ? 1 : 0;
		const isFaint = (this.matches && !this.matches[frame]) || (node !== this.zoomed && tree.depth[node] < tree.depth[this.zoomed]);
		const fill = isFaint ? mix(this.fillOf(node), this.theme.faint, 0.62) : this.fillOf(node);

		context.fillStyle = css(fill);
		context.fillRect(left, top, width - gap, ROW - 1);
		if (this.striped[tree.profile.frameKind[frame]]) {
			context.fillStyle = this.stripes;
			context.fillRect(left, top, width - gap, ROW - 1);
		}
		if (width > (MIN_LETTERS - 2) * this.letter + 2 * PADDING)
			this.drawText(node, left + PADDING, top + ROW / 2, width - gap - 2 * PADDING, inkOn(fill));
	}

	outline(node, width) {
		const { context, tree } = this, scale = this.width / (this.to - this.from);

		if (node < 0)
			return;
		const left = Math.max(0, (tree.start[node] - this.from) * scale), right = Math.min(this.width, (tree.end(node) - this.from) * scale);

		if (right < left)
			return;
		context.strokeStyle = this.theme.edge;
		context.lineWidth = width;
		context.strokeRect(left + width / 2, this.rowTop(tree.depth[node]) + width / 2, Math.max(1, right - left - width - 1), ROW - 1 - width);
	}

	// The longest form of the name that fits, and in wide boxes the share. If none fits, the shortest is cut.
	drawText(node, left, middle, width, ink) {
		const { context } = this, frame = this.tree.frame[node], forms = this.forms[frame] ||= shortForms(this.tree.name(node));
		const fits = text => text.length * this.letter <= width || (/[^ -~]/.test(text) && text.length < width && context.measureText(text).width <= width);
		let text = forms.find(fits);

		context.fillStyle = ink;
		if (text === undefined) {
			const last = forms[forms.length - 1], letters = Array.from(last.slice(0, Math.ceil(width / this.letter) + 2));

			while (letters.length && !fits(letters.join('') + '…') && context.measureText(letters.join('') + '…').width > width + 0.5)
				letters.pop();
			if (letters.length < MIN_LETTERS)
				return;
			text = letters.join('') + '…';
		}
		context.fillText(text, left, middle);
		if (width > text.length * this.letter + SHARE + 20 && node && !this.isDiff) {
			context.textAlign = 'right';
			context.fillText(share(this.tree.total[node], this.whole), left + width, middle);
			context.textAlign = 'left';
		}
	}
}
