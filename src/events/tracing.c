// SPDX-License-Identifier: Apache-2.0
/* The measurement of hits of probes: counted by fields, with times from entry to return, or line by line. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/order.h"
#include "engine/measurement.h"
#include "events/events.h"
#include "events/traced_probes.h"
#include "programs/probe_programs.h"

#define LINES_BYTES_MAX	 ((size_t)64 << 20)
#define LINES_BYTES_MANY ((size_t)1 << 18) /* then the lines are handed over */
#define MAX_ROWS	 (1u << 18)
#define MAX_WAITING	 (1u << 20) /* more than all rings hold */

struct traced { /* a probe */
	struct probe_programs *programs, *end; /* end: NULL: there is none */
	uint64_t nr_unread; /* hits that user space has rejected for that */
};

struct tracing {
	struct measurement base;
	struct traced_probes probes;
	struct sonde_config filters;
	struct traced traced[MAX_PROBES];
	struct buffer lines;
	uint64_t unix_offset_ns, nr_late; /* nr_late: hits that user space has rejected */
	struct sonde_probe_record *waiting; /* hits that are not printed yet */
	uint32_t nr_waiting, max_waiting;
	struct tracing_row *rows;
	uint32_t nr_rows, max_rows, row_probe; /* row_probe: whose sums are being read */
};

static struct tracing *tracing_of(struct measurement *measurement)
{
	return (struct tracing *)measurement;
}

static int init(struct measurement *measurement, struct sampler_options *sampling, struct diag *diag)
{
	struct tracing *tracing = tracing_of(measurement);

	tracing->lines = BUFFER_INIT(LINES_BYTES_MAX);
	measurement->needs_engine = measurement->has_stacks = false;
	measurement->takes_whole_command = true;
	tracing->filters = sampling->config;
	return traced_probes_init(&tracing->probes, measurement->parts.options, false, diag);
}

static void done(struct measurement *measurement)
{
	struct tracing *tracing = tracing_of(measurement);

	for (uint32_t i = 0; i < MAX_PROBES; i++) {
		probe_programs_free(tracing->traced[i].end);
		probe_programs_free(tracing->traced[i].programs);
	}
	traced_probes_done(&tracing->probes);
	buffer_done(&tracing->lines);
	free(tracing->waiting);
	free(tracing->rows);
}

static int load_probe(struct tracing *tracing, uint32_t probe, struct probe_programs_options *options, struct diag *diag)
{
	struct traced *traced = &tracing->traced[probe];
	const struct probe_spec *spec = &tracing->probes.probes.list[probe];
	int err;

	options->number = probe;
	options->probe = tracing->probes.list[probe].config;
	options->trigger = &spec->trigger;
	options->begin = NULL;
	err = probe_programs_new(options, diag, &traced->programs);
	if (err || !spec->has_end)
		return err;
	options->probe.context = spec->end_context;
	options->probe.begins = 0;
	options->probe.ends = 1;
	options->probe.nr_filters = 0;
	options->probe.result = spec->end_result_word;
	options->trigger = &spec->end;
	options->begin = traced->programs;
	return probe_programs_new(options, diag, &traced->end);
}

static int load(struct measurement *measurement, const struct targets *targets, uint32_t command_tgid, struct diag *diag)
{
	struct tracing *tracing = tracing_of(measurement);
	CLEANUP(freep) uint32_t *ids = targets_ids(targets);
	struct probe_programs_options options = { .config = tracing->filters, .targets = ids, .nr_targets = targets->nr };
	int err = ids ? tracing->probes.parse_err : -ENOMEM;

	if (tracing->probes.parse_err)
		*diag = tracing->probes.parse_diag;
	for (uint32_t i = 0; !err && i < tracing->probes.probes.nr; i++)
		err = load_probe(tracing, i, &options, diag);
	return err;
}

/* Hands over the lines so far. */
static int tell(struct tracing *tracing)
{
	const struct sonde_session_options *common = tracing->base.parts.options;
	int err = tracing->lines.err;

	if (!err && tracing->lines.size)
		err = common->text(common->arg, tracing->lines.data);
	tracing->lines.size = 0;
	return err;
}

/* Ends first, so that each begin that is seen can have one. */
static int start(struct measurement *measurement, struct diag *diag, uint64_t *ret_start_ns)
{
	struct tracing *tracing = tracing_of(measurement);
	int err;

	tracing->unix_offset_ns = clock_unix_offset_ns();
	traced_probes_start(&tracing->probes, measurement->parts.account);
	tracing_heading(&tracing->lines, &tracing->probes.options, tracing->probes.command_line);
	err = tell(tracing);
	for (uint32_t i = 0; !err && i < tracing->probes.probes.nr; i++) {
		if (tracing->traced[i].end)
			err = probe_programs_start(tracing->traced[i].end, diag);
		if (!err)
			err = probe_programs_start(tracing->traced[i].programs, diag);
	}
	*ret_start_ns = clock_ns();
	return err;
}

