// SPDX-License-Identifier: Apache-2.0
/* The measurement of the stacks at probes: a sample for each hit. Instead of a profile of them it may print each hit with its stacks, or
 * sums by stacks and other fields. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/interned.h"
#include "base/order.h"
#include "base/texts.h"
#include "collect/event_programs.h"
#include "engine/measurement.h"
#include "events/events.h"
#include "events/traced_probes.h"
#include "frames/frame_text.h"

#define MORE_LEVELS	 3 /* hits that meet on a CPU, where the program may be preempted: docs/internals/triggers.md */
#define HITS_BYTES_MAX	 ((size_t)64 << 20) /* of the open window: beyond that hits are dropped */
#define LINES_BYTES_MAX	 ((size_t)64 << 20)
#define LINES_BYTES_MANY ((size_t)1 << 20) /* then the lines are handed over */

struct stack_sum {
	struct stack_ids ids;
	struct tracing_row row;
};
#define STACK_SUM_KEY_BYTES (offsetof(struct stack_sum, row) + offsetof(struct tracing_row, sum))
#define SUMS_BYTES_MAX	    ((uint64_t)256 << 20)

struct traced_stacks {
	struct measurement base;
	struct traced_probes probes;
	struct event_programs *programs[MAX_PROBES];
	bool prints; /* hits or sums, instead of a profile */
	struct buffer hits; /* of the open window: struct sonde_probe_stacks_record each */
	struct interned *sums; /* by stacks, of the open window: struct stack_sum; NULL: not asked for */
	uint64_t nr_unsaid; /* hits that found no room there */
	uint64_t nr_late;   /* hits that user space has rejected; atomic: the thread that names stacks counts them */
	uint64_t nr_late_unread[MAX_PROBES]; /* of those, what was not in memory; atomic, too */
	int text_err;	    /* atomic: the error of the caller's function for lines: it is not called again */
	uint64_t unix_offset_ns;
};

static const struct measurement_type lines_measurement;

static struct traced_stacks *stacks_of(struct measurement *measurement)
{
	return (struct traced_stacks *)measurement;
}

static void free_sums(void *sums)
{
	interned_done(sums);
	free(sums);
}

static struct interned *new_sums(void)
{
	struct interned *sums = malloc(sizeof(*sums));

	if (sums)
		*sums = (struct interned)INTERNED_INIT(struct stack_sum, STACK_SUM_KEY_BYTES, SUMS_BYTES_MAX);
	return sums;
}

static int init(struct measurement *measurement, struct sampler_options *sampling, struct diag *diag)
{
	struct traced_stacks *stacks = stacks_of(measurement);
	int err = traced_probes_init(&stacks->probes, measurement->parts.options, true, diag);

	stacks->hits = BUFFER_INIT(HITS_BYTES_MAX);
	sampling->config.more_levels = MORE_LEVELS;
	if (!err && stacks->probes.options.by & SONDE_BY_STACK) {
		stacks->sums = new_sums();
		err = stacks->sums ? 0 : -ENOMEM;
	}
	stacks->prints = stacks->probes.options.print || stacks->sums;
	if (err || !stacks->prints)
		return err;
	measurement->type = &lines_measurement;
	measurement->has_stacks = false;
	measurement->prints_windows = true;
	for (uint32_t i = 0; i < stacks->probes.probes.nr; i++) /* a record has values, so that it is of one size */
		stacks->probes.list[i].config.nr_printed = stacks->probes.list[i].config.nr_printed ?: 1;
	return err;
}

static void done(struct measurement *measurement)
{
	struct traced_stacks *stacks = stacks_of(measurement);

	for (uint32_t i = 0; i < MAX_PROBES; i++)
		event_programs_free(stacks->programs[i]);
	traced_probes_done(&stacks->probes);
	buffer_done(&stacks->hits);
	if (stacks->sums)
		free_sums(stacks->sums);
}

static int load(struct measurement *measurement, const struct targets *targets, uint32_t command_tgid, struct diag *diag)
{
	struct traced_stacks *stacks = stacks_of(measurement);
	int err = stacks->probes.parse_err;

	stack_recorder_at_events(measurement->parts.engine->recorder);
	if (err)
		*diag = stacks->probes.parse_diag;
	for (uint32_t i = 0; !err && i < stacks->probes.probes.nr; i++) {
		const struct event_options options = { .trigger = &stacks->probes.probes.list[i].trigger,
						       .number = i,
						       .syscall = SONDE_EVENT_ANY_SYSCALL,
						       .probe = &stacks->probes.list[i].config };

		err = event_programs_new(measurement->parts.engine->sampler, &options, diag, &stacks->programs[i]);
	}
	return err;
}

