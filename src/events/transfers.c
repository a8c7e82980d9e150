// SPDX-License-Identifier: Apache-2.0
/* The measurement of reads and writes: sums after each interval and at the end. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sized.h"
#include "engine/measurement.h"
#include "events/events.h"
#include "events/file_name.h"
#include "events/key_names.h"
#include "events/transfers_report.h"
#include "programs/io_programs.h"

#define LINES_BYTES_MAX ((size_t)64 << 20)
#define MAX_ROW_BYTES	((uint64_t)64 << 20)

struct transfers {
	struct measurement base;
	struct sonde_io_options options;
	struct sonde_config filters;
	struct call_programs *programs;
	struct buffer lines, name;
	struct key_names names;
	uint64_t unix_offset_ns;
	char *command_line;
};

static struct transfers *transfers_of(struct measurement *measurement)
{
	return (struct transfers *)measurement;
}

static int check(struct sonde_io_options *o, const struct sonde_session_options *common, struct diag *diag)
{
	const unsigned int fields = SONDE_BY_PID | SONDE_BY_COMM | SONDE_BY_FILE | SONDE_BY_CALL;

	if (!common->text || o->format > SONDE_LINES_JSON || o->format == SONDE_LINES_BPFTRACE || o->by & ~fields)
		return diag_errno(diag, EINVAL, "the options ask for nothing that there is");
	o->by = o->by ? o->by : SONDE_BY_PID | SONDE_BY_FILE;
	return 0;
}

static int init(struct measurement *measurement, struct sampler_options *sampling, struct diag *diag)
{
	const struct sonde_session_options *common = measurement->parts.options;
	struct transfers *transfers = transfers_of(measurement);
	int err =
	    sized_options(&transfers->options, sizeof(transfers->options), common->io, diag) ?: check(&transfers->options, common, diag);

	transfers->lines = BUFFER_INIT(LINES_BYTES_MAX);
	transfers->name = BUFFER_INIT(LINES_BYTES_MAX);
	transfers->names = key_names_new(sizeof(struct sonde_io_key));
	if (err)
		return err;
	measurement->needs_engine = measurement->has_stacks = false;
	measurement->takes_whole_command = true;
	transfers->filters = sampling->config;
	transfers->command_line = strdup(common->command_line ? common->command_line : "");
	return transfers->command_line ? 0 : -ENOMEM;
}

static void done(struct measurement *measurement)
{
	struct transfers *transfers = transfers_of(measurement);

	call_programs_free(transfers->programs);
	key_names_done(&transfers->names);
	buffer_done(&transfers->lines);
	buffer_done(&transfers->name);
	free(transfers->command_line);
}

static int load(struct measurement *measurement, const struct targets *targets, uint32_t command_tgid, struct diag *diag)
{
	struct transfers *transfers = transfers_of(measurement);
	uint32_t by = transfers->options.by;
	CLEANUP(freep) uint32_t *ids = targets_ids(targets);
	const struct sonde_io_config config = { .by_tgid = (by & SONDE_BY_PID) != 0,
						.by_comm = (by & SONDE_BY_COMM) != 0,
						.by_file = (by & SONDE_BY_FILE) != 0,
						.by_call = (by & SONDE_BY_CALL) != 0,
						.requested = transfers->options.requested };
	struct call_options options = { .config = transfers->filters, .targets = ids, .nr_targets = targets->nr };

	options.config.command_tgid = command_tgid;
	return ids ? io_programs_new(&options, &config, diag, &transfers->programs) : -ENOMEM;
}

/* Hands over the lines so far. */
static int tell(struct transfers *transfers)
{
	const struct sonde_session_options *common = transfers->base.parts.options;
	int err = transfers->lines.err;

	if (!err && transfers->lines.size)
		err = common->text(common->arg, transfers->lines.data);
	transfers->lines.size = 0;
	return err;
}

static int start(struct measurement *measurement, struct diag *diag, uint64_t *ret_start_ns)
{
	struct transfers *transfers = transfers_of(measurement);
	int err;

	transfers->unix_offset_ns = clock_unix_offset_ns();
	transfers_heading(&transfers->lines, &transfers->options, transfers->command_line);
	err = tell(transfers) ?: call_programs_start(transfers->programs, diag);
	*ret_start_ns = clock_ns();
	return err;
}

static int take_name(void *arg, const void *bytes, size_t size)
{
	struct transfers *transfers = arg;
	const struct sonde_io_name *name = bytes;
	const struct sonde_file_text *file = (const void *)(name + 1);

	transfers->name.size = 0;
	file_name(&transfers->name, file, (const char *)(file + 1));
	buffer_append(&transfers->name, "", 0);
	if (transfers->name.err)
		return transfers->name.err;
	key_names_add(&transfers->names, &name->key, transfers->name.data);
	return 0;
}

static int step(struct measurement *measurement, uint64_t now_ns, struct diag *diag)
{
	return call_programs_records(transfers_of(measurement)->programs, take_name, measurement);
}

/* --- reports -------------------------------------------------------------------------------------------------------------------------- */

struct summing {
	struct transfers *transfers;
	struct interned rows; /* of struct transfers_row: files with the same name are one */
};

