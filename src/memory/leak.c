// SPDX-License-Identifier: Apache-2.0
/* The measurement of memory that was allocated and not freed: uprobes keep the blocks (programs/alloc_programs.h). At the end of each
 * window all blocks are read and summed by their stacks. docs/internals/memory.md */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/sized.h"
#include "programs/alloc_programs.h"
#include "engine/measurement.h"
#include "memory/allocator_probes.h"
#include "memory/comms.h"
#include "memory/memory.h"
#include "memory/outstanding.h"
#include "memory/suspects.h"

#define MAX_LIVE (1u << 28)
#define NAMES_NS NS_PER_S
#define LOOK_NS (5 * NS_PER_S)

enum leak_value { LEAK_VALUE_OBJECTS, LEAK_VALUE_BYTES, LEAK_VALUE_GROWTH, LEAK_VALUE_COUNT };

struct leak {
	struct measurement base;
	struct sonde_leak_options options;
	char *object;                   /* of the options */
	uint32_t *tgids, nr_tgids;      /* of the targets, and of the command */
	uint64_t begin_ns, named_ns;    /* when their names were first and last read */
	uint32_t command_tgid;
	struct alloc_programs *programs;
	struct allocator_probes *probes;
	struct outstanding *cut;        /* of the window that was cut and is not closed yet; NULL: none */
	struct suspects *suspects;
	uint64_t looked_ns;             /* at what is outstanding, for the suspects */
	struct sonde_alloc_counters counters; /* at the last border */
	uint64_t nr_young;              /* blocks that were younger than asked for, then */
	struct comms comms;
};

static struct leak *leak_of(struct measurement *measurement)
{
	return (struct leak *)measurement;
}

static const struct leak *const_leak_of(const struct measurement *measurement)
{
	return (const struct leak *)measurement;
}

/* --- creation ------------------------------------------------------------------------------------------------------------------------- */

static int check(const struct leak *leak, const struct sonde_session_options *common, struct diag *diag)
{
	const struct sonde_leak_options *o = &leak->options;

	if (!common->nr_tgids && !common->command)
		return diag_errno(diag, EINVAL, "allocations are tracked in the processes that are asked for: -p PID, or -- command");
	if (common->nr_tids || common->comm || common->cgroup)
		return diag_errno(diag, EINVAL, "allocations are tracked in whole processes: give their ids");
	if (o->max_bytes && o->max_bytes < o->min_bytes)
		return diag_errno(diag, EINVAL, "no block has at least %" PRIu64 " and at most %" PRIu64 " bytes", o->min_bytes,
				  o->max_bytes);
	if (o->max_live > MAX_LIVE)
		return diag_errno(diag, EINVAL, "at most %u blocks can be tracked at a time", MAX_LIVE);
	return 0;
}

static int init(struct measurement *measurement, struct sampler_options *sampling, struct diag *diag)
{
	struct leak *leak = leak_of(measurement);
	const struct sonde_session_options *common = measurement->parts.options;
	int err = sized_options(&leak->options, sizeof(leak->options), common->leak, diag) ?: check(leak, common, diag);

	if (err)
		return err;
	leak->object = leak->options.object ? strdup(leak->options.object) : NULL;
	if (leak->options.object && !leak->object)
		return -ENOMEM;
	if (!leak->options.max_live)
		leak->options.max_live = SONDE_DEFAULT_MAX_LIVE;
	leak->options.object = leak->object;
	sampling->config.kernel_stacks = 0;
	sampling->config.user_stacks = 1;
	sampling->config.more_levels = 7; /* threads are preempted in uprobes, and others begin theirs */
	leak->suspects = suspects_new();
	if (!leak->suspects)
		return -ENOMEM;
	measurement->may_be_empty = true;
	measurement->takes_whole_command = true;
	return 0;
}

/* The command was stopped where it allocated before its mappings were known; they have been read since. */
static void let_go_on(const struct leak *leak)
{
	if (leak->command_tgid && alloc_programs_take_hold(leak->programs) && kill((pid_t)leak->command_tgid, SIGCONT))
		return; /* it has ended */
}

static void done(struct measurement *measurement)
{
	struct leak *leak = leak_of(measurement);

	allocator_probes_free(leak->probes);
	if (leak->programs) {
		alloc_programs_detach(leak->programs);
		let_go_on(leak); /* nobody stops it any more */
	}
	alloc_programs_free(leak->programs);
	outstanding_free(leak->cut);
	suspects_free(leak->suspects);
	comms_done(&leak->comms);
	free(leak->tgids);
	free(leak->object);
}

