// SPDX-License-Identifier: Apache-2.0
/* The measurement of memory that was allocated and not freed: uprobes keep the blocks (programs/alloc_programs.h). At the end of each
 * window all blocks are read and summed by their stacks. docs/internals/memory.md */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "abi/alloc_chance.h"
#include "base/sized.h"
#include "programs/alloc_programs.h"
#include "engine/measurement.h"
#include "memory/allocator_probes.h"
#include "memory/comms.h"
#include "memory/forecast.h"
#include "memory/heap_profile.h"
#include "memory/memory.h"
#include "memory/suspects.h"

#define MAX_LIVE (1u << 28)
#define NAMES_NS NS_PER_S
#define LOOK_NS (5 * NS_PER_S)

struct leak {
	struct measurement base;
	struct sonde_leak_options options;
	char *object;                   /* of the options */
	uint32_t *tgids, nr_tgids;      /* of the targets, and of the command */
	uint64_t begin_ns, named_ns;    /* when their names were first and last read */
	uint32_t command_tgid;
	struct alloc_programs *programs;
	struct allocator_probes *probes;
	bool has_sums;                  /* it is `alloc`: also what was allocated, not only what is outstanding */
	struct heap *cut;               /* of the window that was cut and is not closed yet; NULL: none */
	struct allocated *seen;         /* the sums as they were last read */
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
	if (o->sample_bytes > SONDE_ALLOC_MAX_SAMPLE_BYTES)
		return diag_errno(diag, EINVAL, "one sample in at most %u bytes", SONDE_ALLOC_MAX_SAMPLE_BYTES);
	if (o->sample_bytes && o->sample_rate)
		return diag_errno(diag, EINVAL, "allocations are sampled by their bytes or by their number, not by both");
	if (o->each && leak->has_sums)
		return diag_errno(diag, EINVAL, "sums have no single blocks");
	if (o->max_live > MAX_LIVE)
		return diag_errno(diag, EINVAL, "at most %u blocks can be tracked at a time", MAX_LIVE);
	return 0;
}

static int init_leak(struct measurement *measurement, struct sampler_options *sampling, struct diag *diag)
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
	leak->seen = allocated_new();
	if (!leak->suspects || !leak->seen)
		return -ENOMEM;
	measurement->may_be_empty = true;
	return 0;
}