static void add_side(struct sonde_io_side *to, const struct sonde_io_side *from)
{
	to->calls += from->calls;
	to->failed += from->failed;
	to->bytes += from->bytes;
	to->untimed += from->untimed;
	to->ns += from->ns;
	to->max_ns = to->max_ns > from->max_ns ? to->max_ns : from->max_ns;
}

static uint32_t file_number(struct transfers *transfers, const struct sonde_io_key *key)
{
	if (!(transfers->options.by & SONDE_BY_FILE))
		return TEXTS_NONE;
	return key->file.dentry ? key_names_find(&transfers->names, key) : texts_add(&transfers->names.texts, "[not open]");
}

static int add_row(void *arg, const void *key_bytes, const void *value)
{
	struct summing *summing = arg;
	struct transfers_row row = { 0 }, *to;
	struct sonde_io_key key;
	struct sonde_io_sum sum;
	uint32_t number;

	memcpy(&key, key_bytes, sizeof(key));
	memcpy(&sum, value, sizeof(sum));
	row.tgid = key.tgid;
	row.call = key.call;
	row.file = file_number(summing->transfers, &key);
	if (summing->transfers->options.by & SONDE_BY_COMM)
		memcpy(row.comm, key.comm, sizeof(row.comm));
	else if (summing->transfers->options.by & SONDE_BY_PID)
		memcpy(row.comm, sum.comm, sizeof(row.comm));
	number = interned_add(&summing->rows, &row);
	if (number == INTERNED_NONE)
		return -ENOMEM;
	to = interned_at(&summing->rows, number);
	for (int side = 0; side < SONDE_IO_SIDES; side++)
		add_side(&to->sides[side], &sum.sides[side]);
	return 0;
}

/* Reports the sums since the last report. */
static int report(struct transfers *transfers)
{
	struct summing summing = { .transfers = transfers,
				   .rows = INTERNED_INIT(struct transfers_row, TRANSFERS_ROW_KEY_BYTES, MAX_ROW_BYTES) };
	CLEANUP(closep) int fd = -1;
	int err = call_programs_turn(transfers->programs, &fd) ?: call_programs_records(transfers->programs, take_name, transfers);

	if (!err)
		err = map_read(fd, sizeof(struct sonde_io_key), sizeof(struct sonde_io_sum), add_row, &summing);
	if (!err)
		transfers_rows(&transfers->lines, &transfers->options, (struct transfers_row *)(void *)summing.rows.entries,
			       summing.rows.nr, transfers->names.texts.bytes.data, io_programs_call_name,
			       clock_ns() + transfers->unix_offset_ns);
	interned_done(&summing.rows);
	key_names_turn(&transfers->names);
	return err ? err : tell(transfers);
}

static int interval(struct measurement *measurement, uint64_t border_ns)
{
	return report(transfers_of(measurement));
}

static int stop(struct measurement *measurement, struct diag *diag, uint64_t *ret_end_ns)
{
	call_programs_stop(transfers_of(measurement)->programs);
	*ret_end_ns = clock_ns();
	return 0;
}

static void count_of(const struct transfers *transfers, struct sonde_io_counters *ret_count)
{
	call_programs_counters(transfers->programs, (uint64_t *)ret_count, sizeof(*ret_count) / sizeof(uint64_t));
}

static void note_unseen(const struct sonde_io_counters *count, struct account *account)
{
	if (count->keys_full)
		account_note(account, "%" PRIu64 " reads and writes are in no sum: there is no room for more files in an interval",
			     (uint64_t)count->keys_full);
	if (count->submitted)
		account_note(account,
			     "%" PRIu64 " requests were submitted by io_uring_enter or io_submit: what they read and wrote is not seen",
			     (uint64_t)count->submitted);
	if (count->shared_maps)
		account_note(account, "%" PRIu64 " files were mapped to be written through memory: that is not seen",
			     (uint64_t)count->shared_maps);
}

static int finish(struct measurement *measurement, uint64_t start_ns, uint64_t end_ns, struct profile **ret_profile)
{
	struct transfers *transfers = transfers_of(measurement);
	struct sonde_io_counters count;
	int err = report(transfers);

	if (err)
		return err;
	count_of(transfers, &count);
	note_unseen(&count, measurement->parts.account);
	return events_account(measurement, start_ns + transfers->unix_offset_ns, end_ns - start_ns, ret_profile);
}

static uint64_t nr(const struct measurement *measurement)
{
	struct sonde_io_counters count;

	count_of((const struct transfers *)measurement, &count);
	return count.summed + count.keys_full;
}

static void summary(const struct measurement *measurement, struct buffer *lines)
{
	struct sonde_io_counters count;

	count_of((const struct transfers *)measurement, &count);
	buffer_printf(lines,
		      "reads and writes: %" PRIu64 " counted, %" PRIu64 " lost, %" PRIu64 " calls of others, %" PRIu64 " of sonde itself",
		      (uint64_t)count.summed, (uint64_t)count.keys_full, (uint64_t)count.filtered, (uint64_t)count.own);
	if (count.untimed)
		buffer_printf(lines, "; %" PRIu64 " had begun before and have no time", (uint64_t)count.untimed);
	buffer_text(lines, "\n");
}

const struct measurement_type transfers_measurement = {
	.bytes = sizeof(struct transfers),
	.init = init,
	.done = done,
	.load = load,
	.start = start,
	.step = step,
	.interval = interval,
	.stop = stop,
	.finish = finish,
	.nr = nr,
	.summary = summary,
};