static int load(struct measurement *measurement, const struct targets *targets, uint32_t command_tgid, struct diag *diag)
{
	struct leak *leak = leak_of(measurement);
	const struct engine *engine = measurement->parts.engine;
	const struct sonde_leak_options *o = &leak->options;
	const struct alloc_options options = {
		.config = { .min_bytes = o->min_bytes,
			    .max_bytes = o->max_bytes,
			    .sample_rate = o->sample_rate,
			    .held_tgid = command_tgid,
			    .only_tgid = targets->nr == 1 ? targets->list[0].tgid : 0 },
		.max_blocks = o->max_live,
	};
	const struct allocator_probes_options probing = { .targets = targets,
							  .command_tgid = command_tgid,
							  .children = o->children,
							  .object = leak->object };
	int err = alloc_programs_new(engine->sampler, &options, diag, &leak->programs);

	if (err)
		return err;
	leak->command_tgid = command_tgid;
	leak->tgids = calloc(targets->nr + 1, sizeof(*leak->tgids));
	if (!leak->tgids)
		return -ENOMEM;
	for (uint32_t i = 0; i < targets->nr; i++)
		leak->tgids[leak->nr_tgids++] = targets->list[i].tgid;
	if (command_tgid)
		leak->tgids[leak->nr_tgids++] = command_tgid;
	leak->probes = allocator_probes_new(engine, leak->programs, &probing);
	if (!leak->probes)
		return -ENOMEM;
	return command_tgid ? allocator_probes_expect(leak->probes, measurement->parts.options->command, diag) : 0;
}

/* A process that ends before its blocks are read keeps its name. A command has sonde's until its exec, so at first each step reads it. */
static void read_names(struct leak *leak, uint64_t now_ns)
{
	bool is_early = leak->command_tgid && now_ns - leak->begin_ns < NAMES_NS;

	if (now_ns - leak->named_ns < NAMES_NS && !is_early)
		return;
	leak->named_ns = now_ns;
	for (uint32_t i = 0; i < leak->nr_tgids; i++)
		comms_read(&leak->comms, leak->tgids[i]);
}

static void note_no_allocator(const struct measurement *measurement)
{
	if (!allocator_probes_nr(const_leak_of(measurement)->probes))
		account_note(measurement->parts.account, "no allocator was found in the process: its malloc has no symbol, or it has none");
}

static int start(struct measurement *measurement, struct diag *diag, uint64_t *ret_start_ns)
{
	struct leak *leak = leak_of(measurement);
	int err = allocator_probes_look(leak->probes, diag);

	*ret_start_ns = leak->looked_ns = leak->begin_ns = clock_ns();
	read_names(leak, *ret_start_ns);
	if (!err && !leak->command_tgid)
		note_no_allocator(measurement);
	return err;
}

/* --- windows -------------------------------------------------------------------------------------------------------------------------- */

struct reading {
	struct leak *leak;
	struct outstanding *to;
	uint64_t old_ns;         /* blocks from before are reported */
	uint32_t tgid;           /* the last block's process, its name, and when its program began */
	const char *comm;
	uint64_t program_ns;
};

/* The blocks of a program that was replaced by exec went with its memory. */
static int take_block(void *arg, const struct sonde_alloc_key *key, const struct sonde_alloc_block *block)
{
	struct reading *reading = arg;

	if (key->tgid != reading->tgid) {
		reading->tgid = key->tgid;
		reading->comm = comms_read(&reading->leak->comms, key->tgid);
		reading->program_ns = alloc_programs_start_ns(reading->leak->programs, key->tgid);
	}
	if (block->time_ns < reading->program_ns) {
		alloc_programs_forget(reading->leak->programs, key);
		return 0;
	}
	reading->leak->nr_young += block->time_ns > reading->old_ns;
	return outstanding_add(reading->to, key, block, reading->comm, block->time_ns <= reading->old_ns);
}

static int take_all(struct leak *leak, uint64_t now_ns, struct diag *diag)
{
	uint64_t older_ns = leak->options.older_than_ns;
	struct reading reading = { .leak = leak, .old_ns = now_ns > older_ns ? now_ns - older_ns : 0 };
	int err;

	outstanding_free(leak->cut);
	leak->nr_young = 0;
	reading.to = leak->cut = outstanding_new(leak->options.each);
	if (!leak->cut)
		return -ENOMEM;
	err = alloc_programs_read(leak->programs, take_block, &reading);
	alloc_programs_counters(leak->programs, &leak->counters);
	leak->looked_ns = now_ns;
	if (!err && !leak->options.each)
		err = suspects_look(leak->suspects, leak->cut, now_ns);
	return err ? diag_errno(diag, -err, "cannot read the blocks: %s", strerror(-err)) : 0;
}

