// SPDX-License-Identifier: Apache-2.0
#include "events/traced_probes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/sized.h"

#define MAX_CAME 110 /* bytes of a note */

static const char *probe_text(const void *arg, uint32_t probe)
{
	const struct traced_probes *traced = arg;

	return probe < traced->probes.nr ? traced->probes.list[probe].text : "?";
}

static int check(const struct sonde_trace_options *o, const struct sonde_session_options *common, bool with_stacks, struct diag *diag)
{
	const unsigned int fields = SONDE_BY_PID | SONDE_BY_COMM | SONDE_BY_TID | SONDE_BY_CPU | SONDE_BY_STACK;
	bool has_lines = !with_stacks || o->print || o->by & SONDE_BY_STACK;

	if ((has_lines && !common->text) || !o->probes || o->format > SONDE_LINES_JSON || o->format == SONDE_LINES_BPFTRACE ||
	    o->by & ~fields || (!with_stacks && o->by & SONDE_BY_STACK))
		return diag_errno(diag, EINVAL, "the options ask for nothing that there is");
	if (o->latency && (o->print || with_stacks))
		return diag_errno(diag, EINVAL, "times are summed: --latency has no lines and no stacks");
	if (with_stacks && !has_lines && (o->by || o->by_arg))
		return diag_errno(diag, EINVAL, "a profile of stacks has no other sums");
	return 0;
}

/* --- fields of a line ----------------------------------------------------------------------------------------------------------------- */

/* An argument's own name, unless each hit has a field of that name. *ret_field: what it is asked for by. */
static const char *name_of(const struct probe_spec *spec, uint32_t i, const char **ret_field)
{
	static const struct {
		const char *name, *text;
	} numbered[] = { { "arg0", "str(arg0)" }, { "arg1", "str(arg1)" }, { "arg2", "str(arg2)" }, { "arg3", "str(arg3)" },
			 { "arg4", "str(arg4)" }, { "arg5", "str(arg5)" }, { "arg6", "str(arg6)" }, { "arg7", "str(arg7)" } };
	uint32_t number = (spec->args.nr && !spec->args.btf ? spec->args.list[i].number : i) % ARRAY_SIZE(numbered);

	_Static_assert(ARRAY_SIZE(numbered) == SONDE_PROBE_PRINTED, "a line has so many");
	if (spec->args.nr && !probe_spec_is_common(spec->args.list[i].name))
		return *ret_field = spec->args.list[i].name;
	*ret_field = spec->args.nr && kernel_types_is_text(&spec->args, i) ? numbered[number].text : numbered[number].name;
	return numbered[number].name;
}

/* What a line shows of the probe's arguments. */
static void choose_printed(struct probes *probes, const struct probe_spec *spec, struct traced_probe *traced)
{
	uint32_t nr_numbered = spec->context == SONDE_PROBE_USDT ? SONDE_PROBE_PRINTED : SONDE_PROBE_REGISTERS;
	uint32_t nr = spec->args.nr ? spec->args.nr : spec->context == SONDE_PROBE_CALL_END ? 0 : nr_numbered;
	bool ends = probe_spec_is_end(spec);
	struct diag ignored = { 0 };

	if (ends && !spec->result_word)
		nr = 0; /* the registers of the arguments have other contents by then */
	for (uint32_t i = 0; i <= nr && traced->config.nr_printed < SONDE_PROBE_PRINTED; i++) {
		struct tracing_printed *printed = &traced->printed[traced->config.nr_printed];
		const char *text;

		printed->name = i == nr ? "ret" : name_of(spec, i, &text);
		if (i == nr && !ends)
			break;
		if (!probe_spec_field(spec, probes->types, i == nr ? printed->name : text, &ignored, &printed->field, &printed->is_address))
			traced->config.printed[traced->config.nr_printed++] = printed->field;
	}
	traced->nr_shown = traced->config.nr_printed;
}

/* --- comparisons ---------------------------------------------------------------------------------------------------------------------- */

/* Where a record has the field, which is added to what is sent if necessary. False: there is no room. */
static bool find_slot(struct traced_probe *traced, const struct sonde_probe_field *field, uint32_t *ret_slot)
{
	struct sonde_probe_config *config = &traced->config;
	uint32_t slot = 0;

	*ret_slot = LATE_IN_RECORD;
	if (field->source != SONDE_PROBE_ARG && field->source != SONDE_PROBE_RESULT)
		return true;
	while (slot < config->nr_printed && memcmp(&config->printed[slot], field, sizeof(*field)) != 0)
		slot++;
	if (slot == SONDE_PROBE_PRINTED)
		return false;
	if (slot == config->nr_printed)
		config->printed[config->nr_printed++] = *field;
	*ret_slot = slot;
	return true;
}