/* Hands over the lines so far. The thread that names stacks calls it, before and after that the session's. */
static int tell(struct traced_stacks *stacks, struct buffer *lines)
{
	const struct sonde_session_options *common = stacks->base.parts.options;
	int err = lines->err ?: __atomic_load_n(&stacks->text_err, __ATOMIC_RELAXED);

	if (!err && lines->size) {
		err = common->text(common->arg, lines->data);
		__atomic_store_n(&stacks->text_err, err, __ATOMIC_RELAXED);
	}
	lines->size = 0;
	return err;
}

static int start(struct measurement *measurement, struct diag *diag, uint64_t *ret_start_ns)
{
	CLEANUP(buffer_done) struct buffer lines = BUFFER_INIT(LINES_BYTES_MAX);
	struct traced_stacks *stacks = stacks_of(measurement);
	int err = 0;

	stacks->unix_offset_ns = clock_unix_offset_ns();
	traced_probes_start(&stacks->probes, measurement->parts.account);
	if (stacks->prints)
		tracing_heading(&lines, &stacks->probes.options, stacks->probes.command_line);
	err = tell(stacks, &lines);
	for (uint32_t i = 0; !err && i < stacks->probes.probes.nr; i++)
		err = event_programs_start(stacks->programs[i], diag);
	*ret_start_ns = clock_ns();
	return err;
}

static struct stack_ids ids_of(const struct sonde_sample_record *sample)
{
	return (struct stack_ids){ .ids = sample->ids, .tgid = sample->tgid, .user_generation = sample->generation, .at_event = 1 };
}

/* --- records -------------------------------------------------------------------------------------------------------------------------- */

static void fill_key(const struct traced_probe *probe, const struct sonde_probe_stacks_record *hit, struct sonde_probe_key *key)
{
	const struct sonde_probe_config *config = &probe->config;
	const struct sonde_sample_record *sample = &hit->event.sample;

	key->tgid = config->by_tgid ? sample->tgid : 0;
	key->unread = config->by_arg && hit->values.unread & 1;
	key->tid = config->by_tid ? sample->tid : 0;
	key->cpu = config->by_cpu ? sample->cpu : 0;
	if (config->by_comm)
		memcpy(key->comm, sample->comm, sizeof(key->comm));
	if (config->by_arg && config->key.text && !key->unread)
		tracing_key_text(key, hit->values.texts[0]);
	else if (config->by_arg)
		key->arg.number = hit->values.numbers[0];
}

/* As long as the stacks have no names, sums are by their ids. */
static int sum_hit(struct traced_stacks *stacks, const struct sonde_probe_stacks_record *hit)
{
	struct stack_sum sum = { .ids = ids_of(&hit->event.sample), .row.probe = hit->event.trigger % MAX_PROBES };
	uint32_t at;

	fill_key(&stacks->probes.list[sum.row.probe], hit, &sum.row.key);
	memcpy(sum.row.sum.comm, hit->event.sample.comm, sizeof(sum.row.sum.comm));
	at = interned_add(stacks->sums, &sum);
	if (at == INTERNED_NONE)
		stacks->nr_unsaid++;
	else
		((struct stack_sum *)interned_at(stacks->sums, at))->row.sum.count++;
	return 0;
}

static int keep_hit(struct traced_stacks *stacks, const void *record)
{
	if (stacks->hits.size + sizeof(struct sonde_probe_stacks_record) > HITS_BYTES_MAX) {
		stacks->nr_unsaid++;
		return 0;
	}
	buffer_append(&stacks->hits, record, sizeof(struct sonde_probe_stacks_record));
	return stacks->hits.err;
}

static int take_record(struct measurement *measurement, const void *record)
{
	struct traced_stacks *stacks = stacks_of(measurement);
	const struct sonde_event_record *event = record;

	if (event->type == SONDE_RECORD_HIT)
		return stacks->sums ? sum_hit(stacks, record) : keep_hit(stacks, record);
	return stack_recorder_record(measurement->parts.engine->recorder, event->type == SONDE_RECORD_EVENT ? &event->sample : record);
}

