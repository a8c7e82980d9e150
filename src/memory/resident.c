// SPDX-License-Identifier: Apache-2.0
/* The measurement of growing resident memory: a stack for each mebibyte that a process has more than ever before, of the whole machine or
 * of some processes, without probes in them. docs/internals/memory.md */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/interned.h"
#include "engine/measurement.h"
#include "memory/memory.h"
#include "programs/rss_programs.h"

#define MAX_BYTES ((uint64_t)256 << 20)
#define MORE_LEVELS 3 /* a page may be missing while another thread's stack is taken: docs/internals/triggers.md */

struct growth {
	struct stack_ids ids;                /* the key, with the name; has no padding */
	char comm[SONDE_COMM_BYTES];         /* of the thread */
	uint64_t bytes[SONDE_RSS_COUNT];     /* by enum sonde_rss */
};

struct resident {
	struct measurement base;
	struct rss_programs *programs;
	struct interned growths;             /* of the open window */
	uint64_t nr;
};

static struct resident *resident_of(struct measurement *measurement)
{
	return (struct resident *)measurement;
}

static struct interned no_growths(void)
{
	return INTERNED_INIT(struct growth, offsetof(struct growth, bytes), MAX_BYTES);
}

static int init(struct measurement *measurement, struct sampler_options *sampling, struct diag *diag)
{
	sampling->config.more_levels = MORE_LEVELS;
	resident_of(measurement)->growths = no_growths();
	measurement->may_be_empty = true;
	return 0;
}

static void done(struct measurement *measurement)
{
	rss_programs_free(resident_of(measurement)->programs);
	interned_done(&resident_of(measurement)->growths);
}

static int load(struct measurement *measurement, const struct targets *targets, uint32_t command_tgid, struct diag *diag)
{
	return rss_programs_new(measurement->parts.engine->sampler, diag, &resident_of(measurement)->programs);
}

static int start(struct measurement *measurement, struct diag *diag, uint64_t *ret_start_ns)
{
	return rss_programs_start(resident_of(measurement)->programs, diag);
}

static int stop(struct measurement *measurement, struct diag *diag, uint64_t *ret_end_ns)
{
	rss_programs_stop(resident_of(measurement)->programs);
	return 0;
}

static int take_record(struct measurement *measurement, const void *record)
{
	const struct sonde_rss_record *rss = record;
	const struct sonde_sample_record *sample = &rss->sample;
	struct resident *resident = resident_of(measurement);
	struct growth growth = { .ids = { .ids = known_ids(&sample->ids), .tgid = sample->tgid, .user_generation = sample->generation,
					  .at_event = 1 } };
	uint32_t number;

	if (rss->type != SONDE_RECORD_RSS || rss->kind >= SONDE_RSS_COUNT)
		return 0; /* there are no others */
	memcpy(growth.comm, sample->comm, sizeof(growth.comm));
	number = interned_add(&resident->growths, &growth);
	if (number == INTERNED_NONE)
		return -ENOMEM;
	((struct growth *)interned_at(&resident->growths, number))->bytes[rss->kind] += rss->bytes;
	resident->nr++;
	return 0;
}

static void free_own(void *own)
{
	interned_done(own);
	free(own);
}

static int close_window(struct measurement *measurement, const struct process_table *processes, struct window *window)
{
	struct resident *resident = resident_of(measurement);
	struct interned *growths = malloc(sizeof(*growths));
	int err = growths ? 0 : -ENOMEM;

	for (uint32_t i = 0; !err && i < resident->growths.nr; i++) {
		const struct growth *growth = interned_at(&resident->growths, i);

		err = stack_recorder_keep(measurement->parts.engine->recorder, &growth->ids, 0, processes);
	}
	if (!growths)
		return err;
	*growths = resident->growths;
	resident->growths = no_growths();
	window->own = growths;
	window->free_own = free_own;
	return err;
}