/* The first are made in the kernel, the others here, of the hits that are sent. */
static int take_filters(struct traced_probes *traced, uint32_t number, struct diag *diag)
{
	struct sonde_probe_filter filters[2 * SONDE_PROBE_FILTERS];
	struct traced_probe *probe = &traced->list[number];
	uint32_t nr = 0;
	int err = probe_spec_filter(&traced->probes.list[number], traced->probes.types, traced->options.filter, diag, filters,
				    ARRAY_SIZE(filters), &nr);

	if (err)
		return err;
	probe->config.nr_filters = nr < SONDE_PROBE_FILTERS ? nr : SONDE_PROBE_FILTERS;
	memcpy(probe->config.filters, filters, probe->config.nr_filters * sizeof(filters[0]));
	if (nr > SONDE_PROBE_FILTERS && !traced->options.print)
		return diag_errno(diag, EINVAL, "%d comparisons at most are made in the kernel, others of single hits: add --print",
				  SONDE_PROBE_FILTERS);
	for (uint32_t i = SONDE_PROBE_FILTERS; i < nr; i++) {
		struct late_filter *late = &probe->late[probe->nr_late++];

		late->filter = filters[i];
		if (!find_slot(probe, &late->filter.field, &late->slot))
			return diag_errno(diag, EINVAL, "the comparisons and the line have more than %d fields together: leave some out",
					  SONDE_PROBE_PRINTED);
	}
	return 0;
}

static uint64_t number_of(const struct late_filter *late, const struct sonde_probe_record *record)
{
	switch (late->filter.field.source) {
	case SONDE_PROBE_TGID:
		return record->tgid;
	case SONDE_PROBE_TID:
		return record->tid;
	case SONDE_PROBE_CPU:
		return record->cpu;
	default:
		return record->values.numbers[late->slot % SONDE_PROBE_PRINTED];
	}
}

static bool passes(const struct late_filter *late, const struct sonde_probe_record *record)
{
	const struct sonde_probe_filter *filter = &late->filter;
	const char *text = late->slot == LATE_IN_RECORD ? record->comm : record->values.texts[late->slot % SONDE_PROBE_PRINTED];

	if (!filter->text_bytes)
		return sonde_probe_is_ordered(filter, number_of(late, record));
	return !strncmp(text, filter->text, filter->text_bytes) == (filter->operator!= SONDE_PROBE_DIFFERENT);
}

bool traced_probe_passes(const struct traced_probe *probe, const struct sonde_probe_record *record, bool *ret_unread)
{
	*ret_unread = false;
	for (uint32_t i = 0; i < probe->nr_late; i++) {
		*ret_unread = probe->late[i].slot != LATE_IN_RECORD && record->values.unread >> (probe->late[i].slot & 31) & 1;
		if (*ret_unread || !passes(&probe->late[i], record))
			return false;
	}
	return true;
}

/* --- creation ------------------------------------------------------------------------------------------------------------------------- */

static int take_key(struct traced_probes *traced, uint32_t number, bool with_stacks, struct diag *diag)
{
	struct sonde_probe_config *config = &traced->list[number].config;
	const struct sonde_trace_options *o = &traced->options;
	struct tracing_key_type *type = &traced->words.key_types[number];
	int err = probe_spec_field(&traced->probes.list[number], traced->probes.types, o->by_arg, diag, &config->key, &type->is_address);

	if (err)
		return err;
	if (o->latency && config->key.source == SONDE_PROBE_ARG)
		return diag_errno(diag, EINVAL,
				  "at the end of a time its arguments are gone: --latency goes by pid, tid, comm, cpu or arg:ret");
	type->is_text = config->key.text != SONDE_PROBE_NUMBER;
	type->is_signed = config->key.is_signed;
	if (with_stacks)
		config->printed[config->nr_printed++] = config->key;
	return 0;
}

static int set_up_probe(struct traced_probes *traced, uint32_t number, bool with_stacks, struct diag *diag)
{
	const struct sonde_trace_options *o = &traced->options;
	const struct probe_spec *spec = &traced->probes.list[number];
	struct traced_probe *probe = &traced->list[number];
	int err = 0;

	probe->config = (struct sonde_probe_config){ .context = spec->context,
						     .call = spec->call,
						     .compat_call = spec->compat_call,
						     .nr_args = spec->args.nr			     ? spec->args.nr
								: spec->context == SONDE_PROBE_WORDS ? 6
												     : 0,
						     .result = spec->result_word,
						     .by_tgid = (o->by & SONDE_BY_PID) != 0,
						     .by_tid = (o->by & SONDE_BY_TID) != 0,
						     .by_cpu = (o->by & SONDE_BY_CPU) != 0,
						     .by_comm = (o->by & SONDE_BY_COMM) != 0,
						     .by_arg = o->by_arg != NULL,
						     .begins = o->latency,
						     .prints = o->print,
						     .examined = with_stacks };
	if (o->by_arg)
		err = take_key(traced, number, with_stacks, diag);
	if (!err && o->print)
		choose_printed(&traced->probes, spec, probe);
	if (!err && o->filter)
		err = take_filters(traced, number, diag);
	return err;
}

