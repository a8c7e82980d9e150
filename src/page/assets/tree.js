// SPDX-License-Identifier: Apache-2.0
// A laid-out call tree. Nodes are numbers, parents before their children, and 0 is the root. A node's width is the sum of the absolute
// values of what ends at or below it; in a difference the larger of both sides, or what its children need. Sums may be negative, widths
// never.
'use strict';

class Tree {
	// nodes: { parent, frame, self, before, after, minLine, maxLine }. before and after: own sums of a diff, or null.
	// closed: the frame whose box shows nothing of what it calls.
	constructor(profile, nodes, closed = -1) {
		Object.assign(this, nodes, { profile, nr: nodes.parent.length, closed });
		this.width = this.self.map(Math.abs);
		this.total = this.self.slice();
		this.depth = new Uint32Array(this.nr);
		this.addUp(this.width);
		this.addUp(this.total);
		if (this.before) {
			this.addUp(this.before = this.before.slice());
			this.addUp(this.after = this.after.slice());
			if (this.isLarger)
				this.widen();
		}
		for (let i = 1; i < this.nr; i++)
			this.depth[i] = this.depth[this.parent[i]] + 1;
		this.linkChildren();
		this.layOut();
	}

	addUp(sums) {
		for (let i = this.nr - 1; i > 0; i--)
			sums[this.parent[i]] += sums[i];
	}

	widen() {
		const below = new Float64Array(this.nr);

		for (let i = this.nr - 1; i >= 0; i--) {
			this.width[i] = Math.max(Math.abs(this.before[i]), Math.abs(this.after[i]), below[i]);
			if (i)
				below[this.parent[i]] += this.width[i];
		}
	}

	functions() {
		return this.rowsOfFunctions ||= functionsOf(this);
	}

	// Of a difference: the change in points of percent, and the greatest of all.
	points(node) {
		return pointsOf(this.profile.sides, this.before[node], this.after[node]);
	}

	isNoise(node) {
		return isNoise(this.profile.sides, this.before[node], this.after[node]);
	}

	mostPoints() {
		let most = 1;

		for (let i = 1; this.before && i < this.nr; i++)
			most = Math.max(most, Math.abs(this.points(i)));
		return most;
	}

	name(node) {
		return this.profile.frameName[this.frame[node]];
	}

	kind(node) {
		return this.profile.kinds[this.profile.frameKind[this.frame[node]]];
	}

	end(node) {
		return this.start[node] + this.width[node];
	}

	linkChildren() {
		this.firstChild = new Uint32Array(this.nr); // 0: none
		this.nextSibling = new Uint32Array(this.nr);
		for (let i = this.nr - 1; i > 0; i--) {
			this.nextSibling[i] = this.firstChild[this.parent[i]];
			this.firstChild[this.parent[i]] = i;
		}
	}

	// Children with a width, the widest first; idle threads last.
	children(node) {
		const found = [];

		for (let child = this.firstChild[node]; child; child = this.nextSibling[child]) {
			if (this.width[child] > 0)
				found.push(child);
		}
		if (found.length < 2)
			return found;
		const name = node => this.name(node), { idle } = this.profile;

		found.sort((a, b) => this.width[b] - this.width[a] || (name(a) < name(b) ? -1 : name(a) > name(b) ? 1 : a - b));
		if (!node && idle)
			found.sort((a, b) => (this.frame[a] === this.profile.frame[idle]) - (this.frame[b] === this.profile.frame[idle]));
		return found;
	}

	// Those that are drawn.
	shown(node) {
		return this.frame[node] === this.closed ? [] : this.children(node);
	}

	open() {
		this.closed = -1;
		this.layOut();
	}

	// Is it in a box that is closed?
	isInside(node) {
		for (let at = this.parent[node]; at; at = this.parent[at]) {
			if (this.frame[at] === this.closed)
				return true;
		}
		return false;
	}

	// Children are packed to the left; the parent's own part stays free at the right. rows[depth] has the nodes of a depth from left to right.
	// rowStart, rowEnd and rowFrame belong to them, so that drawing reads memory in order.
	layOut() {
		this.start = new Float64Array(this.nr);
		this.rows = [];
		this.rowStart = [];
		this.rowEnd = [];
		this.rowFrame = [];
		for (let row = [0]; row.length;) {
			const next = [];

			this.addRow(row);
			for (const node of row) {
				let at = this.start[node];

				for (const child of this.shown(node)) {
					this.start[child] = at;
					at += this.width[child];
					next.push(child);
				}
			}
			row = next;
		}
	}

	addRow(row) {
		const start = new Float64Array(row.length), end = new Float64Array(row.length), frame = new Uint32Array(row.length);

		for (let i = 0; i < row.length; i++) {
			start[i] = this.start[row[i]];
			end[i] = this.end(row[i]);
			frame[i] = this.frame[row[i]];
		}
		this.rows.push(Uint32Array.from(row));
		this.rowStart.push(start);
		this.rowEnd.push(end);
		this.rowFrame.push(frame);
	}

	// The index in rows[depth] of the last node that starts at or before `at`; -1: none.
	find(depth, at) {
		const starts = this.rowStart[depth] || [];
		let low = 0, high = starts.length;

		while (low < high) {
			const middle = (low + high) >> 1;

			if (starts[middle] <= at)
				low = middle + 1;
			else
				high = middle;
		}
		return low - 1;
	}

	// The node at a depth and position, or -1.
	at(depth, at) {
		const i = this.find(depth, at);

		return i >= 0 && at < this.end(this.rows[depth][i]) ? this.rows[depth][i] : -1;
	}

	isAncestor(ancestor, node) {
		while (this.depth[node] > this.depth[ancestor])
			node = this.parent[node];
		return node === ancestor;
	}

	// path: the frames from the root's child down to a node. follow: the deepest node that such a list leads to.
	path(node) {
		const frames = [];

		for (; node > 0; node = this.parent[node])
			frames.unshift(this.frame[node]);
		return frames;
	}

	follow(frames) {
		let node = 0;

		for (const frame of frames) {
			const child = this.children(node).find(child => this.frame[child] === frame);

			if (child === undefined)
				break;
			node = child;
		}
		return node;
	}

	// The outermost nodes of the frames in `found` (by frame), the widest first.
	outermost(found) {
		const nodes = [], inside = new Uint8Array(this.nr);

		for (let node = 1; node < this.nr; node++) {
			inside[node] = inside[this.parent[node]] || found[this.frame[node]] ? 1 : 0;
			if (inside[node] && !inside[this.parent[node]] && this.width[node] > 0)
				nodes.push(node);
		}
		return nodes.sort((a, b) => this.width[b] - this.width[a] || a - b);
	}

	// Lines for flame graph tools: the names from the process on, and the value that ends there.
	folded(from = 0) {
		const lines = [], name = node => this.name(node).replaceAll(';', ':');
		const above = this.path(from).slice(0, -1).map(frame => this.profile.frameName[frame].replaceAll(';', ':'));
		const open = [[from, from ? above.concat(name(from)) : []]];

		while (open.length) {
			const [node, names] = open.pop();

			if (this.self[node] && names.length)
				lines.push(`${names.join(';')} ${this.self[node]}`);
			for (const child of this.children(node))
				open.push([child, names.concat(name(child))]);
		}
		return lines.sort().join('\n') + '\n';
	}
}
