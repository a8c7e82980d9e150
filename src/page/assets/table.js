// SPDX-License-Identifier: Apache-2.0
// The functions as a sortable table. Only the visible rows are in the page.
'use strict';

const TABLE_ROW = 26; // pixels, as in page.css
const CHANGES = ['change', 'totalChange']; // sorted by their size, not by their sign

class Table {
	// listener: { choose(row), sandwich(frame) }
	constructor(holder, listener) {
		this.listener = listener;
		this.holder = holder;
		this.table = holder.querySelector('table');
		this.head = this.table.tHead.rows[0];
		this.body = this.table.tBodies[0];
		this.rows = this.all = [];
		this.order = ['self', -1];
		this.active = 0;
		holder.addEventListener('scroll', () => this.draw());
		holder.addEventListener('keydown', event => this.key(event));
		new ResizeObserver(() => this.draw()).observe(holder);
		this.body.addEventListener('click', event => {
			const line = event.target.closest('tr[data-row]');

			if (line)
				this.choose(Number(line.dataset.row));
		});
	}

	setFunctions(tree, type, isDiff) {
		const { profile } = tree;

		this.profile = profile;
		this.whole = tree.total[0];
		this.type = type;
		this.sides = profile.sides;
		this.columns = [...(isDiff ? [['change', 'Change'], ['selfBefore', 'Self before'], ['selfAfter', 'Self after'], ['totalChange', 'Total change']] :
			[['self', 'Self'], ['total', 'Total']]), ['name', 'Function'], ['kind', 'Kind'], ['path', 'File']];
		this.all = tree.functions();
		for (const row of this.all) {
			if (isDiff) {
				row.change = pointsOf(profile.sides, row.selfBefore, row.selfAfter);
				row.totalChange = pointsOf(profile.sides, row.before, row.after);
			}
			row.name = profile.frameName[row.frame];
			row.kind = kindOf(profile.kinds[profile.frameKind[row.frame]]).label;
			row.path = profile.framePath[row.frame];
		}
		if (!this.columns.some(([key]) => key === this.order[0]))
			this.order = [isDiff ? 'change' : 'self', -1];
		this.fillHead();
		this.refresh();
	}

	// found: by frame, or null for all.
	filter(found) {
		this.found = found;
		this.refresh();
	}

	sort(key) {
		const isText = ['name', 'kind', 'path'].includes(key);

		this.order = [key, this.order[0] === key ? -this.order[1] : isText ? 1 : -1];
		this.fillHead();
		this.refresh();
	}

	refresh() {
		const [key, sign] = this.order, of = CHANGES.includes(key) ? row => Math.abs(row[key]) : row => row[key];

		this.rows = this.found ? this.all.filter(row => this.found[row.frame]) : this.all.slice();
		this.rows.sort((a, b) => sign * (of(a) < of(b) ? -1 : of(a) > of(b) ? 1 : 0) || b.total - a.total || a.frame - b.frame);
		this.active = clamp(this.active, 0, Math.max(0, this.rows.length - 1));
		this.table.setAttribute('aria-rowcount', this.rows.length + 1);
		this.draw();
	}

	fillHead() {
		this.head.replaceChildren(...this.columns.map(([key, label]) => {
			const cell = element('th', '', `col-${key}`), button = cell.appendChild(element('button', label));

			cell.scope = 'col';
			cell.setAttribute('aria-sort', this.order[0] !== key ? 'none' : this.order[1] < 0 ? 'descending' : 'ascending');
			button.type = 'button';
			button.addEventListener('click', () => {
				this.sort(key);
				this.head.querySelector(`.col-${key} button`).focus();
			});
			return cell;
		}));
	}

	amount(value) {
		return this.type.unit === 'count' ? count.format(value) : quantity(value, this.type);
	}

	cell(row, key) {
		const cell = element('td', '', `col-${key}`);

		if (key === 'self' || key === 'total') {
			const bar = cell.appendChild(element('span', '', 'bar-track')).appendChild(element('span', '', 'bar-fill'));

			bar.style.width = `${clamp(100 * Math.abs(row[key]) / (Math.abs(this.whole) || 1), 0, 100)}%`;
			cell.append(element('span', share(row[key], this.whole), 'percent'), element('span', this.amount(row[key]), 'amount'));
		} else if (key === 'selfBefore' || key === 'selfAfter') { // true counts: those of the page are scaled
			const { all, whole } = this.sides[key === 'selfBefore' ? 0 : 1];

			cell.append(element('span', share(row[key], whole), 'percent'), element('span', this.amount(Math.round(row[key] * all / (whole || 1))), 'amount'));
		} else if (CHANGES.includes(key)) {
			const noisy = key === 'change' ? isNoise(this.sides, row.selfBefore, row.selfAfter) : isNoise(this.sides, row.before, row.after);

			cell.className += noisy ? ' noise' : row[key] > 0 ? ' grown' : ' shrunk';
			cell.title = noisy ? 'within the noise of counts' : 'points of percent';
			cell.append(element('span', `${signed(row[key])}${noisy && row[key] ? ' ~' : ''}`, 'percent'));
		} else {
			cell.textContent = short(row[key]);
			cell.title = short(row[key]);
		}
		return cell;
	}

	line(i) {
		const row = this.rows[i], line = element('tr', '', i === this.active ? 'active' : '');

		line.id = `row-${i}`;
		line.dataset.row = i;
		line.setAttribute('aria-rowindex', i + 2);
		line.setAttribute('aria-selected', String(i === this.active));
		line.append(...this.columns.map(([key]) => this.cell(row, key)));
		return line;
	}

	space(rows) {
		const line = element('tr', '', 'space');

		line.setAttribute('aria-hidden', 'true');
		line.style.height = `${rows * TABLE_ROW}px`;
		return line;
	}

	draw() {
		const first = clamp(Math.floor(this.holder.scrollTop / TABLE_ROW) - 5, 0, this.rows.length);
		const last = Math.min(this.rows.length, first + Math.ceil((this.holder.clientHeight || 600) / TABLE_ROW) + 12), lines = [];

		for (let i = first; i < last; i++)
			lines.push(this.line(i));
		if (!this.rows.length && this.columns) {
			const line = element('tr'), cell = line.appendChild(element('td', this.all.length ? 'No function matches the search.' : 'No functions.', 'none'));

			cell.colSpan = this.columns.length;
			lines.push(line);
		}
		this.body.replaceChildren(this.space(first), ...lines, this.space(this.rows.length - last));
		if (this.rows.length)
			this.holder.setAttribute('aria-activedescendant', lines[this.active - first]?.id || '');
		else
			this.holder.removeAttribute('aria-activedescendant');
	}

	reveal() {
		const top = this.active * TABLE_ROW, seen = this.holder.clientHeight - 2 * TABLE_ROW;

		this.holder.scrollTop = clamp(this.holder.scrollTop, top - seen, top);
		this.draw();
	}

	choose(i) {
		this.active = i;
		this.draw();
		this.listener.choose(this.rows[i]);
	}

	key(event) {
		const page = Math.max(1, Math.floor(this.holder.clientHeight / TABLE_ROW) - 2);
		const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };

		if (event.target !== this.holder || event.ctrlKey || event.altKey || event.metaKey || !this.rows.length)
			return;
		if (Object.hasOwn(steps, event.key)) {
			this.active = clamp(this.active + steps[event.key], 0, this.rows.length - 1);
			this.reveal();
		} else if (event.key === 'Enter') {
			this.choose(this.active);
		} else if (event.key === 's') {
			this.listener.sandwich(this.rows[this.active].frame);
		} else {
			return;
		}
		event.preventDefault();
	}
}
