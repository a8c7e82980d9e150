// SPDX-License-Identifier: Apache-2.0
// What can be done to the stacks: each chip is a change of the tree's nodes that can be taken away again. chip: { does, by, of }: `of` is a
// frame or, by kind, a kind; by module all frames of that frame's file are meant. By label it is a label: such a chip chooses samples.
'use strict';

const MAX_INVERTED = 3e6; // nodes

// 1 for each frame that the chip is about.
function framesOf(profile, { by, of }) {
	const path = profile.framePath[of];

	return profile.frameKind.map((kind, frame) => (by === 'kind' ? kind === of : by === 'module' ? profile.framePath[frame] === path : frame === of) ? 1 : 0);
}

function nameOfChip(profile, { by, of }) {
	return by === 'label' ? profile.labels[of] : by === 'kind' ? kindOf(profile.kinds[of]).label : by === 'module' ? baseName(profile.framePath[of]) : profile.frameName[of];
}

// 1 for each node at or under one of these frames.
function nodesUnder({ parent, frame }, hits) {
	const inside = new Uint8Array(parent.length);

	for (let i = 1; i < parent.length; i++)
		inside[i] = inside[parent[i]] | hits[frame[i]];
	return inside;
}

// Leaves out the samples of the nodes that are not wanted.
function keepNodes(nodes, wanted) {
	const keep = sums => sums && sums.map((value, i) => wanted(i) ? value : 0);

	return { ...nodes, self: keep(nodes.self), before: keep(nodes.before), after: keep(nodes.after) };
}

// image(i, builder, images): the new node of a node. What ends in it goes there, its lines only if it has the same frame.
function mapNodes(profile, nodes, image) {
	const builder = new TreeBuilder(profile, nodes.frame[0]), images = new Uint32Array(nodes.parent.length);

	for (let i = 0; i < images.length; i++) {
		images[i] = i ? image(i, builder, images) : 0;
		builder.add(images[i], builder.frame[images[i]] === nodes.frame[i] ? nodes : { minLine: [] }, nodes, i);
	}
	return builder.nodes(nodes);
}

// What ends in such a frame counts for its caller.
const mergeFrames = (profile, nodes, hits) => mapNodes(profile, nodes, (i, builder, images) =>
	hits[nodes.frame[i]] ? images[nodes.parent[i]] : builder.child(images[nodes.parent[i]], nodes.frame[i]));

// All that such a frame calls counts for itself.
function collapseFrames(profile, nodes, hits) {
	const inside = nodesUnder(nodes, hits);

	return mapNodes(profile, nodes, (i, builder, images) =>
		inside[nodes.parent[i]] ? images[nodes.parent[i]] : builder.child(images[nodes.parent[i]], nodes.frame[i]));
}

// A call from within such a frame to such a frame continues the outer one.
function collapseRecursion(profile, nodes, hits) {
	const outer = new Uint32Array(nodes.parent.length);

	return mapNodes(profile, nodes, (i, builder, images) => {
		const above = outer[nodes.parent[i]], isOne = hits[nodes.frame[i]];
		const image = isOne && above ? above : builder.child(images[nodes.parent[i]], nodes.frame[i]);

		outer[i] = above || (isOne ? image : 0);
		return image;
	});
}

const CHIPS = {
	focus: { label: 'only with', key: 'f', apply: (profile, nodes, hits) => {
		const inside = nodesUnder(nodes, hits);

		return keepNodes(nodes, i => inside[i]);
	} },
	hide: { label: 'without', key: 'h', apply: (profile, nodes, hits) => {
		const inside = nodesUnder(nodes, hits);

		return keepNodes(nodes, i => !inside[i]);
	} },
	merge: { label: 'merged:', key: 'm', apply: mergeFrames },
	collapse: { label: 'closed:', key: 'd', apply: collapseFrames },
	recursion: { label: 'no recursion of', key: 'u', apply: collapseRecursion },
};

// The tree from its leaves: what runs, below it its callers. Callers beyond a depth are left out if there were too many boxes; `depth` says
// which, 0: none.
function invertedTree(tree) {
	const builder = new TreeBuilder(tree.profile, tree.frame[0]), own = ownSums(tree), { parent, frame, depth } = tree;
	const counts = new Uint32Array(tree.rows.length + 1), isIn = i => own.self[i] || (own.before && (own.before[i] || own.after[i]));
	let limit = 0, nr = 0;

	for (let i = 0; i < tree.nr; i++)
		if (isIn(i))
			counts[Math.min(depth[i], counts.length - 1)]++;
	for (let left = counts.reduce((sum, value) => sum + value, 0); limit < counts.length && nr + left <= MAX_INVERTED; limit++) {
		left -= counts[limit];
		nr += left;
	}
	for (let i = 0; i < tree.nr; i++) {
		let node = 0, left = limit;

		if (!isIn(i))
			continue;
		for (let at = i; at && left; at = parent[at], left--)
			node = builder.child(node, frame[at]);
		builder.add(node, { minLine: [] }, own, i);
	}
	const inverted = builder.tree(tree);

	inverted.limit = limit < counts.length ? limit : 0;
	return inverted;
}