/* Suspects need more than one look, also in a recording without windows. */
static int step(struct measurement *measurement, uint64_t now_ns, struct diag *diag)
{
	struct leak *leak = leak_of(measurement);
	int err = allocator_probes_look(leak->probes, diag);

	read_names(leak, now_ns);
	let_go_on(leak);
	if (err || measurement->parts.options->every_ns || leak->options.each || now_ns - leak->looked_ns < LOOK_NS)
		return err;
	return take_all(leak, now_ns, diag);
}

static int cut(struct measurement *measurement, struct diag *diag)
{
	return take_all(leak_of(measurement), clock_ns(), diag);
}

/* Reads first: what is freed while probes are removed is not seen. */
static int stop(struct measurement *measurement, struct diag *diag, uint64_t *ret_end_ns)
{
	struct leak *leak = leak_of(measurement);

	let_go_on(leak);
	if (leak->command_tgid) /* which maps its libraries after the start */
		note_no_allocator(measurement);
	*ret_end_ns = clock_ns();
	return take_all(leak, *ret_end_ns, diag);
}

static void free_own(void *own)
{
	outstanding_free(own);
}

/* The stacks of older blocks were sent in an earlier window: each window copies them from the one before. */
static int close_window(struct measurement *measurement, const struct process_table *processes, struct window *window)
{
	struct leak *leak = leak_of(measurement);
	struct stack_recorder *recorder = measurement->parts.engine->recorder;
	int err = 0;

	for (uint32_t i = 0; !err && i < outstanding_nr(leak->cut); i++)
		err = stack_recorder_keep(recorder, &outstanding_at(leak->cut, i)->key.ids, 0, processes);
	window->own = MOVE(leak->cut);
	window->free_own = free_own;
	return err;
}

/* --- the profile ---------------------------------------------------------------------------------------------------------------------- */

static int set_types(struct profile *profile)
{
	/* as pprof names them in profiles of a heap */
	const struct profile_value_type types[LEAK_VALUE_COUNT] = {
		[LEAK_VALUE_OBJECTS] = { profile_string(profile, "inuse_objects"), profile_string(profile, "count"), VALUE_SUM },
		[LEAK_VALUE_BYTES] = { profile_string(profile, "inuse_space"), profile_string(profile, "bytes"), VALUE_SUM },
		/* of stacks that grow steadily */
		[LEAK_VALUE_GROWTH] = { profile_string(profile, "growth_per_hour"), profile_string(profile, "bytes"), VALUE_SUM },
	};

	for (uint32_t i = 0; i < LEAK_VALUE_COUNT; i++) {
		if (types[i].type == PROFILE_NONE || types[i].unit == PROFILE_NONE)
			return -ENOMEM;
	}
	profile_set_value_types(profile, types, LEAK_VALUE_COUNT, LEAK_VALUE_BYTES);
	return 0;
}

/* The stack begins in the allocator's function, at its probe. What asked for the block is its caller. */
static int drop_allocator(struct profile *profile, uint32_t *stack)
{
	uint32_t nr, first = 0, shorter;
	const uint32_t *locations = profile_stack_at(profile, *stack, &nr);
	uint64_t pc = profile_location_at(profile, locations[0])->pc;

	while (pc && first < nr && profile_location_at(profile, locations[first])->pc == pc) /* with what is inlined there */
		first++;
	if (!first || first == nr)
		return 0;
	shorter = profile_stack(profile, locations + first, nr - first);
	if (shorter == PROFILE_NONE)
		return -ENOMEM;
	*stack = shorter;
	return 0;
}

/* A sampled block stands for so many. */
static int64_t value_of(const struct leak *leak, uint64_t value)
{
	uint64_t weight = leak->options.sample_rate > 1 ? leak->options.sample_rate : 1, all;

	return __builtin_mul_overflow(value, weight, &all) || all > INT64_MAX ? INT64_MAX : (int64_t)all;
}