/* Texts are borrowed from the caller until the session is made. */
static int copy_texts(struct traced_probes *traced, const struct sonde_session_options *common)
{
	struct sonde_trace_options *o = &traced->options;

	traced->command_line = strdup(common->command_line ? common->command_line : "");
	traced->texts = strdup(o->probes);
	traced->filter = o->filter ? strdup(o->filter) : NULL;
	traced->by_arg = o->by_arg ? strdup(o->by_arg) : NULL;
	if (!traced->command_line || !traced->texts || (o->filter && !traced->filter) || (o->by_arg && !traced->by_arg))
		return -ENOMEM;
	o->probes = traced->texts;
	o->filter = traced->filter;
	o->by_arg = traced->by_arg;
	return 0;
}

static int set_up_probes(struct traced_probes *traced, const struct sonde_session_options *common, bool with_stacks, struct diag *diag)
{
	struct diag *why = &traced->parse_diag;
	int err = probes_parse(traced->options.probes, traced->options.latency, common->nr_tgids == 1 ? common->tgids[0] : 0, why,
			       &traced->probes);

	if (!err && common->command)
		err = diag_errno(why, EINVAL, "trace takes no command: start it, then give its process id");
	for (uint32_t i = 0; !err && i < traced->probes.nr; i++)
		err = set_up_probe(traced, i, with_stacks, why);
	if (err == -EINVAL || err == -ENOMEM) {
		*diag = *why;
		return err;
	}
	traced->parse_err = err;
	return 0;
}

int traced_probes_init(struct traced_probes *traced, const struct sonde_session_options *common, bool with_stacks, struct diag *diag)
{
	struct sonde_trace_options *o = &traced->options;
	int err = sized_options(o, sizeof(*o), common->trace, diag) ?: check(o, common, with_stacks, diag) ?: copy_texts(traced, common);

	traced->words = (struct tracing_words){ .options = o, .probe_text = probe_text, .arg = traced };
	return err ? err : set_up_probes(traced, common, with_stacks, diag);
}

void traced_probes_start(struct traced_probes *traced, struct account *account)
{
	bool has_handler = false;

	for (uint32_t i = 0; i < traced->probes.nr; i++) {
		has_handler |= traced->probes.list[i].is_handler;
		if (traced->probes.list[i].is_thrown_through)
			account_note(account, "%.80s: an exception that passes the function ends the program",
				     traced->probes.list[i].text);
	}
	if (has_handler)
		traced->interrupts = interrupts_read();
}

void traced_probes_note_silent(const struct traced_probes *traced, uint32_t probe, uint64_t duration_ns, struct account *account)
{
	const struct probe_spec *spec = &traced->probes.list[probe];
	struct interrupts *now = spec->is_handler && traced->interrupts ? interrupts_read() : NULL;
	struct buffer came = BUFFER_INIT(1 << 16);

	if (now)
		interrupts_difference(traced->interrupts, now, &came);
	account_note(account, "%.80s: attached, 0 hits in %.1f s%s%.*s%s", spec->text, (double)duration_ns / NS_PER_S,
		     now ? "; meanwhile in /proc/interrupts: " : "", MAX_CAME, now && came.data ? came.data : "",
		     came.size > MAX_CAME ? " ..." : "");
	buffer_done(&came);
	interrupts_free(now);
}

void traced_probes_note_unsure(const struct traced_probes *traced, uint32_t probe, uint64_t nr_unread, uint64_t nr_left_out,
			       struct account *account)
{
	if (nr_unread)
		account_note(account, "%.80s: %" PRIu64 " hits were rejected as what the filter compares was not in memory",
			     traced->probes.list[probe].text, nr_unread);
	if (nr_left_out)
		account_note(account, "%.80s: %" PRIu64 " hits are missing: they came while the kernel was at another one on the same CPU",
			     traced->probes.list[probe].text, nr_left_out);
}

void traced_probes_summary(const struct traced_probes *traced, uint64_t nr_late, struct buffer *lines)
{
	const char *calls_from = kernel_types_of_calls(traced->probes.types);

	if (calls_from)
		buffer_printf(lines, "arguments of system calls have their names by %s\n", calls_from);
	if (traced->list[0].nr_late)
		buffer_printf(lines, "%" PRIu32 " of the comparisons are made in user space: they rejected %" PRIu64 " of the hits\n",
			      traced->list[0].nr_late, nr_late);
}

void traced_probes_done(struct traced_probes *traced)
{
	interrupts_free(traced->interrupts);
	probes_done(&traced->probes);
	free(traced->command_line);
	free(traced->texts);
	free(traced->filter);
	free(traced->by_arg);
}
