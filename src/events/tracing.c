// SPDX-License-Identifier: Apache-2.0
/* The measurement of hits of probes: counted by fields, with times from entry to return, or line by line. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/sized.h"
#include "programs/probe_programs.h"
#include "engine/measurement.h"
#include "events/events.h"
#include "events/probes.h"
#include "events/tracing_report.h"

#define LINES_BYTES_MAX	 ((size_t)64 << 20)
#define LINES_BYTES_MANY ((size_t)1 << 18) /* then the lines are handed over */
#define MAX_ROWS	 (1u << 18)

struct traced {				       /* a probe */
	struct probe_programs *programs, *end; /* end: NULL: there is none */
	struct sonde_probe_config config;
	struct tracing_printed printed[SONDE_PROBE_PRINTED];
};

struct tracing {
	struct measurement base;
	struct sonde_trace_options options;
	struct sonde_config filters;
	struct probes probes;
	struct traced traced[MAX_PROBES];
	struct tracing_words words;
	struct buffer lines;
	char *command_line, *filter, *by_arg, *probe_texts;
	uint64_t unix_offset_ns;
	int parse_err; /* the probes cannot be traced; parse_diag says why */
	struct diag parse_diag;
	struct tracing_row *rows;
	uint32_t nr_rows, max_rows, row_probe; /* row_probe: whose sums are being read */
};

static struct tracing *tracing_of(struct measurement *measurement)
{
	return (struct tracing *)measurement;
}

static const char *probe_text(const void *arg, uint32_t probe)
{
	const struct tracing *tracing = arg;

	return probe < tracing->probes.nr ? tracing->probes.list[probe].text : "?";
}

static int check(const struct sonde_trace_options *o, const struct sonde_session_options *common, struct diag *diag)
{
	const unsigned int fields = SONDE_BY_PID | SONDE_BY_COMM | SONDE_BY_TID | SONDE_BY_CPU;

	if (!common->text || !o->probes || o->format > SONDE_LINES_JSON || o->format == SONDE_LINES_BPFTRACE || o->by & ~fields)
		return diag_errno(diag, EINVAL, "the options ask for nothing that there is");
	if (o->latency && o->print)
		return diag_errno(diag, EINVAL, "times are summed: --latency has no lines");
	return 0;
}

/* What a line shows of the probe's arguments. */
static void choose_printed(const struct tracing *tracing, uint32_t probe, struct traced *traced)
{
	static const char *const numbered[] = { "arg0", "arg1", "arg2", "arg3", "arg4", "arg5" };
	const struct probe_spec *spec = &tracing->probes.list[probe];
	uint32_t nr = spec->args.nr ? spec->args.nr : spec->context == SONDE_PROBE_CALL_END ? 0 : ARRAY_SIZE(numbered);
	bool ends = spec->context == SONDE_PROBE_CALL_END || spec->trigger.kind == TRIGGER_URETPROBE ||
		    spec->trigger.kind == TRIGGER_KRETPROBE || spec->result_word;
	struct diag ignored = { 0 };

	if (ends && !spec->result_word)
		nr = 0; /* the registers of the arguments have other contents by then */
	for (uint32_t i = 0; i <= nr && traced->config.nr_printed < SONDE_PROBE_PRINTED; i++) {
		struct tracing_printed *printed = &traced->printed[traced->config.nr_printed];

		printed->name = i < nr ? (spec->args.nr ? spec->args.list[i].name : numbered[i]) : "ret";
		if (i == nr && !ends)
			break;
		if (!probe_spec_field(spec, tracing->probes.types, printed->name, &ignored, &printed->field, &printed->is_address))
			traced->config.printed[traced->config.nr_printed++] = printed->field;
	}
}

