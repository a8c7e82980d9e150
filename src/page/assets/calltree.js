// SPDX-License-Identifier: Apache-2.0
// The tree of calls as an outline: rows that open and close, with numbers.
'use strict';

const INDENT = 14; // pixels
const MAX_INDENT = 40; // levels

class CallTree extends Table {
	// Shows the way to a node, and the widest way from it on while that has most of it.
	setTree(tree, type, isDiff, selected) {
		Object.assign(this, { tree, type, profile: tree.profile, sides: tree.profile.sides, whole: tree.total[0], open: new Set([0]) });
		this.columns = [...(isDiff ? [['totalChange', 'Change'], ['selfBefore', 'Before'], ['selfAfter', 'After']] : [['total', 'Total'], ['self', 'Self']]),
			['name', 'Function']];
		this.isDiff = isDiff;
		for (let node = selected > 0 ? tree.parent[selected] : 0; node; node = tree.parent[node])
			this.open.add(node);
		for (let node = Math.max(0, selected), [child] = tree.children(node); selected <= 0 && child && tree.width[child] > tree.width[node] / 2; [child] = tree.children(node))
			this.open.add(node = child);
		this.fillHead();
		this.refresh();
		this.active = Math.max(0, this.rows.findIndex(({ node }) => node === selected));
		this.reveal();
	}

	fillHead() {
		this.table.setAttribute('role', 'treegrid');
		this.head.replaceChildren(...this.columns.map(([key, label]) => {
			const cell = element('th', label, `col-${key} plain`);

			cell.scope = 'col';
			return cell;
		}));
	}

	row(node) {
		const { tree, profile } = this, frame = tree.frame[node], row = { node, frame, name: profile.frameName[frame], self: tree.self[node], total: tree.total[node] };

		if (this.isDiff)
			Object.assign(row, { selfBefore: tree.before[node], selfAfter: tree.after[node], before: tree.before[node], after: tree.after[node], totalChange: tree.points(node) });
		return row;
	}

	// The rows from the root on, the widest of each level first.
	refresh() {
		const open = [0];

		this.rows = [];
		while (open.length && this.tree.width[0] > 0) {
			const node = open.pop();

			this.rows.push(this.row(node));
			if (this.open.has(node))
				open.push(...this.tree.children(node).reverse());
		}
		this.all = this.rows;
		this.active = clamp(this.active, 0, Math.max(0, this.rows.length - 1));
		this.table.setAttribute('aria-rowcount', this.rows.length + 1);
		this.draw();
	}

	cell(row, key) {
		const cell = super.cell(row, key);

		if (key !== 'name')
			return cell;
		const hasMore = this.tree.firstChild[row.node], sign = element('span', hasMore ? this.open.has(row.node) ? '▾' : '▸' : '', 'twisty');

		cell.style.paddingLeft = `${8 + INDENT * Math.min(MAX_INDENT, this.tree.depth[row.node])}px`;
		cell.classList.toggle('found', Boolean(this.found && this.found[row.frame]));
		cell.prepend(sign);
		return cell;
	}

	line(i) {
		const line = super.line(i), { node } = this.rows[i];

		line.id = `tree-${line.id}`;
		line.setAttribute('aria-level', this.tree.depth[node] + 1);
		if (this.tree.firstChild[node])
			line.setAttribute('aria-expanded', String(this.open.has(node)));
		return line;
	}

	toggle(i, isOpen) {
		const { node } = this.rows[i];

		if (isOpen)
			this.open.add(node);
		else
			this.open.delete(node);
		this.refresh();
	}

	choose(i) {
		this.active = i;
		this.toggle(i, !this.open.has(this.rows[i].node));
	}

	key(event) {
		const row = this.rows[this.active];

		if (event.target !== this.holder || !row || event.ctrlKey || event.altKey || event.metaKey)
			return;
		if (event.key === 'ArrowRight' && !this.open.has(row.node)) {
			this.toggle(this.active, true);
		} else if (event.key === 'ArrowLeft') {
			if (this.open.has(row.node))
				this.toggle(this.active, false);
			else
				this.active = this.rows.findIndex(({ node }) => node === this.tree.parent[row.node]);
			this.reveal();
		} else if (event.key === 'Enter') {
			this.listener.choose(row);
		} else {
			super.key(event);
			return;
		}
		event.preventDefault();
	}
}
