// SPDX-License-Identifier: Apache-2.0
// Fills in the head of the page and the account: what the profile is and what was lost.
'use strict';

class Report {
	constructor(profile) {
		this.account = profile.account;
		this.profile = profile;
		for (const id of ['facts', 'notes', 'tallies', 'account-list'])
			$(id).replaceChildren();
		this.fillHead();
		$('histograms').hidden = !profile.histograms.length;
		$('histograms').querySelector('pre').textContent = profile.histograms.map(lines => lines.join('\n')).join('\n\n');
		this.fillNotes();
		this.hasRun = Number(this.account.nr_cpus) > 0; // another program's file has no facts about the run; unknown losses are not zero
		if (this.hasRun) {
			this.fillTallies();
			this.fillAccount();
		}
		this.fillBadge();
	}

	// What was measured. An event that only triggers the measurement is not that.
	what() {
		const { account, profile } = this;
		const rate = Number(account.freq_hz) ? `${count.format(account.freq_hz)} Hz` :
			Number(account.period) ? `every ${count.format(account.period)} ${account.event_unit}` : '';

		if (profile.isDiff)
			return profile.sides.map(({ name }) => name).join(' → ');
		if (profile.hasKind('running', 'blocked'))
			return 'all time of the threads';
		if (profile.valueTypes.some(({ type }) => type === 'waits'))
			return 'time blocked';
		return account.event && [account.event, rate].filter(Boolean).join(' at ');
	}

	// The sums of all values: "666 s in 122,973 waits".
	amounts() {
		const { profile } = this, sum = values => values.reduce((all, one) => all + one, 0);
		const types = profile.valueTypes.map((type, i) => quantity(sum(profile.values[i]), type));

		if (profile.isDiff)
			return profile.sides.map(({ all, unit }, i) => `${['before', 'after'][i]} ${unit === 'count' ? plural(all, 'sample') : quantity(all, { unit })}`).join(', ');
		return types.length === 2 && profile.valueTypes[0].type === 'waits' ? `${types[1]} in ${types[0]}` : types[profile.shown];
	}

	fillHead() {
		const { account } = this, start = new Date(Number(account.start_unix_ns) / 1e6);
		const facts = [this.amounts(), Number(account.nr_cpus) ? plural(account.nr_cpus, 'CPU') : '', Number(account.duration_ns) ? seconds(Number(account.duration_ns)) : '',
			Number(account.start_unix_ns) ? start.toLocaleString([], { dateStyle: 'medium', timeStyle: 'short' }) : '',
			account.kernel ? `Linux ${account.kernel}` : ''];

		$('title').textContent = plain([account.host, this.what()].filter(Boolean).join(': ') || 'profile');
		document.title = `${$('title').textContent} – sonde`;
		for (const fact of facts.filter(Boolean))
			$('facts').append(element('span', plain(fact)));
	}

	fillNotes() {
		const { account } = this;

		$('notes').hidden = !account.notes.length;
		for (const note of account.notes)
			$('notes').append(element('li', plain(note)));
		if (Number(account.nr_notes_refused))
			$('notes').append(element('li', `${plural(account.nr_notes_refused, 'more warning')} found no room.`));
	}

	// All that is missing, in one button.
	fillBadge() {
		const { account } = this, waits = account.waits || {}, notes = account.notes.length + Number(account.nr_notes_refused);
		const missing = this.hasRun ? [[this.sum(account.dropped) + Number(waits.sums_full || 0) + Number(waits.no_storage || 0), 'lost'],
			[Number(account.missed_user) + Number(account.missed_kernel), 'stacks missed'], [this.sum(account.stopped) - Number(account.stopped.complete), 'stacks cut']] : [];
		const parts = missing.filter(([nr]) => nr).map(([nr, what]) => `${count.format(nr)} ${what}`);

		$('more').hidden = !this.hasRun && !notes;
		$('more').classList.toggle('bad', parts.length > 0 || (notes > 0 && !this.profile.isDiff));
		$('more').textContent = [...parts, notes && !this.profile.isDiff ? plural(notes, 'warning') : ''].filter(Boolean).join(', ') || (this.hasRun ? 'nothing lost' : 'account');
	}

	sum(counts) {
		return Object.values(counts).reduce((total, value) => total + Number(value), 0);
	}