static int set_up_probe(struct tracing *tracing, uint32_t probe, struct diag *diag)
{
	const struct sonde_trace_options *o = &tracing->options;
	const struct probe_spec *spec = &tracing->probes.list[probe];
	struct sonde_probe_config *config = &tracing->traced[probe].config;
	bool is_address;
	int err = 0;

	*config = (struct sonde_probe_config){ .context = spec->context,
					       .call = spec->call,
					       .nr_args = spec->args.nr			       ? spec->args.nr
							  : spec->context == SONDE_PROBE_WORDS ? 6
											       : 0,
					       .result = spec->result_word,
					       .by_tgid = (o->by & SONDE_BY_PID) != 0,
					       .by_tid = (o->by & SONDE_BY_TID) != 0,
					       .by_cpu = (o->by & SONDE_BY_CPU) != 0,
					       .by_comm = (o->by & SONDE_BY_COMM) != 0,
					       .by_arg = o->by_arg != NULL,
					       .begins = o->latency,
					       .prints = o->print };
	if (o->by_arg)
		err = probe_spec_field(spec, tracing->probes.types, o->by_arg, diag, &config->key, &is_address);
	if (!err && o->by_arg && o->latency && config->key.source == SONDE_PROBE_ARG)
		return diag_errno(diag, EINVAL,
				  "at the end of a time its arguments are gone: --latency goes by pid, tid, comm, cpu or arg:ret");
	if (!err && o->filter)
		err = probe_spec_filter(spec, tracing->probes.types, o->filter, diag, config->filters, &config->nr_filters);
	if (!err && o->print)
		choose_printed(tracing, probe, &tracing->traced[probe]);
	tracing->words.key_is_text = config->key.text != SONDE_PROBE_NUMBER;
	tracing->words.key_is_signed = config->key.is_signed;
	return err;
}

/* Texts are borrowed from the caller until the session is made. */
static int copy_texts(struct tracing *tracing, const struct sonde_session_options *common)
{
	struct sonde_trace_options *o = &tracing->options;

	tracing->command_line = strdup(common->command_line ? common->command_line : "");
	tracing->probe_texts = strdup(o->probes);
	tracing->filter = o->filter ? strdup(o->filter) : NULL;
	tracing->by_arg = o->by_arg ? strdup(o->by_arg) : NULL;
	if (!tracing->command_line || !tracing->probe_texts || (o->filter && !tracing->filter) || (o->by_arg && !tracing->by_arg))
		return -ENOMEM;
	o->probes = tracing->probe_texts;
	o->filter = tracing->filter;
	o->by_arg = tracing->by_arg;
	return 0;
}

/* Wrong words are refused here, as usage; what this kernel does not have, or cannot do, when it is loaded. */
static int set_up_probes(struct tracing *tracing, const struct sonde_session_options *common, struct diag *diag)
{
	struct diag *why = &tracing->parse_diag;
	int err = probes_parse(tracing->options.probes, tracing->options.latency, common->nr_tgids == 1 ? common->tgids[0] : 0, why,
			       &tracing->probes);

	if (!err && common->command)
		err = diag_errno(why, EINVAL, "trace takes no command: start it, then give its process id");
	for (uint32_t i = 0; !err && i < tracing->probes.nr; i++)
		err = set_up_probe(tracing, i, why);
	if (err == -EINVAL || err == -ENOMEM) {
		*diag = *why;
		return err;
	}
	tracing->parse_err = err;
	return 0;
}

static int init(struct measurement *measurement, struct sampler_options *sampling, struct diag *diag)
{
	const struct sonde_session_options *common = measurement->parts.options;
	struct tracing *tracing = tracing_of(measurement);
	struct sonde_trace_options *o = &tracing->options;
	int err = sized_options(o, sizeof(*o), common->trace, diag) ?: check(o, common, diag);

	tracing->lines = BUFFER_INIT(LINES_BYTES_MAX);
	measurement->needs_engine = measurement->has_stacks = false;
	measurement->takes_whole_command = true;
	tracing->filters = sampling->config;
	tracing->words = (struct tracing_words){ .options = o, .probe_text = probe_text, .arg = tracing };
	return err ?: copy_texts(tracing, common) ?: set_up_probes(tracing, common, diag);
}

static void done(struct measurement *measurement)
{
	struct tracing *tracing = tracing_of(measurement);

	for (uint32_t i = 0; i < MAX_PROBES; i++) {
		probe_programs_free(tracing->traced[i].end);
		probe_programs_free(tracing->traced[i].programs);
	}
	probes_done(&tracing->probes);
	buffer_done(&tracing->lines);
	free(tracing->command_line);
	free(tracing->probe_texts);
	free(tracing->filter);
	free(tracing->by_arg);
	free(tracing->rows);
}

