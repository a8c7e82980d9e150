// SPDX-License-Identifier: Apache-2.0
// Shows when the samples were taken: bars stacked by kind, for each program, CPU or thread, or for all. A range is chosen by mouse or by its
// two ends.
'use strict';

const STRIP = 24, AXIS = 18; // pixels
const MAX_STRIPS = 64;
const CELL = 4; // smallest width of a bin, in pixels

const labelsOf = width => width < 560 ? 84 : 150; // pixels of the names

class Timeline {
	// listener: { range(), tip(lines, event) }: the range has changed; what is under the pointer, or null
	constructor(holder, listener) {
		this.listener = listener;
		this.holder = holder;
		this.canvas = holder.querySelector('canvas');
		this.context = this.canvas.getContext('2d');
		this.ends = [...holder.querySelectorAll('[role=slider]')];
		this.by = holder.querySelector('select');
		this.range = null;
		new ResizeObserver(() => this.draw()).observe(this.canvas.parentElement);
		this.by.addEventListener('change', () => this.refresh());
		this.listen();
	}

	setProfile(profile) {
		this.profile = profile;
		this.range = null;
		this.holder.hidden = !profile.time.length;
		this.duration = Math.max(profile.durationUs + 1, Math.min(Number(profile.account.duration_ns) / 1000 || 0, profile.durationUs * 2));
	}

	setChoice(choice) {
		this.choice = choice;
		if (!this.holder.hidden)
			this.refresh();
	}

	stripOf(sample) {
		const { profile } = this, thread = profile.threads[profile.sampleThread[sample]];

		if (this.by.value === 'cpu') {
			const cpu = profile.cpu[sample - profile.untimed];

			return cpu ? `CPU ${cpu - 1}` : 'CPU not known';
		}
		if (this.by.value === 'process')
			return short(thread.program.name);
		return this.by.value === 'thread' ? `${short(thread.name)} ${thread.tid || ''}` : 'all';
	}

	// Computes the bins of each strip, by kind of the frame that ran. The strips with most come first, CPUs by number.
	refresh() {
		const { profile, choice } = this, value = profile.values[Math.min(choice.value, profile.values.length - 1)], strips = new Map(), labelled = profile.labelled(choice.chips);
		const room = this.canvas.parentElement.clientWidth || 800, width = room - labelsOf(room);

		this.nrBins = clamp(Math.floor(width / CELL), 20, 400);
		for (let i = profile.untimed; i < profile.nrSamples; i++) {
			if ((choice.threads && !choice.threads[profile.sampleThread[i]]) || (labelled && !labelled(i)))
				continue;
			const name = this.stripOf(i), bin = Math.floor(profile.time[i - profile.untimed] / this.duration * this.nrBins);
			let strip = strips.get(name);

			if (!strip)
				strips.set(name, strip = { name, sum: 0, bins: new Float64Array(this.nrBins), kinds: profile.kinds.map(() => null) });
			const kind = profile.frameKind[profile.frame[profile.sampleNode[i]]];

			(strip.kinds[kind] ||= new Float64Array(this.nrBins))[bin] += Math.abs(value[i]);
			strip.bins[bin] += Math.abs(value[i]);
			strip.sum += Math.abs(value[i]);
		}
		const sorted = [...strips.values()];

		sorted.sort((a, b) => this.by.value === 'cpu' ? a.name.localeCompare(b.name, 'en', { numeric: true }) : b.sum - a.sum);
		this.nrStrips = sorted.length;
		this.strips = sorted.slice(0, MAX_STRIPS);
		this.most = Math.max(1, ...this.strips.map(strip => Math.max(...strip.bins)));
		this.draw();
	}

	setTheme(name) {
		this.themeName = name;
		this.theme = THEMES[name];
		this.draw();
	}

	x(us) {
		return this.labels + us / this.duration * (this.width - this.labels);
	}

	draw() {
		const { context, theme } = this, scale = devicePixelRatio || 1;

		if (this.holder.hidden || !this.strips || !theme)
			return;
		this.width = this.canvas.parentElement.clientWidth;
		this.labels = labelsOf(this.width);
		this.height = this.strips.length * STRIP + AXIS;
		this.canvas.style.height = `${this.height}px`;
		this.canvas.width = Math.round(this.width * scale);
		this.canvas.height = Math.round(this.height * scale);
		context.setTransform(scale, 0, 0, scale, 0, 0);
		context.font = '11px system-ui, "DejaVu Sans", sans-serif';
		context.textBaseline = 'middle';
		this.strips.forEach((strip, i) => this.drawStrip(strip, AXIS + i * STRIP));
		this.drawAxis();
		this.drawRange();
		this.tellEnds();
	}

	drawStrip(strip, top) {
		const { context, theme } = this, wide = (this.width - this.labels) / this.nrBins;
		let name = strip.name;

		while (name && context.measureText(name).width > this.labels - 12)
			name = name.slice(0, Math.min(name.length - 1, 60));
		context.fillStyle = theme.soft;
		context.fillText(name === strip.name ? name : `${name.slice(0, -1)}…`, 0, top + STRIP / 2);
		context.fillStyle = theme.line;
		context.globalAlpha = 0.45;
		context.fillRect(this.labels, top, this.width - this.labels, STRIP - 2);
		context.globalAlpha = 1;
		const heights = new Float64Array(this.nrBins);

		strip.kinds.forEach((bins, kind) => {
			if (bins)
				context.fillStyle = css(mix(colourOf(this.themeName, this.profile.kinds[kind], ''), theme.ink, 0.25));
			for (let i = 0; bins && i < this.nrBins; i++) {
				const high = bins[i] / this.most * (STRIP - 2);

				if (!high)
					continue;
				heights[i] += high;
				context.fillRect(this.labels + i * wide, top + STRIP - 2 - heights[i], Math.max(1, wide - 0.5), high);
			}
		});
	}

