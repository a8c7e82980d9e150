// SPDX-License-Identifier: Apache-2.0
/* The measurement of opened files: a line for each call, or sums of them after each interval. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sized.h"
#include "engine/measurement.h"
#include "events/events.h"
#include "events/key_names.h"
#include "events/opens_report.h"
#include "programs/files_programs.h"

#define LINES_BYTES_MAX	 ((size_t)64 << 20)
#define LINES_BYTES_MANY ((size_t)1 << 18) /* then the lines are handed over */
#define MAX_ROW_BYTES	 ((uint64_t)64 << 20)

struct opens {
	struct measurement base;
	struct sonde_files_options options;
	struct sonde_config filters;
	struct call_programs *programs;
	struct buffer lines, path;
	struct key_names names; /* of the sums' paths */
	uint64_t unix_offset_ns;
	char *command_line;
};

static struct opens *opens_of(struct measurement *measurement)
{
	return (struct opens *)measurement;
}

static int check(struct sonde_files_options *o, const struct sonde_session_options *common, struct diag *diag)
{
	if (!common->text || o->format > SONDE_LINES_JSON || o->by & ~(unsigned int)(SONDE_BY_PID | SONDE_BY_COMM | SONDE_BY_FILE))
		return diag_errno(diag, EINVAL, "the options ask for nothing that there is");
	if (!o->sums && (o->by || o->top || common->every_ns))
		return diag_errno(diag, EINVAL, "single calls have no sums, no order and no intervals: ask for sums");
	if (o->sums && o->format == SONDE_LINES_BPFTRACE)
		return diag_errno(diag, EINVAL, "bpftrace's lines are for single calls, not for sums");
	o->by = o->by ? o->by : SONDE_BY_FILE;
	return 0;
}

static int init(struct measurement *measurement, struct sampler_options *sampling, struct diag *diag)
{
	const struct sonde_session_options *common = measurement->parts.options;
	struct opens *opens = opens_of(measurement);
	int err = sized_options(&opens->options, sizeof(opens->options), common->files, diag) ?: check(&opens->options, common, diag);

	opens->lines = BUFFER_INIT(LINES_BYTES_MAX);
	opens->path = BUFFER_INIT(LINES_BYTES_MAX);
	opens->names = key_names_new(sizeof(struct sonde_open_key));
	if (err)
		return err;
	measurement->needs_engine = measurement->has_stacks = false;
	measurement->takes_whole_command = true;
	opens->filters = sampling->config;
	opens->command_line = strdup(common->command_line ? common->command_line : "");
	return opens->command_line ? 0 : -ENOMEM;
}

static void done(struct measurement *measurement)
{
	struct opens *opens = opens_of(measurement);

	call_programs_free(opens->programs);
	key_names_done(&opens->names);
	buffer_done(&opens->lines);
	buffer_done(&opens->path);
	free(opens->command_line);
}

static int load(struct measurement *measurement, const struct targets *targets, uint32_t command_tgid, struct diag *diag)
{
	struct opens *opens = opens_of(measurement);
	const struct sonde_files_options *o = &opens->options;
	CLEANUP(freep) uint32_t *ids = targets_ids(targets);
	const struct sonde_opens_config config = { .failed_only = o->failed_only,
						   .sums = o->sums,
						   .by_tgid = (o->by & SONDE_BY_PID) != 0,
						   .by_comm = (o->by & SONDE_BY_COMM) != 0,
						   .by_path = (o->by & SONDE_BY_FILE) != 0 };
	struct call_options options = { .config = opens->filters, .targets = ids, .nr_targets = targets->nr };

	options.config.command_tgid = command_tgid;
	return ids ? files_programs_new(&options, &config, diag, &opens->programs) : -ENOMEM;
}

/* Hands over the lines so far. */
static int tell(struct opens *opens)
{
	const struct sonde_session_options *common = opens->base.parts.options;
	int err = opens->lines.err;

	if (!err && opens->lines.size)
		err = common->text(common->arg, opens->lines.data);
	opens->lines.size = 0;
	return err;
}

static int start(struct measurement *measurement, struct diag *diag, uint64_t *ret_start_ns)
{
	struct opens *opens = opens_of(measurement);
	int err;

	opens->unix_offset_ns = clock_unix_offset_ns();
	opens_heading(&opens->lines, &opens->options, opens->command_line);
	err = tell(opens) ?: call_programs_start(opens->programs, diag);
	*ret_start_ns = clock_ns();
	return err;
}

static int take_record(void *arg, const void *bytes, size_t size)
{
	struct opens *opens = arg;
	const struct sonde_open_record *record = bytes;
	const struct sonde_file_text *file = (const void *)(record + 1);

	opens->path.size = 0;
	opens_path(&opens->path, record, file, (const char *)(file + 1));
	buffer_append(&opens->path, "", 0);
	if (opens->path.err)
		return opens->path.err;
	if (opens->options.sums) {
		key_names_add(&opens->names, &record->key, opens->path.data);
		return 0;
	}
	opens_line(&opens->lines, &opens->options, record, opens->path.data, opens->unix_offset_ns);
	return opens->lines.size < LINES_BYTES_MANY ? opens->lines.err : tell(opens);
}

static int take_records(struct opens *opens)
{
	return call_programs_records(opens->programs, take_record, opens) ?: tell(opens);
}

