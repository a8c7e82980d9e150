// SPDX-License-Identifier: Apache-2.0
// The call tree: from the page's JSON to arrays that are fast to draw and to ask.
'use strict';

// Controls and marks that would turn the writing direction; names are strangers' texts.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

class Tree {
	constructor(data) {
		this.nr = data.nodes.length / 3;
		this.kinds = data.kinds;
		this.paths = data.paths;
		this.frameName = data.frames.map(([name]) => String(name).replace(UNSEEN, '?'));
		this.framePath = data.frames.map(frame => frame[1]);
		this.frameKind = data.frames.map(frame => frame[2]);
		this.parent = new Uint32Array(this.nr);
		this.frame = new Uint32Array(this.nr);
		this.self = new Float64Array(this.nr);
		for (let i = 0; i < this.nr; i++) {
			this.parent[i] = data.nodes[3 * i];
			this.frame[i] = data.nodes[3 * i + 1];
			this.self[i] = Number(data.nodes[3 * i + 2]);
		}
		this.total = this.self.slice();
		this.depth = new Uint32Array(this.nr);
		for (let i = this.nr - 1; i > 0; i--) // parents have smaller numbers
			this.total[this.parent[i]] += this.total[i];
		for (let i = 1; i < this.nr; i++)
			this.depth[i] = this.depth[this.parent[i]] + 1;
		this.layOut();
	}

	name(node) {
		const frame = this.frame[node];

		if (this.kind(node) === 'all')
			return 'all';
		return this.kind(node) === 'thread' ? `thread ${this.frameName[frame]}` : this.frameName[frame] || '(no name)';
	}

	path(node) {
		return this.paths[this.framePath[this.frame[node]]].replace(UNSEEN, '?');
	}

	kind(node) {
		return this.kinds[this.frameKind[this.frame[node]]];
	}

	end(node) {
		return this.start[node] + this.total[node];
	}

	// Children stand from the left, the biggest first; what is the parent's own stays free at the right. rows[depth] are
	// the nodes of a depth from left to right.
	layOut() {
		const children = new Map();

		this.start = new Float64Array(this.nr);
		for (let i = 1; i < this.nr; i++) {
			const siblings = children.get(this.parent[i]);

			if (siblings)
				siblings.push(i);
			else
				children.set(this.parent[i], [i]);
		}
		this.rows = [];
		for (let row = [0]; row.length;) {
			const next = [];

			this.rows.push(row);
			for (const node of row) {
				let at = this.start[node];

				for (const child of this.sorted(children.get(node) || [])) {
					this.start[child] = at;
					at += this.total[child];
					next.push(child);
				}
			}
			row = next;
		}
	}

	sorted(nodes) {
		const name = node => this.frameName[this.frame[node]];

		return nodes.sort((a, b) => this.total[b] - this.total[a] || (name(a) < name(b) ? -1 : name(a) > name(b) ? 1 : a - b));
	}

	// The place in rows[depth] of the last node that starts at or before `at`; -1 when there is none.
	find(depth, at) {
		const row = this.rows[depth] || [];
		let low = 0, high = row.length;

		while (low < high) {
			const middle = (low + high) >> 1;

			if (this.start[row[middle]] <= at)
				low = middle + 1;
			else
				high = middle;
		}
		return low - 1;
	}

	// The node at a depth and place, or -1.
	at(depth, at) {
		const i = this.find(depth, at);

		return i >= 0 && at < this.end(this.rows[depth][i]) ? this.rows[depth][i] : -1;
	}

	isAncestor(ancestor, node) {
		while (this.depth[node] > this.depth[ancestor])
			node = this.parent[node];
		return node === ancestor;
	}

	// Which frames' names match, and the ticks under them: those of matches inside matches once.
	match(pattern) {
		const frames = this.frameName.map(name => pattern.test(name));
		const covered = new Uint8Array(this.nr);
		let ticks = 0;

		frames[this.frame[0]] = false; // all
		for (let i = 1; i < this.nr; i++) {
			const inside = covered[this.parent[i]];

			covered[i] = inside || frames[this.frame[i]];
			if (covered[i] && !inside)
				ticks += this.total[i];
		}
		return { frames, ticks };
	}
}