/* --- the profile ---------------------------------------------------------------------------------------------------------------------- */

enum value { VALUE_RSS, VALUE_ANON, VALUE_HUGE, VALUE_FILE, VALUE_SHMEM, VALUE_SWAP, VALUE_COUNT };

static int set_types(struct profile *profile)
{
	static const char *const names[VALUE_COUNT] = { "rss", "rss_anonymous", "rss_huge", "rss_file", "rss_shared", "swap" };
	struct profile_value_type types[VALUE_COUNT];

	for (uint32_t i = 0; i < VALUE_COUNT; i++) {
		types[i] = (struct profile_value_type){ profile_string(profile, names[i]), profile_string(profile, "bytes"), VALUE_SUM };
		if (types[i].type == PROFILE_NONE || types[i].unit == PROFILE_NONE)
			return -ENOMEM;
	}
	profile_set_value_types(profile, types, VALUE_COUNT, VALUE_RSS);
	return 0;
}

static int add_growth(const struct growth *growth, struct stack_builder *builder, struct profile *profile)
{
	const uint64_t *bytes = growth->bytes;
	struct profile_sample sample = {
		.tgid = growth->ids.tgid,
		.cpu = PROFILE_NONE,
		.comm = profile_string(profile, growth->comm),
		.values = { [VALUE_RSS] = (int64_t)(bytes[SONDE_RSS_ANON] + bytes[SONDE_RSS_HUGE] + bytes[SONDE_RSS_FILE] +
						    bytes[SONDE_RSS_SHMEM]),
			    [VALUE_ANON] = (int64_t)bytes[SONDE_RSS_ANON],
			    [VALUE_HUGE] = (int64_t)bytes[SONDE_RSS_HUGE],
			    [VALUE_FILE] = (int64_t)bytes[SONDE_RSS_FILE],
			    [VALUE_SHMEM] = (int64_t)bytes[SONDE_RSS_SHMEM],
			    [VALUE_SWAP] = (int64_t)bytes[SONDE_RSS_SWAP] },
	};
	int err = sample.comm == PROFILE_NONE ? -ENOMEM : stack_builder_sample(builder, &growth->ids, 1, &sample);

	return err ? err : profile_add(profile, &sample);
}

static int make_profile(struct measurement *measurement, struct window *window, struct stack_builder *builder, struct profile *profile)
{
	const struct interned *growths = window->own;
	int err = set_types(profile);

	for (uint32_t i = 0; !err && i < growths->nr; i++)
		err = add_growth(interned_at(growths, i), builder, profile);
	return err;
}

/* --- the account ---------------------------------------------------------------------------------------------------------------------- */

static uint64_t nr(const struct measurement *measurement)
{
	return ((const struct resident *)measurement)->nr;
}

static void summary(const struct measurement *measurement, struct buffer *lines)
{
	const struct resident *resident = (const struct resident *)measurement;
	struct sonde_rss_counters c;

	rss_programs_counters(resident->programs, &c);
	buffer_printf(lines, "seen: %" PRIu64 " changes of resident memory, %" PRIu64 " new mebibytes\n", (uint64_t)c.hits,
		      (uint64_t)c.growths);
	memory_write_count(lines, c.ring_full, "mebibytes lost: no room in the ring buffer");
	memory_write_count(lines, c.no_scratch, "mebibytes lost: too many programs at a time on the CPU");
	memory_write_count(lines, c.no_storage, "changes lost: the kernel had no memory for them");
	memory_write_count(lines, rss_programs_nr_left_out(resident->programs),
			   "changes that the kernel did not pass on: seen with the next one");
}

const struct measurement_type resident_measurement = {
	.bytes = sizeof(struct resident),
	.init = init,
	.done = done,
	.load = load,
	.start = start,
	.record = take_record,
	.stop = stop,
	.close = close_window,
	.profile = make_profile,
	.nr = nr,
	.summary = summary,
};