static int take_record(void *arg, const struct sonde_probe_record *record)
{
	struct tracing *tracing = arg;
	bool unread;

	if (!traced_probe_passes(&tracing->probes.list[record->probe % MAX_PROBES], record, &unread)) {
		tracing->nr_late++;
		tracing->traced[record->probe % MAX_PROBES].nr_unread += unread;
		return 0;
	}
	if (!array_grow(&tracing->waiting, tracing->nr_waiting, &tracing->max_waiting, sizeof(*tracing->waiting), 256, MAX_WAITING))
		return -ENOMEM;
	tracing->waiting[tracing->nr_waiting++] = *record;
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct sonde_probe_record *left = a, *right = b;

	return order(left->time_ns, right->time_ns);
}

/* Each probe has a ring of its own, so lines are put in order here; those of the time while the rings are read wait for the next turn. */
static int print_waiting(struct tracing *tracing, uint64_t until_ns)
{
	uint32_t nr = 0;
	int err = 0;

	if (tracing->nr_waiting)
		qsort(tracing->waiting, tracing->nr_waiting, sizeof(*tracing->waiting), by_time);
	for (; !err && nr < tracing->nr_waiting && tracing->waiting[nr].time_ns < until_ns; nr++) {
		const struct sonde_probe_record *record = &tracing->waiting[nr];
		const struct traced_probe *probe = &tracing->probes.list[record->probe % MAX_PROBES];

		tracing_line(&tracing->lines, &tracing->probes.words, record, probe->printed, probe->nr_shown, tracing->unix_offset_ns,
			     NULL);
		err = tracing->lines.size < LINES_BYTES_MANY ? tracing->lines.err : tell(tracing);
	}
	tracing->nr_waiting -= nr;
	if (nr)
		memmove(tracing->waiting, tracing->waiting + nr, tracing->nr_waiting * sizeof(*tracing->waiting));
	return err;
}

static int take_records(struct tracing *tracing, uint64_t until_ns)
{
	int err = 0;

	for (uint32_t i = 0; !err && tracing->probes.options.print && i < tracing->probes.probes.nr; i++)
		err = probe_programs_records(tracing->traced[i].programs, take_record, tracing);
	return err ?: print_waiting(tracing, until_ns) ?: tell(tracing);
}

static int step(struct measurement *measurement, uint64_t now_ns, struct diag *diag)
{
	return take_records(tracing_of(measurement), clock_ns());
}

static int stop(struct measurement *measurement, struct diag *diag, uint64_t *ret_end_ns)
{
	struct tracing *tracing = tracing_of(measurement);

	for (uint32_t i = 0; i < tracing->probes.probes.nr; i++) {
		if (tracing->traced[i].programs)
			probe_programs_stop(tracing->traced[i].programs);
		if (tracing->traced[i].end)
			probe_programs_stop(tracing->traced[i].end);
	}
	map_settle();
	*ret_end_ns = clock_ns();
	return take_records(tracing, UINT64_MAX);
}

static int add_row(void *arg, const void *key, const void *sum)
{
	struct tracing *tracing = arg;
	struct tracing_row *row;

	if (!array_grow(&tracing->rows, tracing->nr_rows, &tracing->max_rows, sizeof(*tracing->rows), 64, MAX_ROWS))
		return -ENOMEM;
	row = &tracing->rows[tracing->nr_rows++];
	row->probe = tracing->row_probe;
	memcpy(&row->key, key, sizeof(row->key));
	memcpy(&row->sum, sum, sizeof(row->sum));
	return 0;
}

static const struct probe_programs *counting(const struct traced *traced)
{
	return traced->end ? traced->end : traced->programs;
}

static const char *text_of(const struct tracing *tracing, uint32_t probe)
{
	return tracing->probes.probes.list[probe].text;
}

/* Of the calls whose begin was seen, how many have no time, and what was lost on the way. */
static void note_unpaired(const struct tracing *tracing, uint32_t i, const struct sonde_probe_counters *ends, struct account *account)
{
	struct sonde_probe_counters begins;
	uint64_t timed = ends->counted + ends->keys_full;

	probe_programs_counters(tracing->traced[i].programs, &begins);
	if (begins.unpaired > timed)
		account_note(account,
			     "%.80s: %" PRIu64 " calls have begun and have no time: they had not returned, were left otherwise, "
			     "or more than %d of a thread were open",
			     text_of(tracing, i), (uint64_t)begins.unpaired - timed, SONDE_PROBE_DEPTH);
	if (ends->unpaired > begins.rejected + begins.unread)
		account_note(account, "%.80s: %" PRIu64 " ends have no time: their begin was not seen", text_of(tracing, i),
			     (uint64_t)(ends->unpaired - begins.rejected - begins.unread));
}