static int stop(struct measurement *measurement, struct diag *diag, uint64_t *ret_end_ns)
{
	struct traced_stacks *stacks = stacks_of(measurement);

	for (uint32_t i = 0; i < MAX_PROBES; i++) {
		if (stacks->programs[i])
			event_programs_stop(stacks->programs[i]);
	}
	return 0;
}

/* --- hits with their stacks ----------------------------------------------------------------------------------------------------------- */

static bool is_due(const struct measurement *measurement)
{
	const struct traced_stacks *stacks = (const struct traced_stacks *)measurement;

	return stacks->probes.options.print && stacks->hits.size;
}

static size_t window_bytes(const struct measurement *measurement)
{
	const struct traced_stacks *stacks = (const struct traced_stacks *)measurement;

	return stacks->hits.size + (stacks->sums ? stacks->sums->nr * sizeof(struct stack_sum) : 0);
}

static int keep(struct measurement *measurement, const struct stack_ids *ids, const struct process_table *processes)
{
	return stack_recorder_keep(measurement->parts.engine->recorder, ids, 0, processes);
}

/* The window gets the hits, or the sums, and their stacks. */
static int close_window(struct measurement *measurement, const struct process_table *processes, struct window *window)
{
	struct traced_stacks *stacks = stacks_of(measurement);
	const struct sonde_probe_stacks_record *hits = (const void *)stacks->hits.data;
	int err = 0;

	for (size_t i = 0; !err && i < stacks->hits.size / sizeof(*hits); i++) {
		const struct stack_ids ids = ids_of(&hits[i].event.sample);

		err = keep(measurement, &ids, processes);
	}
	window->waits = stacks->hits;
	stacks->hits = BUFFER_INIT(HITS_BYTES_MAX);
	if (!stacks->sums)
		return err;
	for (uint32_t i = 0; !err && i < stacks->sums->nr; i++)
		err = keep(measurement, &((const struct stack_sum *)interned_at(stacks->sums, i))->ids, processes);
	window->own = stacks->sums;
	window->free_own = free_sums;
	stacks->sums = new_sums();
	return err ?: stacks->sums ? 0 : -ENOMEM;
}

static bool has_offsets(const struct traced_stacks *stacks)
{
	return stacks->base.parts.options->offsets;
}

/* The names of both stacks, leaf first, a line each. */
static int take_frames(const struct profile *profile, uint32_t kernel_stack, uint32_t user_stack, bool offsets, struct buffer *frames)
{
	frames->size = 0;
	frame_text_stack(frames, profile, kernel_stack, offsets, "");
	frame_text_stack(frames, profile, user_stack, offsets, "");
	buffer_append(frames, "", 1);
	return frames->err;
}

/* A hit without its stacks. */
static struct sonde_probe_record line_of(const struct sonde_probe_stacks_record *hit)
{
	struct sonde_probe_record record = { .time_ns = hit->event.sample.time_ns,
					     .tgid = hit->event.sample.tgid,
					     .tid = hit->event.sample.tid,
					     .cpu = hit->event.sample.cpu,
					     .probe = hit->event.trigger % MAX_PROBES,
					     .values = hit->values };

	memcpy(record.comm, hit->event.sample.comm, sizeof(record.comm));
	return record;
}

static int print_hit(struct traced_stacks *stacks, const struct sonde_probe_stacks_record *hit, const char *frames, struct buffer *lines)
{
	const struct sonde_probe_record record = line_of(hit);
	const struct traced_probe *probe = &stacks->probes.list[record.probe];
	bool unread;

	if (!traced_probe_passes(probe, &record, &unread)) {
		__atomic_fetch_add(&stacks->nr_late, 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&stacks->nr_late_unread[record.probe], unread, __ATOMIC_RELAXED);
		return 0;
	}
	tracing_line(lines, &stacks->probes.words, &record, probe->printed, probe->nr_shown, stacks->unix_offset_ns, frames);
	return lines->size < LINES_BYTES_MANY ? lines->err : tell(stacks, lines);
}

static int print_hits(struct traced_stacks *stacks, const struct buffer *waiting, struct stack_builder *builder,
		      const struct profile *profile, struct buffer *lines)
{
	const struct sonde_probe_stacks_record *hits = (const void *)waiting->data;
	CLEANUP(buffer_done) struct buffer frames = BUFFER_INIT(LINES_BYTES_MAX);
	int err = 0;

	for (size_t i = 0; !err && i < waiting->size / sizeof(*hits); i++) {
		const struct stack_ids ids = ids_of(&hits[i].event.sample);
		struct profile_sample sample = { 0 };

		err = stack_builder_sample(builder, &ids, 1, &sample)
			      ?: take_frames(profile, sample.kernel_stack, sample.user_stack, has_offsets(stacks), &frames)
			      ?: print_hit(stacks, &hits[i], frames.data, lines);
	}
	return err;
}