	// What is under the pointer: when, how much, of what.
	tip(event) {
		const box = this.canvas.getBoundingClientRect(), strip = this.strips?.[Math.floor((event.clientY - box.top - AXIS) / STRIP)];
		const bin = Math.floor(this.place(event) / this.duration * this.nrBins), { profile, choice } = this;

		if (!strip || bin < 0 || bin >= this.nrBins || event.buttons) {
			this.listener.tip(null);
			return;
		}
		const say = value => quantity(value, profile.valueTypes[Math.min(choice.value, profile.valueTypes.length - 1)]), at = us => seconds(us * 1000) || '0';
		const width = this.duration / this.nrBins, kinds = strip.kinds.map((bins, kind) => [bins ? bins[bin] : 0, kind]).filter(([value]) => value);

		this.listener.tip([strip.name, `${at(bin * width)} to ${at((bin + 1) * width)}: ${say(strip.bins[bin])}; ${say(strip.sum)} in all`,
			kinds.sort((a, b) => b[0] - a[0]).map(([value, kind]) => `${kindOf(profile.kinds[kind]).label} ${say(value)}`).join(', ')], event);
	}

	drawAxis() {
		const { context, theme } = this, nr = Math.max(2, Math.floor((this.width - this.labels) / 110));
		const raw = this.duration / nr, power = 10 ** Math.floor(Math.log10(raw)), step = [1, 2, 5, 10].find(by => by * power >= raw) * power;

		context.fillStyle = theme.soft;
		for (let us = 0; us < this.duration; us += step) {
			if (this.x(us) + 40 < this.width)
				context.fillText(us ? seconds(us * 1000) : '0', this.x(us) + 3, AXIS / 2 - 1);
			context.fillRect(Math.round(this.x(us)), AXIS - 6, 1, 5);
		}
	}

	drawRange() {
		const { context, theme, range } = this, high = this.height - AXIS - 2;

		if (!range)
			return;
		context.globalAlpha = 0.6;
		context.fillStyle = theme.page;
		context.fillRect(this.labels, AXIS, this.x(range[0]) - this.labels, high);
		context.fillRect(this.x(range[1]), AXIS, this.width - this.x(range[1]), high);
		context.globalAlpha = 1;
		context.strokeStyle = theme.edge;
		context.strokeRect(this.x(range[0]) + 0.5, AXIS - 0.5, Math.max(1, this.x(range[1]) - this.x(range[0]) - 1), high);
	}

	tellEnds() {
		const [from, to] = this.range || [0, this.duration];

		this.ends.forEach((end, i) => {
			const us = i ? to : from;

			end.style.left = `${this.x(us)}px`;
			end.style.top = `${AXIS}px`;
			end.style.height = `${this.height - AXIS}px`;
			end.setAttribute('aria-valuemin', '0');
			end.setAttribute('aria-valuemax', String(Math.round(this.duration / 1000)));
			end.setAttribute('aria-valuenow', String(Math.round(us / 1000)));
			end.setAttribute('aria-valuetext', seconds(us * 1000));
		});
		$('range').textContent = this.range ? `${seconds(from * 1000) || '0'} to ${seconds(to * 1000)}` : seconds(this.duration * 1000);
		$('range-clear').disabled = !this.range;
		$('strips').textContent = this.nrStrips > MAX_STRIPS ? `the ${MAX_STRIPS} busiest of ${count.format(this.nrStrips)}` : '';
	}

	// The ends in µs, in any order; null: all. quietly: the caller tells of it.
	choose(range, quietly) {
		const ends = range && range.map(us => clamp(us, 0, this.duration)).sort((a, b) => a - b);

		this.range = ends && ends[1] > ends[0] && (ends[0] > 0 || ends[1] < this.duration) ? ends : null;
		this.draw();
		clearTimeout(this.later);
		if (!quietly) // while dragging, the graph follows as fast as it can
			this.later = setTimeout(() => this.listener.range(), 30);
	}

	place(event) {
		const box = this.canvas.getBoundingClientRect();

		return (event.clientX - box.left - this.labels) / (this.width - this.labels) * this.duration;
	}

	key(event, i) {
		const bin = this.duration / this.nrBins, by = event.shiftKey ? 10 : 1, now = this.range || [0, this.duration];
		const to = { ArrowLeft: now[i] - by * bin, ArrowRight: now[i] + by * bin, Home: 0, End: this.duration }[event.key];

		if (event.key === 'Escape' && this.range) {
			this.choose(null);
		} else if (to !== undefined) {
			const moved = clamp(to, i ? now[0] + bin : 0, i ? this.duration : now[1] - bin);

			this.choose(i ? [now[0], moved] : [moved, now[1]]);
		} else {
			return;
		}
		event.preventDefault();
		event.stopPropagation();
	}

	listen() {
		const { canvas } = this;

		canvas.addEventListener('pointerdown', event => {
			this.anchor = this.place(event);
			canvas.setPointerCapture(event.pointerId);
		});
		canvas.addEventListener('pointermove', event => {
			if (event.buttons && this.anchor !== null)
				this.choose([this.anchor, this.place(event)]);
			this.tip(event);
		});
		canvas.addEventListener('pointerleave', () => this.listener.tip(null));
		canvas.addEventListener('pointerup', () => this.anchor = null);
		canvas.addEventListener('dblclick', () => this.choose(null));
		this.ends.forEach((end, i) => end.addEventListener('keydown', event => this.key(event, i)));
		$('range-clear').addEventListener('click', () => this.choose(null));
	}
}