static int load_probe(struct tracing *tracing, uint32_t probe, struct probe_programs_options *options, struct diag *diag)
{
	struct traced *traced = &tracing->traced[probe];
	const struct probe_spec *spec = &tracing->probes.list[probe];
	int err;

	options->number = probe;
	options->probe = traced->config;
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
	int err = ids ? tracing->parse_err : -ENOMEM;

	if (tracing->parse_err)
		*diag = tracing->parse_diag;
	for (uint32_t i = 0; !err && i < tracing->probes.nr; i++)
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
	tracing_heading(&tracing->lines, &tracing->options, tracing->command_line);
	err = tell(tracing);
	for (uint32_t i = 0; !err && i < tracing->probes.nr; i++) {
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
	const struct traced *traced = &tracing->traced[record->probe % MAX_PROBES];

	tracing_line(&tracing->lines, &tracing->words, record, traced->printed, traced->config.nr_printed, tracing->unix_offset_ns);
	return tracing->lines.size < LINES_BYTES_MANY ? tracing->lines.err : tell(tracing);
}

static int take_records(struct tracing *tracing)
{
	int err = 0;

	for (uint32_t i = 0; !err && tracing->options.print && i < tracing->probes.nr; i++)
		err = probe_programs_records(tracing->traced[i].programs, take_record, tracing);
	return err ? err : tell(tracing);
}

static int step(struct measurement *measurement, uint64_t now_ns, struct diag *diag)
{
	return take_records(tracing_of(measurement));
}

static int stop(struct measurement *measurement, struct diag *diag, uint64_t *ret_end_ns)
{
	struct tracing *tracing = tracing_of(measurement);

	for (uint32_t i = 0; i < tracing->probes.nr; i++) {
		if (tracing->traced[i].programs)
			probe_programs_stop(tracing->traced[i].programs);
		if (tracing->traced[i].end)
			probe_programs_stop(tracing->traced[i].end);
	}
	map_settle();
	*ret_end_ns = clock_ns();
	return take_records(tracing);
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

static void note_losses(struct tracing *tracing, uint64_t duration_ns, struct account *account)
{
	for (uint32_t i = 0; i < tracing->probes.nr; i++) {
		struct sonde_probe_counters count;

		probe_programs_counters(counting(&tracing->traced[i]), &count);
		if (!count.hits)
			account_note(account, "%.200s: attached, 0 hits in %.1f s", probe_text(tracing, i), (double)duration_ns / NS_PER_S);
		if (count.lost)
			account_note(account, "%.200s: %" PRIu64 " of %" PRIu64 " hits found no room in the ring buffer and are not shown",
				     probe_text(tracing, i), (uint64_t)count.lost, (uint64_t)(count.lost + count.sent));
		if (count.keys_full)
			account_note(account, "%.200s: %" PRIu64 " hits are in no sum: there is no room for more", probe_text(tracing, i),
				     (uint64_t)count.keys_full);
		if (tracing->traced[i].end && count.unpaired)
			account_note(account, "%.200s: %" PRIu64 " ends have no time: their begin was not seen, or not asked for",
				     probe_text(tracing, i), (uint64_t)count.unpaired);
	}
}

static int finish(struct measurement *measurement, uint64_t start_ns, uint64_t end_ns, struct profile **ret_profile)
{
	struct tracing *tracing = tracing_of(measurement);
	int err = 0;

	for (uint32_t i = 0; !err && !tracing->options.print && i < tracing->probes.nr; i++) {
		struct traced *traced = &tracing->traced[i];

		tracing->row_probe = i;
		err = probe_programs_sums(traced->end ? traced->end : traced->programs, add_row, tracing);
	}
	if (!err)
		err = tracing_rows(&tracing->lines, &tracing->words, tracing->rows, tracing->nr_rows) ?: tell(tracing);
	if (err)
		return err;
	note_losses(tracing, end_ns - start_ns, measurement->parts.account);
	return events_account(measurement, start_ns + tracing->unix_offset_ns, end_ns - start_ns, ret_profile);
}

static void add_counters(const struct tracing *tracing, struct sonde_probe_counters *ret_sum)
{
	*ret_sum = (struct sonde_probe_counters){ 0 };
	for (uint32_t i = 0; i < tracing->probes.nr; i++) {
		struct sonde_probe_counters count;
		uint64_t *to = (uint64_t *)ret_sum, *from = (uint64_t *)&count;

		probe_programs_counters(counting(&tracing->traced[i]), &count);
		for (size_t j = 0; j < sizeof(count) / sizeof(*from); j++)
			to[j] += from[j];
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
	struct sonde_probe_counters count;

	add_counters((const struct tracing *)measurement, &count);
	buffer_printf(lines,
		      "hits: %" PRIu64 " counted, %" PRIu64 " rejected by the filter, %" PRIu64 " of others, %" PRIu64
		      " of sonde itself, %" PRIu64 " lost\n",
		      (uint64_t)count.counted, (uint64_t)count.rejected, (uint64_t)count.filtered, (uint64_t)count.own,
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