/* --- sums by stacks ------------------------------------------------------------------------------------------------------------------- */

#define FRAMES_BYTES_MAX ((size_t)1 << 30)

struct stack_row { /* the sums of stacks that have the same names: of other addresses, or walked late, they have ids of their own */
	uint32_t frames, pad; /* the names, in `texts` */
	struct tracing_row row;
};
#define STACK_ROW_KEY_BYTES (offsetof(struct stack_row, row) + offsetof(struct tracing_row, sum))

static int merge_one(const struct stack_sum *sum, const char *frames, struct texts *texts, struct interned *rows)
{
	struct stack_row row = { .frames = texts_add(texts, frames), .row.probe = sum->row.probe, .row.key = sum->row.key };
	uint32_t at;

	memcpy(row.row.sum.comm, sum->row.sum.comm, sizeof(row.row.sum.comm));
	at = row.frames == TEXTS_NONE ? INTERNED_NONE : interned_add(rows, &row);
	if (at == INTERNED_NONE)
		return -ENOMEM;
	((struct stack_row *)interned_at(rows, at))->row.sum.count += sum->row.sum.count;
	return 0;
}

static int merge(const struct interned *sums, struct stack_builder *builder, const struct profile *profile, bool offsets,
		 struct texts *texts, struct interned *rows)
{
	CLEANUP(buffer_done) struct buffer frames = BUFFER_INIT(LINES_BYTES_MAX);
	int err = 0;

	for (uint32_t i = 0; !err && i < sums->nr; i++) {
		const struct stack_sum *sum = (const struct stack_sum *)(const void *)sums->entries + i;
		struct profile_sample sample = { 0 };

		err = stack_builder_sample(builder, &sum->ids, 1, &sample)
			      ?: take_frames(profile, sample.kernel_stack, sample.user_stack, offsets, &frames)
			      ?: merge_one(sum, frames.data, texts, rows);
	}
	return err;
}

static int by_count(const void *a, const void *b)
{
	const struct stack_row *left = a, *right = b;

	return order(left->row.sum.count, right->row.sum.count) ?: memcmp(left, right, STACK_ROW_KEY_BYTES);
}

static int print_rows(struct traced_stacks *stacks, struct interned *rows, const struct texts *texts, struct buffer *lines)
{
	struct stack_row *list = (struct stack_row *)(void *)rows->entries;
	int err = lines->err;

	if (rows->nr)
		qsort(list, rows->nr, sizeof(*list), by_count);
	for (uint32_t i = 0; !err && i < rows->nr; i++) {
		tracing_row(lines, &stacks->probes.words, &list[i].row, texts_at(texts, list[i].frames));
		err = lines->size < LINES_BYTES_MANY ? lines->err : tell(stacks, lines);
	}
	return err;
}

static int print_sums(struct traced_stacks *stacks, const struct interned *sums, struct stack_builder *builder,
		      const struct profile *profile, struct buffer *lines)
{
	struct interned rows = INTERNED_INIT(struct stack_row, STACK_ROW_KEY_BYTES, SUMS_BYTES_MAX);
	struct texts texts = TEXTS_INIT(FRAMES_BYTES_MAX);
	int err = merge(sums, builder, profile, has_offsets(stacks), &texts, &rows) ?: print_rows(stacks, &rows, &texts, lines);

	interned_done(&rows);
	texts_done(&texts);
	return err;
}

static int print_window(struct measurement *measurement, struct window *window, struct stack_builder *builder, struct profile *profile)
{
	CLEANUP(buffer_done) struct buffer lines = BUFFER_INIT(LINES_BYTES_MAX);
	struct traced_stacks *stacks = stacks_of(measurement);
	int err = window->own ? print_sums(stacks, window->own, builder, profile, &lines)
			      : print_hits(stacks, &window->waits, builder, profile, &lines);

	return err ? err : tell(stacks, &lines);
}

/* --- the end -------------------------------------------------------------------------------------------------------------------------- */