static void note_losses(struct tracing *tracing, uint64_t duration_ns, struct account *account)
{
	for (uint32_t i = 0; i < tracing->probes.probes.nr; i++) {
		const struct traced *traced = &tracing->traced[i];
		struct sonde_probe_counters count, begins;

		probe_programs_counters(counting(traced), &count);
		probe_programs_counters(traced->programs, &begins);
		traced_probes_note_unsure(&tracing->probes, i, begins.unread + traced->nr_unread,
					  probe_programs_nr_left_out(traced->programs) +
						  (traced->end ? probe_programs_nr_left_out(traced->end) : 0),
					  account);
		if (!begins.hits)
			traced_probes_note_silent(&tracing->probes, i, duration_ns, account);
		if (count.lost)
			account_note(account, "%.200s: %" PRIu64 " of %" PRIu64 " hits found no room in the ring buffer and are not shown",
				     text_of(tracing, i), (uint64_t)count.lost, (uint64_t)(count.lost + count.sent));
		if (count.keys_full)
			account_note(account, "%.200s: %" PRIu64 " hits are in no sum: there is no room for more", text_of(tracing, i),
				     (uint64_t)count.keys_full);
		if (traced->end)
			note_unpaired(tracing, i, &count, account);
	}
}

static int finish(struct measurement *measurement, uint64_t start_ns, uint64_t end_ns, struct profile **ret_profile)
{
	struct tracing *tracing = tracing_of(measurement);
	int err = 0;

	for (uint32_t i = 0; !err && !tracing->probes.options.print && i < tracing->probes.probes.nr; i++) {
		struct traced *traced = &tracing->traced[i];

		tracing->row_probe = i;
		err = probe_programs_sums(traced->end ? traced->end : traced->programs, add_row, tracing);
	}
	if (!err)
		err = tracing_rows(&tracing->lines, &tracing->probes.words, tracing->rows, tracing->nr_rows) ?: tell(tracing);
	if (err)
		return err;
	note_losses(tracing, end_ns - start_ns, measurement->parts.account);
	return events_account(measurement, start_ns + tracing->unix_offset_ns, end_ns - start_ns, ret_profile);
}

static void add_counters(const struct tracing *tracing, struct sonde_probe_counters *ret_sum)
{
	*ret_sum = (struct sonde_probe_counters){ 0 };
	for (uint32_t i = 0; i < tracing->probes.probes.nr; i++) {
		struct sonde_probe_counters count;
		uint64_t *to = (uint64_t *)ret_sum, *from = (uint64_t *)&count;

		probe_programs_counters(counting(&tracing->traced[i]), &count);
		for (size_t j = 0; j < sizeof(count) / sizeof(*from); j++)
			to[j] += from[j];
		if (tracing->traced[i].end) { /* of a time, the begin asks the filter */
			probe_programs_counters(tracing->traced[i].programs, &count);
			ret_sum->rejected += count.rejected;
			ret_sum->unread += count.unread;
		}
	}
}

static uint64_t nr(const struct measurement *measurement)
{
	struct sonde_probe_counters count;

	add_counters((const struct tracing *)measurement, &count);
	return count.counted + count.keys_full;
}

static void summary(const struct measurement *measurement, struct buffer *lines)
{
	const struct tracing *tracing = (const struct tracing *)measurement;
	struct sonde_probe_counters count;

	add_counters(tracing, &count);
	traced_probes_summary(&tracing->probes, tracing->nr_late, lines);
	buffer_printf(lines,
		      "hits: %" PRIu64 " counted, %" PRIu64 " rejected by the filter, %" PRIu64 " of others, %" PRIu64
		      " of sonde itself, %" PRIu64 " lost\n",
		      (uint64_t)count.counted, (uint64_t)(count.rejected + count.unread), (uint64_t)count.filtered, (uint64_t)count.own,
		      (uint64_t)(count.lost + count.keys_full));
}

const struct measurement_type tracing_measurement = {
	.bytes = sizeof(struct tracing),
	.init = init,
	.done = done,
	.load = load,
	.start = start,
	.step = step,
	.stop = stop,
	.finish = finish,
	.nr = nr,
	.summary = summary,
};
