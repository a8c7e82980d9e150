// SPDX-License-Identifier: Apache-2.0
// The answer in words: what the time went to, before anything is clicked. Each part is a button that shows what it speaks of.
'use strict';

const MAX_PARTS = 3, MIN_SHARE = 0.01;

class Answer {
	// listener: { threads(threads), chip(chip), goTo(frame) }
	constructor(holder, listener) {
		this.holder = holder;
		this.listener = listener;
	}

	// tree: of the whole profile, nothing filtered: its nodes are the profile's.
	fill(profile, value, tree) {
		Object.assign(this, { profile, own: tree.self, value: Math.min(value, profile.values.length - 1), whole: tree.total[0] });
		this.holder.replaceChildren();
		this.holder.hidden = !this.whole;
		if (this.whole)
			(profile.isDiff ? this.changes(tree) : [...this.states(), this.idle(), this.programs(), this.kernel(), this.hottest(tree)]).forEach(parts => this.say(parts));
	}

	say({ before = '', parts }) {
		const line = element('span', before, 'sentence');

		if (!parts.length && !before)
			return;
		if (this.holder.firstChild)
			this.holder.append('; ');
		for (const { text, title, does } of parts) {
			if (line.querySelector('button'))
				line.append(', ');
			const button = element('button', short(text), 'part');

			button.type = 'button';
			button.title = title;
			button.addEventListener('click', does);
			line.append(button);
		}
		this.holder.append(line);
	}

	percent(value) {
		const percent = 100 * value / this.whole;

		return `${percent >= 9.95 || percent === 0 ? percent.toFixed(0) : percent.toFixed(1)} %`;
	}

	// The greatest of `sums`, [key, sum].
	greatest(sums) {
		return [...sums].filter(([, sum]) => sum >= this.whole * MIN_SHARE).sort((a, b) => b[1] - a[1]).slice(0, MAX_PARTS);
	}

	// By the first frame of these kinds from the root: [frame, sum].
	sumsOf(...kinds) {
		const { profile, own } = this, { parent, frame, frameKind } = profile, wanted = profile.kinds.map(kind => kinds.includes(kind));
		const first = new Uint32Array(profile.nr), sums = new Map();

		if (!profile.hasKind(...kinds))
			return sums;
		for (let i = 1; i < profile.nr; i++) {
			first[i] = first[parent[i]] || (wanted[frameKind[frame[i]]] ? frame[i] + 1 : 0);
			if (first[i] && own[i])
				sums.set(first[i] - 1, (sums.get(first[i] - 1) || 0) + own[i]);
		}
		return sums;
	}

	only(frame, label, sum) {
		return { text: `${this.percent(sum)} ${label}`, title: 'Show only the stacks with it', does: () => this.listener.chip({ does: 'focus', by: 'frame', of: frame }) };
	}

	ofKind(name, label, sum) {
		return { text: `${this.percent(sum)} ${label}`, title: 'Show only the stacks with it',
			does: () => this.listener.chip({ does: 'focus', by: 'kind', of: this.profile.kinds.lastIndexOf(name) }) };
	}

	// What a state or a mark says: "futex" of "[blocked: futex]" and of "[futex]".
	word(frame) {
		return this.profile.frameName[frame].replace(/^\[(?:blocked: )?|\]$/g, '');
	}

	states() {
		const { profile } = this, states = this.sumsOf('running', 'ready', 'blocked'), kindOfFrame = frame => profile.kinds[profile.frameKind[frame]];
		const of = kind => [...states].filter(([frame]) => kindOfFrame(frame) === kind).reduce((sum, [, one]) => sum + one, 0);
		const waits = states.size ? [...states].filter(([frame]) => kindOfFrame(frame) === 'blocked') : [...this.sumsOf('wait')];
		const parts = this.greatest(waits).map(([frame, sum]) => this.only(frame, this.word(frame), sum));

		if (!states.size)
			return [{ before: parts.length ? 'waiting for ' : '', parts }];
		return [{ parts: [this.ofKind('running', 'running', of('running')), this.ofKind('ready', 'ready', of('ready')), this.ofKind('blocked', 'blocked', of('blocked'))] },
			{ before: parts.length ? 'blocked for ' : '', parts }];
	}

	idle() {
		const { profile } = this, others = profile.threads.map((_, i) => i).filter(thread => !profile.isIdle[thread]);

		return { parts: profile.idle ? [{ text: `${count.format(profile.nrIdle)} of ${plural(profile.threads.length, 'thread')} idle throughout`,
			title: 'Show all other threads', does: () => this.listener.threads(others) }] : [] };
	}

	programs() {
		const { profile } = this, sums = profile.threadSums(this.value);
		const by = profile.programs.map(program => [program, program.threads.reduce((sum, thread) => sum + sums[thread], 0)]);

		return { parts: this.greatest(by).map(([{ name, processes, threads }, sum]) => ({
			text: `${this.percent(sum)} ${name}${processes.size > 1 ? ` (${count.format(processes.size)} processes)` : ''}`,
			title: 'Show only this program', does: () => this.listener.threads(threads) })) };
	}

	kernel() {
		const { profile, own } = this, isMeant = profile.hasKind('kernel') && profile.valueTypes[this.value].type === 'samples';
		const above = isMeant ? profile.kindsAbove('kernel') : [];
		let sum = 0;

		for (let i = 0; i < above.length; i++)
			sum += above[i] ? own[i] : 0;
		return { parts: sum ? [this.ofKind('kernel', 'in the kernel', sum)] : [] };
	}

	hottest(tree) {
		const { profile } = this, isCode = profile.kinds.map(kind => !NO_CODE.includes(kind)), self = new Float64Array(profile.nrFrames);

		for (let i = 1; i < tree.nr; i++)
			if (isCode[profile.frameKind[tree.frame[i]]])
				self[tree.frame[i]] += tree.self[i];
		const top = self.reduce((most, sum, frame) => sum > self[most] ? frame : most, 0);

		if (self[top] < this.whole * MIN_SHARE)
			return { parts: [] };
		return { before: 'most in ', parts: [{ text: `${plainName(profile.frameName[top])} ${this.percent(self[top])}`, title: 'Show it in the graph',
			does: () => this.listener.goTo(top) }] };
	}

	// The functions whose own share changed most, beyond noise.
	changes(tree) {
		const { sides } = this.profile, rows = tree.functions().filter(row => !isNoise(sides, row.selfBefore, row.selfAfter));
		const points = row => pointsOf(sides, row.selfBefore, row.selfAfter);

		rows.sort((a, b) => Math.abs(points(b)) - Math.abs(points(a)));
		return [{ before: rows.length ? 'changed most: ' : 'nothing changed beyond noise', parts: rows.slice(0, 2 * MAX_PARTS).map(row => ({
			text: `${signed(points(row))} ${plainName(this.profile.frameName[row.frame])}`, title: 'Points of percent in itself. Show it in the graph',
			does: () => this.listener.goTo(row.frame) })) }];
	}
}
