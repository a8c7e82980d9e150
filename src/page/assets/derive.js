// SPDX-License-Identifier: Apache-2.0
// Derives trees and tables from a profile: the filtered call tree, the callers and callees of a function, sums per function.
'use strict';

const NOT_FUNCTIONS = ['all', 'process', 'thread', 'comm', 'idle'];
const NO_CODE = [...NOT_FUNCTIONS, 'mark', 'missed', 'running', 'ready', 'blocked', 'wait', 'waker'];
const SUMS = ['self', 'before', 'after'];

// Builds a tree node by node: equal (parent, frame) are one node.
class TreeBuilder {
	constructor(profile, rootFrame) {
		this.profile = profile;
		this.parent = [0];
		this.frame = [rootFrame];
		this.index = new Map();
		this.sums = { self: [0], before: [0], after: [0] };
		this.minLine = [0];
		this.maxLine = [0];
	}

	child(parent, frame) {
		const key = parent * this.profile.nrFrames + frame;
		let node = this.index.get(key);

		if (node === undefined) {
			node = this.parent.push(parent) - 1;
			this.frame.push(frame);
			this.minLine.push(0);
			this.maxLine.push(0);
			for (const name of SUMS)
				this.sums[name].push(0);
			this.index.set(key, node);
		}
		return node;
	}

	add(node, from, sums, at) {
		for (const name of SUMS)
			this.sums[name][node] += sums[name] ? sums[name][at] : 0;
		if (from.minLine.length && from.minLine[at]) {
			this.minLine[node] = Math.min(this.minLine[node] || Infinity, from.minLine[at]);
			this.maxLine[node] = Math.max(this.maxLine[node], from.maxLine[at]);
		}
	}

	nodes({ before, isLarger }) {
		return {
			parent: Uint32Array.from(this.parent), frame: Uint32Array.from(this.frame), self: Float64Array.from(this.sums.self), isLarger,
			before: before && Float64Array.from(this.sums.before), after: before && Float64Array.from(this.sums.after),
			minLine: Uint32Array.from(this.minLine), maxLine: Uint32Array.from(this.maxLine),
		};
	}

	tree(like) {
		return new Tree(this.profile, this.nodes(like));
	}
}

// choice: { value, threads, range, hidden, chips }. Of a difference, value 2 is the larger of both sides.
function callTree(profile, choice, isIdleOpen) {
	let nodes = {
		parent: profile.parent, frame: profile.frame, minLine: profile.minLine, maxLine: profile.maxLine, isLarger: profile.isDiff && choice.value > 1,
		self: profile.sums(Math.min(choice.value, profile.values.length - 1), choice),
		before: profile.isDiff ? profile.sums(0, choice) : null,
		after: profile.isDiff ? profile.sums(1, choice) : null,
	};

	if (choice.hidden.some(Boolean))
		nodes = mergeFrames(profile, nodes, profile.frameKind.map(kind => choice.hidden[kind] ? 1 : 0));
	for (const chip of choice.chips.filter(({ by }) => by !== 'label')) // those of labels choose samples
		nodes = CHIPS[chip.does].apply(profile, nodes, framesOf(profile, chip));
	return new Tree(profile, nodes, profile.idle && !isIdleOpen ? profile.frame[profile.idle] : -1);
}

// Each node's own sums. addUp has turned before and after of a laid-out tree into totals, so the children are subtracted again.
function ownSums(tree) {
	const own = { self: tree.self, before: null, after: null };

	if (!tree.before)
		return own;
	own.before = tree.before.slice();
	own.after = tree.after.slice();
	for (let i = tree.nr - 1; i > 0; i--) {
		own.before[tree.parent[i]] -= tree.before[i];
		own.after[tree.parent[i]] -= tree.after[i];
	}
	return own;
}

// The callees of a function: what its outermost calls lead to.
function calleesOf(tree, frame) {
	const builder = new TreeBuilder(tree.profile, frame), image = new Int32Array(tree.nr).fill(-1), own = ownSums(tree);

	for (let i = 1; i < tree.nr; i++) {
		const above = image[tree.parent[i]];

		if (above < 0 && tree.frame[i] !== frame)
			continue;
		image[i] = above < 0 ? 0 : builder.child(above, tree.frame[i]);
		builder.add(image[i], tree, own, i);
	}
	return builder.tree(tree);
}

// The callers of a function, the nearest first. Each outermost call counts once, so both graphs are as wide as the function's total.
function callersOf(tree, frame) {
	const builder = new TreeBuilder(tree.profile, frame), inside = new Uint8Array(tree.nr);
	const sums = { self: tree.total, before: tree.before, after: tree.after };

	for (let i = 1; i < tree.nr; i++) {
		const isOne = tree.frame[i] === frame;
		let node = 0;

		inside[i] = inside[tree.parent[i]] || isOne ? 1 : 0;
		if (!isOne || inside[tree.parent[i]])
			continue;
		for (let at = tree.parent[i]; at > 0; at = tree.parent[at])
			node = builder.child(node, tree.frame[at]);
		builder.add(node, { minLine: [] }, sums, i);
	}
	return builder.tree(tree);
}

// Self and total per frame; a function that calls itself counts once.
function functionsOf(tree) {
	const sums = new Map(), onPath = new Uint32Array(tree.profile.nrFrames);
	const own = ownSums(tree), isNone = tree.profile.kinds.map(kind => NOT_FUNCTIONS.includes(kind));
	const open = tree.nr ? [0] : [];

	while (open.length) {
		const node = open.pop();

		if (node < 0) { // second visit: leave the node
			onPath[tree.frame[~node]]--;
			continue;
		}
		const frame = tree.frame[node], isOutermost = !onPath[frame]++;

		open.push(~node);
		for (let child = tree.firstChild[node]; child; child = tree.nextSibling[child])
			open.push(child);
		if (isNone[tree.profile.frameKind[frame]] || (!tree.total[node] && !tree.width[node] && !(tree.before && tree.before[node])))
			continue;
		let row = sums.get(frame);

		if (!row)
			sums.set(frame, row = { frame, self: 0, total: 0, before: 0, after: 0, selfBefore: 0, selfAfter: 0 });
		row.self += tree.self[node];
		if (tree.before) {
			row.selfBefore += own.before[node];
			row.selfAfter += own.after[node];
		}
		if (isOutermost) {
			row.total += tree.total[node];
			row.before += tree.before ? tree.before[node] : 0;
			row.after += tree.before ? tree.after[node] : 0;
		}
	}
	return [...sums.values()];
}