	// The reasons that occurred, as text: "3 ring full, 1 reader".
	reasons(counts, except) {
		return Object.entries(counts).filter(([name, nr]) => Number(nr) && name !== except)
			.map(([name, nr]) => `${count.format(nr)} ${name.replaceAll('_', ' ')}`).join(', ');
	}

	tally(term, value, why, bad) {
		const holder = $('tallies').appendChild(element('div', '', bad ? 'bad' : ''));

		holder.title = why;
		holder.append(element('dt', term), element('dd', value));
	}

	fillTallies() {
		const { account } = this, complete = Number(account.stopped.complete), cut = this.sum(account.stopped) - complete;
		const tally = (term, nr, why, bad) => this.tally(term, count.format(nr), why, bad && nr > 0);

		tally('samples', Number(account.recorded), 'recorded');
		tally('filtered', this.sum(account.filtered), `not asked for: ${this.reasons(account.filtered) || 'none'}`);
		tally('lost', this.sum(account.dropped), this.reasons(account.dropped) || 'none', true);
		tally('stacks missed', Number(account.missed_user) + Number(account.missed_kernel), 'the sample is there, the stack is not', true);
		tally('stacks cut', cut, this.reasons(account.stopped, 'complete') || 'none', true);
		if (complete + cut)
			this.tally('user stacks complete', share(complete, complete + cut), `${count.format(complete)} of ${count.format(complete + cut)}`);
	}

	fillAccount() {
		const { account } = this, ns = value => seconds(Number(value)), size = value => bytes(Number(value));
		const pair = (term, text) => $('account-list').append(element('dt', term), element('dd', plain(text)));

		const files = (this.profile.code || []).flatMap(({ kind, text }) => text.filter((_, i) => kind[i] === 'file'));

		pair('Command', account.command_line.replace(/^(sonde )?/, 'sonde '));
		pair('Source in this page', [...new Set(files)].map(short).join(', ') || 'none');
		pair('Ticks', `${count.format(account.ticks)} = recorded + filtered + lost`);
		pair('Filtered', this.reasons(account.filtered) || 'none');
		pair('Lost', this.reasons(account.dropped) || 'none');
		pair('User stacks', `${count.format(account.stopped.complete)} complete; cut short: ${this.reasons(account.stopped, 'complete') || 'none'}`);
		if (account.runtimes.length || Number(account.nr_frames_unnamed))
			pair('Runtimes', `${account.runtimes.map(({ name, version, nr_processes: nr }) => `${name} ${version}`.trim() + ` (${plural(nr, 'process', 'processes')})`)
				.join(', ')}; stacks: ${count.format(account.runtime_stopped.complete)} complete; cut short: ` +
				`${this.reasons(account.runtime_stopped, 'complete') || 'none'}; ${plural(account.nr_frames_unnamed, 'frame')} without a name`);
		pair('Missed', `${plural(account.missed_user, 'user stack')}, ${plural(account.missed_kernel, 'kernel stack')}; ` +
			`${count.format(account.missed_full)} because the store was full` +
			(Number(account.missed_collided) ? `; ${plural(account.missed_collided, 'stack')} of any kind whose hash another one had, too` : ''));
		pair('Audit', Number(account.audited) ? `${plural(account.audited, 'stack')} unwound once more by libdw: ${count.format(account.audit_agreed)} agree, ` +
			`${count.format(account.audit_differed)} differ; not comparable: ${this.reasons(account.audit_not_comparable) || 'none'}` : 'not asked for');
		pair('Side-band lost', plural(account.lost_sideband, 'event'));
		pair('Own cost', `${ns(account.cpu_user_ns)} user, ${ns(account.cpu_system_ns)} system, ${size(account.max_rss_bytes)} memory, ` +
			`${size(account.bpf_map_bytes)} BPF maps`);
		pair('Ready after', ns(account.startup_ns));
		pair('Unwind tables', `${plural(account.unwind_rows, 'row')}, ${size(account.unwind_bytes)}, ` +
			`${plural(account.nr_objects, 'file')} of ${plural(account.nr_processes, 'process', 'processes')}`);
	}

	// What one tick stands for, in nanoseconds; 0 if it is not a time or not known.
	tickNs() {
		if (this.account.event_unit !== 'nanoseconds')
			return 0;
		return Number(this.account.period) || (Number(this.account.freq_hz) ? 1e9 / Number(this.account.freq_hz) : 0);
	}
}
