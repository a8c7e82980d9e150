// SPDX-License-Identifier: Apache-2.0
// Compares this page's profile with that of another page: both become one difference, as sonde diff makes it. Stacks are matched by names.
'use strict';

// The profile in a page or, by itself, as JSON. Throws if there is none.
function profileIn(text) {
	const mark = 'id="profile">', at = text.indexOf(mark), begin = at < 0 ? 0 : at + mark.length, end = text.indexOf('</' + 'script>', begin);
	const data = JSON.parse(end < 0 ? text.slice(begin) : text.slice(begin, end));

	if (data.format !== 'sonde-view' || data.version !== 1)
		throw new Error('not a page of sonde');
	return data;
}

class Comparison {
	constructor() {
		this.kinds = [];
		this.tables = { kinds: new Map(), strings: new Map(), frames: new Map(), threads: new Map(), nodes: new Map([['', 0]]), samples: new Map() };
		this.frames = { name: [], path: [], kind: [], file: [], line: [] };
		this.nodes = { up: [0], frame: [0], lines: [] };
		this.threads = { comm: [], process: [], tgid: [], tid: [] };
		this.samples = { node: [], thread: [], values: [[], []] };
	}

	// The number of an entry; `add` is called for a new one.
	number(table, key, add) {
		const known = this.tables[table];

		if (!known.has(key)) {
			known.set(key, known.size);
			add?.();
		}
		return known.get(key);
	}

	frame(data, i) {
		const { name, path, kind, file, line } = data.frames, kindName = data.kinds[kind[i]], text = n => this.number('strings', data.strings[n]);
		const called = kindName === 'thread' ? name[i] : data.strings[name[i]];
		const source = ['native', 'kernel'].includes(kindName) ? '' : data.strings[path[i]].split('/').pop();

		return this.number('frames', JSON.stringify([kindName, called, source]), () => {
			const entry = { name: kindName === 'thread' ? name[i] : text(name[i]), path: text(path[i]), kind: this.number('kinds', kindName), file: text(file[i]), line: line[i] };

			for (const [column, value] of Object.entries(entry))
				this.frames[column].push(value);
		});
	}

	thread(data, i) {
		const [comm, process] = ['comm', 'process'].map(column => this.number('strings', data.strings[data.threads[column][i]]));

		return this.number('threads', `${comm} ${process}`, () => {
			this.threads.comm.push(comm);
			this.threads.process.push(process);
			this.threads.tgid.push(0); // of another run: says nothing here
			this.threads.tid.push(0);
		});
	}

	// side: 0 before, 1 after. value: the number of the value that is compared.
	add(data, side, value) {
		const frames = data.frames.name.map((_, i) => this.frame(data, i)), threads = data.threads.comm.map((_, i) => this.thread(data, i));
		const image = new Uint32Array(data.nodes.up.length), { node, thread, values } = data.samples;

		for (let i = 1; i < image.length; i++) {
			const parent = image[i - data.nodes.up[i]], frame = frames[data.nodes.frame[i]];

			image[i] = this.number('nodes', parent * 4294967296 + frame, () => {
				this.nodes.up.push(this.nodes.frame.length - parent);
				this.nodes.frame.push(frame);
			});
		}
		this.nodes.frame[0] = frames[data.nodes.frame[0]];
		for (let i = 0; i < node.length; i++) {
			const at = this.number('samples', image[node[i]] * 4294967296 + threads[thread[i]], () => {
				this.samples.node.push(image[node[i]]);
				this.samples.thread.push(threads[thread[i]]);
				this.samples.values.forEach(column => column.push(0));
			});

			this.samples.values[side][at] += Number(values[value][i]);
		}
	}

	data(sides, unit, account) {
		const sums = this.samples.values.map(column => column.reduce((sum, value) => sum + value, 0)), whole = Math.max(...sums);

		if (!(sums[0] > 0 && sums[1] > 0))
			throw new Error('one of them has nothing to compare');
		return {
			format: 'sonde-view', version: 1, shown: 1, value_types: [['before', unit], ['after', unit]], kinds: [...this.tables.kinds.keys()], strings: [...this.tables.strings.keys()],
			account: { ...account, nr_cpus: 0, host: '', notes: [], nr_notes_refused: 0, duration_ns: 0, start_unix_ns: 0, kernel: '',
				sides: sides.map((side, i) => ({ ...side, all: sums[i], nr_samples: unit === 'count' ? sums[i] : 0 })) },
			frames: this.frames, nodes: this.nodes, threads: this.threads,
			samples: { ...this.samples, values: this.samples.values.map((column, i) => column.map(value => value * whole / sums[i])), untimed: this.samples.node.length },
		};
	}
}

// one, other: { name, data }. The earlier is "before". The value is the one that `one` shows.
function compare(one, other) {
	const [type, unit] = one.data.value_types[one.data.shown], sides = [one, other].sort((a, b) => Number(a.data.account.start_unix_ns) - Number(b.data.account.start_unix_ns));
	const values = sides.map(({ data }) => data.value_types.findIndex(([otherType, otherUnit]) => otherType === type && otherUnit === unit)), comparison = new Comparison();

	if (values.some(value => value < 0))
		throw new Error(`the other has no values of type "${plain(type)}"`);
	sides.forEach(({ data }, side) => comparison.add(data, side, values[side]));
	return comparison.data(sides.map(({ name }) => ({ name })), unit, one.data.account);
}