static int add_address(struct profile *profile, uint64_t addr, struct profile_sample *sample)
{
	struct profile_label label = { .key = profile_string(profile, "address"),
				       .text = PROFILE_EMPTY_STRING,
				       .number = (int64_t)addr,
				       .unit = PROFILE_EMPTY_STRING,
				       .is_number = 1 };

	if (!addr)
		return 0;
	sample->labels = label.key == PROFILE_NONE ? PROFILE_NONE : profile_labels(profile, &label, 1);
	return sample->labels == PROFILE_NONE ? -ENOMEM : 0;
}

static int add_sum(const struct leak *leak, const struct outstanding_sum *sum, struct stack_builder *builder, struct profile *profile)
{
	struct profile_sample sample = {
		.tgid = sum->key.ids.tgid,
		.cpu = PROFILE_NONE,
		.comm = profile_string(profile, sum->comm),
		.values = { [LEAK_VALUE_OBJECTS] = value_of(leak, sum->nr), [LEAK_VALUE_BYTES] = value_of(leak, sum->bytes),
			    [LEAK_VALUE_GROWTH] = value_of(leak, sum->growth) },
	};
	int err = sample.comm == PROFILE_NONE ? -ENOMEM : stack_builder_sample(builder, &sum->key.ids, sum->nr, &sample);

	if (!err && sample.user_stack != PROFILE_NONE)
		err = drop_allocator(profile, &sample.user_stack);
	if (!err)
		err = add_address(profile, sum->key.addr, &sample);
	return err ? err : profile_add(profile, &sample);
}

static int make_profile(struct measurement *measurement, struct window *window, struct stack_builder *builder, struct profile *profile)
{
	const struct outstanding *outstanding = window->own;
	int err = set_types(profile);

	for (uint32_t i = 0; !err && i < outstanding_nr(outstanding); i++) {
		const struct outstanding_sum *sum = outstanding_at(outstanding, i);

		if (sum->nr)
			err = add_sum(const_leak_of(measurement), sum, builder, profile);
	}
	return err;
}

/* --- the account ---------------------------------------------------------------------------------------------------------------------- */

static uint64_t nr(const struct measurement *measurement)
{
	struct sonde_alloc_counters counters;

	alloc_programs_counters(const_leak_of(measurement)->programs, &counters);
	return counters.allocs + counters.mappings;
}

static void write_count(struct buffer *lines, uint64_t count, const char *text)
{
	if (count)
		buffer_printf(lines, "%" PRIu64 " %s\n", count, text);
}

static void summary(const struct measurement *measurement, struct buffer *lines)
{
	const struct leak *leak = const_leak_of(measurement);
	const struct sonde_alloc_counters *c = &leak->counters;

	buffer_printf(lines, "seen: %" PRIu64 " allocations, %" PRIu64 " mappings, %" PRIu64 " frees\n", (uint64_t)c->allocs,
		      (uint64_t)c->mappings, (uint64_t)c->frees);
	write_count(lines, leak->nr_young, "blocks were too young to be shown (--older-than)");
	write_count(lines, c->failed, "allocations failed");
	if (leak->options.sample_rate <= 1 && !leak->options.min_bytes && !leak->options.max_bytes)
		write_count(lines, c->frees_unknown,
			    "frees of blocks that are not known: allocated before, or kept by the C library for a thread that ended");
	write_count(lines, c->reused, "blocks came again, from a function that calls another or because a free was not seen: counted once");
	write_count(lines, c->unmaps_unknown,
		    "unmapped or replaced regions, or parts of regions, that are not known: a region that lost its middle is shown whole");
	write_count(lines, c->inner_mappings,
		    "regions left out that were mapped within an allocator's call, or after one that never returned");
	write_count(lines, c->left_out, "allocations left out, by size or sampling");
	write_count(lines, c->full, "allocations found no room: the report is too small (--max-live)");
	write_count(lines, c->no_memory + c->no_storage, "allocations lost: the kernel had no memory for them");
	write_count(lines, c->overtaken, "calls lost: more at a time than a thread should have");
	write_count(lines, c->no_scratch, "blocks without a stack: too many threads were in a probe at a time");
	write_count(lines, alloc_programs_nr_left_out(leak->programs), "events that the kernel did not pass on");
}

const struct measurement_type leak_measurement = {
	.bytes = sizeof(struct leak),
	.init = init,
	.done = done,
	.load = load,
	.start = start,
	.step = step,
	.stop = stop,
	.cut = cut,
	.close = close_window,
	.profile = make_profile,
	.nr = nr,
	.summary = summary,
};