static int init_alloc(struct measurement *measurement, struct sampler_options *sampling, struct diag *diag)
{
	struct leak *leak = leak_of(measurement);
	int err;

	leak->has_sums = true;
	err = init_leak(measurement, sampling, diag);
	measurement->has_histograms = leak->options.histograms;
	return err;
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
	heap_free(leak->cut);
	allocated_free(leak->seen);
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
			    .sample_bytes = o->sample_bytes,
			    .sample_rate = o->sample_rate,
			    .sums = leak->has_sums,
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

/* The caller is told what will happen, and may refuse. A command has not begun yet: there is nothing to count. */
static int forecast(struct measurement *measurement, struct diag *diag)
{
	const struct sonde_session_options *o = measurement->parts.options;
	struct leak *leak = leak_of(measurement);
	struct sonde_expected expected = { .size = sizeof(expected) };
	struct forecast made;
	int err;

	if (!o->expected || leak->command_tgid)
		return 0;
	err = forecast_make(leak->probes, leak->programs, leak->tgids, leak->nr_tgids, diag, &made);
	if (err)
		return err == -ENODATA ? 0 : err;
	expected.calls_per_s = made.calls_per_s;
	expected.slow_down = made.slow_down;
	expected.is_least = made.is_least;
	err = o->expected(o->arg, &expected);
	return err ? diag_errno(diag, ECANCELED, "nothing was attached") : 0;
}

static int start(struct measurement *measurement, struct diag *diag, uint64_t *ret_start_ns)
{
	struct leak *leak = leak_of(measurement);
	int err = forecast(measurement, diag) ?: allocator_probes_look(leak->probes, diag);

	*ret_start_ns = leak->looked_ns = leak->begin_ns = clock_ns();
	read_names(leak, *ret_start_ns);
	if (!err && !leak->command_tgid)
		note_no_allocator(measurement);
	return err;
}

/* --- windows -------------------------------------------------------------------------------------------------------------------------- */

struct reading {
	struct leak *leak;
	struct heap *to;
	uint64_t old_ns;         /* blocks from before are reported */
	uint32_t tgid;           /* the last block's process, its name, and when its program began */
	const char *comm;
	uint64_t program_ns;
};

static void look_up(struct reading *reading, uint32_t tgid)
{
	if (tgid == reading->tgid)
		return;
	reading->tgid = tgid;
	reading->comm = comms_read(&reading->leak->comms, tgid);
	reading->program_ns = alloc_programs_start_ns(reading->leak->programs, tgid);
}

/* The blocks of a program that was replaced by exec went with its memory. */
static int take_block(void *arg, const struct sonde_alloc_key *key, const struct sonde_alloc_block *block)
{
	const struct sonde_stack_ids ids = { .user_stack = block->user_stack,
					     .runtime_stack = block->runtime_stack,
					     .user_state = block->user_state,
					     .runtime_state = block->runtime_state,
					     .generation = block->generation };
	struct outstanding_block taken = { .ids = { .ids = known_ids(&ids), .tgid = key->tgid, .user_generation = block->generation },
					   .addr = key->addr,
					   .bytes = block->bytes,
					   .weight = block->weight };
	struct reading *reading = arg;

	look_up(reading, key->tgid);
	if (block->time_ns < reading->program_ns) {
		alloc_programs_forget(reading->leak->programs, key);
		return 0;
	}
	taken.comm = reading->comm;
	taken.is_old = block->time_ns <= reading->old_ns;
	reading->leak->nr_young += !taken.is_old;
	return outstanding_add(reading->to->outstanding, &taken);
}

static int take_sum(void *arg, const struct sonde_alloc_sum_key *key, const struct sonde_alloc_sum *sum)
{
	struct reading *reading = arg;

	look_up(reading, key->tgid);
	return allocated_add(reading->to->allocated, reading->leak->seen, key, sum, reading->comm);
}

/* Blocks first: what comes in between is then in the sums, which may be larger than what is outstanding, but not smaller. */
static int take_all(struct leak *leak, uint64_t now_ns, struct diag *diag)
{
	uint64_t older_ns = leak->options.older_than_ns;
	struct reading reading = { .leak = leak, .old_ns = now_ns > older_ns ? now_ns - older_ns : 0 };
	int err;

	leak->nr_young = 0;
	err = heap_renew(&leak->cut, leak->options.each);
	if (err)
		return err;
	reading.to = leak->cut;
	err = alloc_programs_read(leak->programs, take_block, &reading);
	if (!err && leak->has_sums)
		err = alloc_programs_read_sums(leak->programs, take_sum, &reading);
	alloc_programs_counters(leak->programs, &leak->counters);
	leak->looked_ns = now_ns;
	if (!err && !leak->options.each)
		err = suspects_look(leak->suspects, leak->cut->outstanding, now_ns);
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

static int close_window(struct measurement *measurement, const struct process_table *processes, struct window *window)
{
	return heap_close(&leak_of(measurement)->cut, measurement->parts.engine->recorder, processes, window);
}

static int make_profile(struct measurement *measurement, struct window *window, struct stack_builder *builder, struct profile *profile)
{
	const struct leak *leak = const_leak_of(measurement);

	return leak->has_sums ? heap_profile_of_sums(window->own, leak->options.histograms, builder, profile)
			      : heap_profile(window->own, builder, profile);
}

static uint64_t nr(const struct measurement *measurement)
{
	struct sonde_alloc_counters counters;

	alloc_programs_counters(const_leak_of(measurement)->programs, &counters);
	return counters.allocs + counters.mappings;
}

static void summary(const struct measurement *measurement, struct buffer *lines)
{
	const struct leak *leak = const_leak_of(measurement);
	const struct sonde_alloc_counters *c = &leak->counters;

	buffer_printf(lines, "seen: %" PRIu64 " allocations, %" PRIu64 " mappings, %" PRIu64 " frees\n", (uint64_t)c->allocs,
		      (uint64_t)c->mappings, (uint64_t)c->frees);
	memory_write_count(lines, leak->nr_young, "blocks were too young to be shown (--older-than)");
	memory_write_count(lines, c->failed, "allocations failed");
	if (leak->options.sample_rate <= 1 && !leak->options.sample_bytes && !leak->options.min_bytes && !leak->options.max_bytes)
		memory_write_count(lines, c->frees_unknown,
			    "frees of blocks that are not known: allocated before, or kept by the C library for a thread that ended");
	memory_write_count(lines, c->reused,
			   "blocks came again, from a function that calls another or because a free was not seen: counted once");
	memory_write_count(lines, c->unmaps_unknown,
		    "unmapped or replaced regions, or parts of regions, that are not known: a region that lost its middle is shown whole");
	memory_write_count(lines, c->inner_mappings,
		    "regions left out that were mapped within an allocator's call, or after one that never returned");
	memory_write_count(lines, c->large_news,
			   "calls of operator new for 256 MiB or more left out, as it may throw: regions mapped for them are followed");
	memory_write_count(lines, c->left_out, "allocations left out, by size or sampling");
	memory_write_count(lines, c->full_sums, "allocations are in no sum: there are more than 65536 stacks");
	memory_write_count(lines, c->full, "allocations found no room: the report is too small (--max-live)");
	memory_write_count(lines, c->no_memory + c->no_storage, "allocations lost: the kernel had no memory for them");
	memory_write_count(lines, c->overtaken, "calls lost: more at a time than a thread should have");
	memory_write_count(lines, c->no_scratch, "blocks without a stack: too many threads were in a probe at a time");
	memory_write_count(lines, alloc_programs_nr_left_out(leak->programs), "events that the kernel did not pass on");
}

#define LEAK_FUNCTIONS \
	.bytes = sizeof(struct leak), .done = done, .load = load, .start = start, .step = step, .stop = stop, .cut = cut, \
	.close = close_window, .profile = make_profile, .nr = nr, .summary = summary

const struct measurement_type leak_measurement = { .init = init_leak, LEAK_FUNCTIONS };
const struct measurement_type alloc_measurement = { .init = init_alloc, LEAK_FUNCTIONS };
