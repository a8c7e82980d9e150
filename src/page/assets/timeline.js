// SPDX-License-Identifier: Apache-2.0
// Shows when the samples were taken: heat strips, for all or for each CPU, process or thread. A range is chosen by mouse or by its two ends.
'use strict';

const STRIP = 16, AXIS = 18, LABELS = 150; // pixels
const MAX_STRIPS = 64;
const CELL = 4; // smallest width of a bin, in pixels

class Timeline {
	// listener: { range() }, called when the range changes
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
			return `${short(thread.process.name)} ${thread.process.tgid || ''}`;
		return this.by.value === 'thread' ? `${short(thread.name)} ${thread.tid || ''}` : 'all';
	}

	// Computes the bins of each strip. The strips with most come first, CPUs by number.
	refresh() {
		const { profile, choice } = this, width = (this.canvas.parentElement.clientWidth || 800) - LABELS, strips = new Map();

		this.nrBins = clamp(Math.floor(width / CELL), 20, 400);
		for (let i = profile.untimed; i < profile.nrSamples; i++) {
			if (choice.threads && !choice.threads[profile.sampleThread[i]])
				continue;
			const name = this.stripOf(i), bin = Math.floor(profile.time[i - profile.untimed] / this.duration * this.nrBins);
			let strip = strips.get(name);

			if (!strip)
				strips.set(name, strip = { name, sum: 0, bins: new Float64Array(this.nrBins) });
			strip.bins[bin] += Math.abs(profile.values[choice.value][i]);
			strip.sum += Math.abs(profile.values[choice.value][i]);
		}
		const sorted = [...strips.values()];

		sorted.sort((a, b) => this.by.value === 'cpu' ? a.name.localeCompare(b.name, 'en', { numeric: true }) : b.sum - a.sum);
		this.nrStrips = sorted.length;
		this.strips = sorted.slice(0, MAX_STRIPS);
		this.most = Math.max(1, ...this.strips.map(strip => Math.max(...strip.bins)));
		this.draw();
	}

	setTheme(name) {
		this.theme = THEMES[name];
		this.draw();
	}

	x(us) {
		return LABELS + us / this.duration * (this.width - LABELS);
	}

	draw() {
		const { context, theme } = this, scale = devicePixelRatio || 1;

		if (this.holder.hidden || !this.strips || !theme)
			return;
		this.width = this.canvas.parentElement.clientWidth;
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
		const { context, theme } = this, wide = (this.width - LABELS) / this.nrBins;
		let name = strip.name;

		while (name && context.measureText(name).width > LABELS - 12)
			name = name.slice(0, Math.min(name.length - 1, 60));
		context.fillStyle = theme.soft;
		context.fillText(name === strip.name ? name : `${name.slice(0, -1)}…`, 0, top + STRIP / 2);
		context.fillStyle = theme.line;
		context.globalAlpha = 0.45;
		context.fillRect(LABELS, top, this.width - LABELS, STRIP - 2);
		context.fillStyle = `rgb(${theme.heat.join(' ')})`;
		for (let i = 0; i < this.nrBins; i++) {
			if (!strip.bins[i])
				continue;
			context.globalAlpha = 0.15 + 0.85 * strip.bins[i] / this.most;
			context.fillRect(LABELS + i * wide, top, Math.max(1, wide - 0.5), STRIP - 2);
		}
		context.globalAlpha = 1;
	}

	drawAxis() {
		const { context, theme } = this, nr = Math.max(2, Math.floor((this.width - LABELS) / 110));
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
		context.fillRect(LABELS, AXIS, this.x(range[0]) - LABELS, high);
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

	// The ends in µs, in any order; null: all.
	choose(range) {
		const ends = range && range.map(us => clamp(us, 0, this.duration)).sort((a, b) => a - b);

		this.range = ends && ends[1] > ends[0] && (ends[0] > 0 || ends[1] < this.duration) ? ends : null;
		this.draw();
		clearTimeout(this.later);
		this.later = setTimeout(() => this.listener.range(), 30); // while dragging, the graph follows as fast as it can
	}

	place(event) {
		const box = this.canvas.getBoundingClientRect();

		return (event.clientX - box.left - LABELS) / (this.width - LABELS) * this.duration;
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
		});
		canvas.addEventListener('pointerup', () => this.anchor = null);
		canvas.addEventListener('dblclick', () => this.choose(null));
		this.ends.forEach((end, i) => end.addEventListener('keydown', event => this.key(event, i)));
		$('range-clear').addEventListener('click', () => this.choose(null));
	}
}
