// SPDX-License-Identifier: Apache-2.0
// Reads the profile from the JSON object (src/page/view_json.c) into arrays. Knows nothing of the page.
'use strict';

class Profile {
	constructor(data) {
		if (data.format !== 'sonde-view' || data.version !== 1)
			throw new Error('not a profile of a version that this page knows');
		this.account = data.account;
		this.histograms = (data.histograms || []).map(lines => lines.map(plain));
		this.kinds = data.kinds;
		this.valueTypes = data.value_types.map(([type, unit]) => ({ type: plain(type), unit: plain(unit) }));
		this.shown = data.shown;
		this.isDiff = this.valueTypes.length === 2 && this.valueTypes[0].type === 'before' && this.valueTypes[1].type === 'after';
		this.readFrames(data.frames, data.strings.map(plain));
		this.readNodes(data.nodes);
		this.readThreads(data.threads, data.strings.map(plain));
		this.readSamples(data.samples);
	}

	readFrames(frames, strings) {
		const nameOf = (name, kind, file) => {
			if (kind === 'all')
				return 'all';
			if (kind === 'thread')
				return `thread ${name}`;
			return (strings[name] || '(no name)') + (INTERPRETED.includes(kind) && file ? ` (${file.slice(file.lastIndexOf('/', file.length - 2) + 1)})` : '');
		};

		this.nrFrames = frames.name.length;
		this.frameKind = Uint8Array.from(frames.kind);
		this.frameName = frames.name.map((name, i) => nameOf(name, this.kinds[frames.kind[i]], strings[frames.path[i]]));
		this.framePath = frames.path.map(path => strings[path]);
		this.frameFile = frames.file.map(file => strings[file]);
		this.frameLine = frames.line;
	}

	readNodes({ up, frame, lines }) {
		this.nr = up.length;
		this.parent = new Uint32Array(this.nr);
		for (let i = 0; i < this.nr; i++)
			this.parent[i] = i - up[i];
		this.frame = Uint32Array.from(frame);
		this.minLine = new Uint32Array(lines.length && this.nr);
		this.maxLine = new Uint32Array(lines.length && this.nr);
		for (let i = 0; i < lines.length; i += 3) {
			this.minLine[lines[i]] = lines[i + 1];
			this.maxLine[lines[i]] = lines[i + 2];
		}
	}

	// A process is identified by its tgid or, if that is not known, by its name.
	readThreads({ comm, tgid, tid }, strings) {
		const found = new Map();

		this.processes = [];
		this.threads = comm.map((name, i) => {
			const key = tgid[i] || strings[name];
			let process = found.get(key);

			if (!process) {
				process = { name: strings[name] || '(no name)', tgid: tgid[i], threads: [] };
				found.set(key, process);
				this.processes.push(process);
			}
			if (tid[i] === tgid[i]) // the main thread names the process
				process.name = strings[name] || '(no name)';
			process.threads.push(i);
			return { name: strings[name] || '(no name)', tgid: tgid[i], tid: tid[i], process };
		});
	}

	readSamples({ node, thread, values, untimed, origin_ns: origin, cpu = [], after_us: after = [] }) {
		let time = 0;

		this.nrSamples = node.length;
		this.sampleNode = Uint32Array.from(node);
		this.sampleThread = Uint32Array.from(thread);
		this.values = values.map(column => Float64Array.from(column, Number));
		this.untimed = untimed;
		this.originNs = Number(origin || 0);
		this.cpu = cpu; // + 1; only of samples with a time
		this.time = Float64Array.from(after, us => time += us);
		this.durationUs = time;
	}

	// Each node's own sum of the chosen samples: by thread (null: all) and by time (from, to in µs; null: all). Samples without a time
	// count in every range.
	sums(value, { threads, range }) {
		const self = new Float64Array(this.nr), values = this.values[value], { sampleNode, sampleThread, untimed, time } = this;

		for (let i = 0; i < this.nrSamples; i++) {
			const at = i < untimed || !range ? 0 : time[i - untimed];

			if ((!threads || threads[sampleThread[i]]) && (i < untimed || !range || (at >= range[0] && at < range[1])))
				self[sampleNode[i]] += values[i];
		}
		return self;
	}

	// Sums per thread, regardless of filters.
	threadSums(value) {
		const sums = new Float64Array(this.threads.length);

		for (let i = 0; i < this.nrSamples; i++)
			sums[this.sampleThread[i]] += this.values[value][i];
		return sums;
	}
}
