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
		const strings = data.strings.map(plain);

		this.readFrames(data.frames, strings);
		this.readNodes(data.nodes);
		this.readThreads(data.threads, strings);
		this.readSamples(data.samples);
		this.readLabels(data.labels || { labels: [], sets: [], of_sample: [] });
		this.code = data.code;
		this.readSides();
		this.foldIdle();
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

	// Processes of one name are one program. In it, a process is identified by its tgid.
	readThreads({ comm, process, tgid, tid }, strings) {
		const programs = new Map();

		this.threads = comm.map((name, i) => {
			const called = strings[process[i]] || '(no name)';
			let program = programs.get(called);

			if (!program)
				programs.set(called, program = { name: called, threads: [], processes: new Map() });
			if (!program.processes.has(tgid[i]))
				program.processes.set(tgid[i], { name: called, tgid: tgid[i], threads: [] });
			program.threads.push(i);
			program.processes.get(tgid[i]).threads.push(i);
			return { name: strings[name] || '(no name)', tgid: tgid[i], tid: tid[i], program };
		});
		this.programs = [...programs.values()];
		this.nrProcesses = this.programs.reduce((nr, program) => nr + program.processes.size, 0);
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

	// labels: as texts. Each sample has one of the sets.
	readLabels({ labels, sets, of_sample: ofSample }) {
		this.labels = labels.map(([key, value, unit]) => plain(`${key}=${value}${unit ? ` ${unit}` : ''}`));
		this.labelSets = sets;
		this.sampleLabels = ofSample;
	}

	// By sample, whether the chips for labels leave it; null: all of them.
	labelled(chips) {
		const ofLabels = chips.filter(chip => chip.by === 'label');
		const isLeft = this.labelSets.map(set => ofLabels.every(({ does, of }) => set.includes(of) === (does === 'focus')));

		return ofLabels.length ? i => isLeft[this.sampleLabels[i]] : null;
	}

	// Of a difference: both sides are scaled to `whole`; all and samples are what they really had, samples 0: not known.
	readSides() {
		const whole = this.isDiff ? this.values[0].reduce((sum, value) => sum + value, 0) : 0, sides = this.account.sides || [{}, {}];

		if (this.isDiff)
			this.sides = sides.map(({ name, all, nr_samples: samples }, i) => ({ name: plain(name || ['before', 'after'][i]), all: Number(all) || whole,
				samples: Number(samples) || 0, unit: this.valueTypes[i].unit, whole }));
	}

	// Has any frame one of these kinds?
	hasKind(...names) {
		this.usedKinds ||= new Set(Array.from(new Set(this.frameKind), kind => this.kinds[kind]));
		return names.some(name => this.usedKinds.has(name));
	}

	// By node: the number of the first kind of `names` from the root to it; 0: none.
	kindsAbove(...names) {
		const wanted = this.kinds.map(kind => names.includes(kind)), found = new Uint8Array(this.nr);

		for (let i = 1; i < this.nr; i++)
			found[i] = found[this.parent[i]] || (wanted[this.frameKind[this.frame[i]]] ? this.frameKind[this.frame[i]] : 0);
		return found;
	}

	// Threads that (nearly) never ran become one subtree, "idle (n threads)". Their number: of all the threads' time by its states, of waits
	// by the duration.
	idleThreads() {
		const isWall = this.hasKind('running', 'ready', 'blocked'), duration = Number(this.account.duration_ns);
		const isWaits = this.valueTypes[this.shown].type === 'blocked' && duration > 0;

		if (!isWall && !isWaits)
			return [];
		const states = this.kindsAbove('running', 'ready', 'blocked'), blocked = this.kinds.indexOf('blocked'), values = this.values[this.shown];
		const active = new Float64Array(this.threads.length), sums = this.threadSums(this.shown);

		for (let i = 0; i < this.nrSamples; i++)
			active[this.sampleThread[i]] += states[this.sampleNode[i]] === blocked ? 0 : values[i];
		return this.threads.map((_, i) => isWall ? active[i] <= sums[i] / 1000 : sums[i] >= duration * 0.999);
	}

	foldIdle() {
		const idle = this.idleThreads(), nr = idle.filter(Boolean).length, image = new Map(), root = this.nr;

		this.isIdle = idle;
		this.idle = 0;
		if (nr < 2)
			return;
		this.idle = root; // the node
		this.nrIdle = nr;
		this.kinds.push('idle');
		this.frameKind = Uint8Array.from([...this.frameKind, this.kinds.length - 1]);
		this.frameName.push(`idle (${plural(nr, 'thread')})`);
		this.framePath.push('');
		this.frameFile.push('');
		this.frameLine.push(0);
		const nodes = { parent: [...this.parent, 0], frame: [...this.frame, this.nrFrames++] }, way = [], from = [];

		for (let i = 0; i < this.nrSamples; i++) {
			if (!idle[this.sampleThread[i]])
				continue;
			for (let node = this.sampleNode[i]; node && !image.has(node); node = this.parent[node])
				way.push(node);
			for (let node = way.pop(); node !== undefined; node = way.pop()) {
				image.set(node, nodes.parent.length);
				from.push(node);
				nodes.parent.push(this.parent[node] ? image.get(this.parent[node]) : root);
				nodes.frame.push(this.frame[node]);
			}
			this.sampleNode[i] = image.get(this.sampleNode[i]) || root;
		}
		this.nr = nodes.parent.length;
		this.parent = Uint32Array.from(nodes.parent);
		this.frame = Uint32Array.from(nodes.frame);
		for (const name of ['minLine', 'maxLine'])
			if (this[name].length)
				this[name] = Uint32Array.from([...this[name], 0, ...from.map(node => this[name][node])]);
	}

	// Calls back for each chosen sample: by thread (null: all), by label, and by time (from, to in µs; null: all). Samples without a time
	// are in every range.
	chosen({ threads, range, chips }, each) {
		const { sampleThread, untimed, time } = this, labelled = this.labelled(chips);

		for (let i = 0; i < this.nrSamples; i++) {
			const at = i < untimed || !range ? 0 : time[i - untimed];

			if ((!threads || threads[sampleThread[i]]) && (!labelled || labelled(i)) && (i < untimed || !range || (at >= range[0] && at < range[1])))
				each(i);
		}
	}

	// Each node's own sum of the chosen samples.
	sums(value, choice) {
		const self = new Float64Array(this.nr), values = this.values[value], { sampleNode } = this;

		this.chosen(choice, i => self[sampleNode[i]] += values[i]);
		return self;
	}

	// Each label's sum of the chosen samples.
	labelSums(value, choice) {
		const bySet = new Float64Array(this.labelSets.length), sums = new Float64Array(this.labels.length), values = this.values[value];

		this.chosen(choice, i => bySet[this.sampleLabels[i]] += values[i]);
		this.labelSets.forEach((set, i) => new Set(set).forEach(label => sums[label] += bySet[i]));
		return sums;
	}

	// Sums per thread, regardless of filters.
	threadSums(value) {
		const sums = new Float64Array(this.threads.length);

		for (let i = 0; i < this.nrSamples; i++)
			sums[this.sampleThread[i]] += this.values[value][i];
		return sums;
	}
}