static int step(struct measurement *measurement, uint64_t now_ns, struct diag *diag)
{
	return take_records(opens_of(measurement));
}

static int fd(const struct measurement *measurement)
{
	return call_programs_wake_fd(((const struct opens *)measurement)->programs);
}

/* --- sums ----------------------------------------------------------------------------------------------------------------------------- */

struct summing {
	struct opens *opens;
	struct interned rows; /* of struct opens_row: keys with the same text are one */
};

static int add_row(void *arg, const void *key_bytes, const void *value)
{
	struct summing *summing = arg;
	struct sonde_open_key key;
	struct sonde_open_sum sum;
	struct opens_row row = { 0 }, *to;
	uint32_t number;

	memcpy(&key, key_bytes, sizeof(key));
	memcpy(&sum, value, sizeof(sum));
	row.tgid = key.tgid;
	row.path = summing->opens->options.by & SONDE_BY_FILE ? key_names_find(&summing->opens->names, &key) : TEXTS_NONE;
	if (summing->opens->options.by & SONDE_BY_COMM)
		memcpy(row.comm, key.comm, sizeof(row.comm));
	else if (summing->opens->options.by & SONDE_BY_PID)
		memcpy(row.comm, sum.comm, sizeof(row.comm));
	number = interned_add(&summing->rows, &row);
	if (number == INTERNED_NONE)
		return -ENOMEM;
	to = interned_at(&summing->rows, number);
	to->opens += sum.opens;
	to->failed += sum.failed;
	to->last_error = sum.last_error ? (uint32_t)sum.last_error : to->last_error;
	return 0;
}

/* Reports the sums since the last report. */
static int report(struct opens *opens)
{
	struct summing summing = { .opens = opens, .rows = INTERNED_INIT(struct opens_row, OPENS_ROW_KEY_BYTES, MAX_ROW_BYTES) };
	CLEANUP(closep) int fd = -1;
	int err = call_programs_turn(opens->programs, &fd) ?: call_programs_records(opens->programs, take_record, opens);

	if (!err)
		err = map_read(fd, sizeof(struct sonde_open_key), sizeof(struct sonde_open_sum), add_row, &summing);
	if (!err)
		opens_rows(&opens->lines, &opens->options, (struct opens_row *)(void *)summing.rows.entries, summing.rows.nr,
			   opens->names.texts.bytes.data, clock_ns() + opens->unix_offset_ns);
	interned_done(&summing.rows);
	key_names_turn(&opens->names);
	return err ? err : tell(opens);
}

static int interval(struct measurement *measurement, uint64_t border_ns)
{
	return report(opens_of(measurement));
}

/* --- the end -------------------------------------------------------------------------------------------------------------------------- */

static int stop(struct measurement *measurement, struct diag *diag, uint64_t *ret_end_ns)
{
	struct opens *opens = opens_of(measurement);

	call_programs_stop(opens->programs);
	*ret_end_ns = clock_ns();
	return opens->options.sums ? 0 : take_records(opens);
}

static void count_of(const struct opens *opens, struct sonde_open_counters *ret_count)
{
	call_programs_counters(opens->programs, (uint64_t *)ret_count, sizeof(*ret_count) / sizeof(uint64_t));
}

static void note_losses(const struct opens *opens, struct account *account)
{
	struct sonde_open_counters count;

	count_of(opens, &count);
	if (count.lost)
		account_note(account,
			     "%" PRIu64 " of %" PRIu64 " calls found no room in the ring buffer and are not shown: they came too fast",
			     (uint64_t)count.lost, (uint64_t)(count.lost + count.sent));
	if (count.keys_full)
		account_note(account, "%" PRIu64 " calls are in no sum: there is no room for more paths in an interval",
			     (uint64_t)count.keys_full);
}

static int finish(struct measurement *measurement, uint64_t start_ns, uint64_t end_ns, struct profile **ret_profile)
{
	struct opens *opens = opens_of(measurement);
	int err = opens->options.sums ? report(opens) : 0;

	if (err)
		return err;
	note_losses(opens, measurement->parts.account);
	return events_account(measurement, start_ns + opens->unix_offset_ns, end_ns - start_ns, ret_profile);
}

static uint64_t nr(const struct measurement *measurement)
{
	struct sonde_open_counters count;

	count_of((const struct opens *)measurement, &count);
	return count.sent + count.lost + count.summed + count.keys_full;
}

static void summary(const struct measurement *measurement, struct buffer *lines)
{
	struct sonde_open_counters count;

	count_of((const struct opens *)measurement, &count);
	buffer_printf(
	    lines, "calls that open files: %" PRIu64 " shown, %" PRIu64 " lost, %" PRIu64 " of others, %" PRIu64 " of sonde itself\n",
	    (uint64_t)(count.sent + count.summed), (uint64_t)(count.lost + count.keys_full), (uint64_t)count.filtered, (uint64_t)count.own);
}

const struct measurement_type opens_measurement = {
	.bytes = sizeof(struct opens),
	.init = init,
	.done = done,
	.load = load,
	.start = start,
	.step = step,
	.fd = fd,
	.interval = interval,
	.stop = stop,
	.finish = finish,
	.nr = nr,
	.summary = summary,
};