static void add_counters(const struct traced_stacks *stacks, struct sonde_event_counters *ret_sum)
{
	*ret_sum = (struct sonde_event_counters){ 0 };
	for (uint32_t i = 0; i < stacks->probes.probes.nr; i++) {
		struct sonde_event_counters count;
		uint64_t *to = (uint64_t *)ret_sum, *from = (uint64_t *)&count;

		event_programs_counters(stacks->programs[i], &count);
		for (size_t j = 0; j < sizeof(count) / sizeof(*from); j++)
			to[j] += from[j];
	}
}

static void account(const struct measurement *measurement, struct account *account)
{
	const struct traced_stacks *stacks = (const struct traced_stacks *)measurement;
	struct sonde_event_counters count;

	add_counters(stacks, &count);
	account->ticks = count.hits;
	account->recorded = count.recorded;
	memcpy(account->filtered, count.filtered, sizeof(account->filtered));
	memcpy(account->dropped, count.dropped, sizeof(account->dropped));
	snprintf(account->event, sizeof(account->event), "%s", stacks->probes.options.probes);
	snprintf(account->event_unit, sizeof(account->event_unit), "count");
}

static void note_losses(const struct traced_stacks *stacks, uint64_t duration_ns, struct account *account)
{
	for (uint32_t i = 0; i < stacks->probes.probes.nr; i++) {
		struct sonde_event_counters count;
		uint64_t dropped = 0;

		event_programs_counters(stacks->programs[i], &count);
		for (uint32_t reason = 0; reason < SONDE_DROP_COUNT; reason++)
			dropped += count.dropped[reason];
		traced_probes_note_unsure(&stacks->probes, i, count.unread + __atomic_load_n(&stacks->nr_late_unread[i], __ATOMIC_RELAXED),
					  event_programs_nr_left_out(stacks->programs[i]), account);
		if (!count.recorded && !dropped) /* hits of a system call's tracepoint are those of all calls */
			traced_probes_note_silent(&stacks->probes, i, duration_ns, account);
	}
}

static int finish(struct measurement *measurement, uint64_t start_ns, uint64_t end_ns, struct profile **ret_profile)
{
	note_losses(stacks_of(measurement), end_ns - start_ns, profile_account(*ret_profile));
	return 0; /* the profile is the window's */
}

static int finish_lines(struct measurement *measurement, uint64_t start_ns, uint64_t end_ns, struct profile **ret_profile)
{
	struct traced_stacks *stacks = stacks_of(measurement);

	note_losses(stacks, end_ns - start_ns, measurement->parts.account);
	return events_account(measurement, start_ns + stacks->unix_offset_ns, end_ns - start_ns, ret_profile);
}

static uint64_t nr_of_lines(const struct measurement *measurement)
{
	struct sonde_event_counters count;

	add_counters((const struct traced_stacks *)measurement, &count);
	return count.recorded;
}

static void summary(const struct measurement *measurement, struct buffer *lines)
{
	const struct traced_stacks *stacks = (const struct traced_stacks *)measurement;
	struct sonde_event_counters count;
	uint64_t dropped = stacks->nr_unsaid;

	add_counters(stacks, &count);
	for (uint32_t reason = 0; reason < SONDE_DROP_COUNT; reason++)
		dropped += count.dropped[reason];
	traced_probes_summary(&stacks->probes, __atomic_load_n(&stacks->nr_late, __ATOMIC_RELAXED), lines);
	buffer_printf(lines, "hits: %" PRIu64 " with stacks, %" PRIu64 " of others or rejected by the filter, %" PRIu64 " lost\n",
		      (uint64_t)count.recorded - stacks->nr_unsaid, (uint64_t)count.filtered[SONDE_FILTER_TARGET], dropped);
}

const struct measurement_type traced_stacks_measurement = {
	.bytes = sizeof(struct traced_stacks),
	.init = init,
	.done = done,
	.load = load,
	.start = start,
	.record = take_record,
	.stop = stop,
	.finish = finish,
	.profile = measurement_add_samples,
	.has_labels = true,
	.nr = measurement_nr_samples,
	.account = account,
};

static const struct measurement_type lines_measurement = {
	.bytes = sizeof(struct traced_stacks),
	.init = init,
	.done = done,
	.load = load,
	.start = start,
	.record = take_record,
	.stop = stop,
	.finish = finish_lines,
	.is_due = is_due,
	.close = close_window,
	.window_bytes = window_bytes,
	.profile = print_window,
	.nr = nr_of_lines,
	.account = account,
	.summary = summary,
};
