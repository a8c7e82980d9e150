// SPDX-License-Identifier: Apache-2.0
/* The measurement of the kernel's own memory that was allocated and not freed (programs/kmem_programs.h), as leak.c does for processes.
 * docs/internals/memory.md */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/sized.h"
#include "engine/measurement.h"
#include "memory/heap_profile.h"
#include "memory/memory.h"
#include "memory/suspects.h"
#include "programs/kmem_programs.h"

#define LOOK_NS (5 * NS_PER_S)

struct kernel_leak {
	struct measurement base;
	struct sonde_leak_options options;
	struct kmem_programs *programs;
	struct heap *cut;               /* of the window that was cut and is not closed yet; NULL: none */
	struct suspects *suspects;
	uint64_t looked_ns;             /* at what is outstanding, for the suspects */
	uint64_t nr_young;              /* blocks that were younger than asked for, then */
	struct sonde_kmem_counters counters; /* then */
};

static struct kernel_leak *leak_of(struct measurement *measurement)
{
	return (struct kernel_leak *)measurement;
}

static int init(struct measurement *measurement, struct sampler_options *sampling, struct diag *diag)
{
	struct kernel_leak *leak = leak_of(measurement);
	const struct sonde_session_options *common = measurement->parts.options;
	int err = sized_options(&leak->options, sizeof(leak->options), common->leak, diag);

	if (err)
		return err;
	if (common->nr_tgids || common->nr_tids || common->comm || common->cgroup || common->command)
		return diag_errno(diag, EINVAL, "the kernel's memory belongs to no process: it is tracked as a whole");
	if (leak->options.sample_bytes || leak->options.object || leak->options.children || leak->options.histograms)
		return diag_errno(diag, EINVAL, "of the kernel's memory only sizes, ages and --sample-rate can be chosen");
	if (!leak->options.max_live)
		leak->options.max_live = SONDE_DEFAULT_MAX_LIVE;
	leak->suspects = suspects_new();
	if (!leak->suspects)
		return -ENOMEM;
	sampling->config.kernel_stacks = 1;
	sampling->config.user_stacks = 0;
	sampling->config.more_levels = 7; /* interrupts allocate, too */
	measurement->may_be_empty = true;
	return 0;
}

static void done(struct measurement *measurement)
{
	struct kernel_leak *leak = leak_of(measurement);

	kmem_programs_free(leak->programs);
	heap_free(leak->cut);
	suspects_free(leak->suspects);
}

static int load(struct measurement *measurement, const struct targets *targets, uint32_t command_tgid, struct diag *diag)
{
	struct kernel_leak *leak = leak_of(measurement);
	const struct sonde_kmem_config config = { .min_bytes = leak->options.min_bytes,
						  .max_bytes = leak->options.max_bytes,
						  .sample_rate = leak->options.sample_rate };

	return kmem_programs_new(measurement->parts.engine->sampler, &config, leak->options.max_live, diag, &leak->programs);
}

static int start(struct measurement *measurement, struct diag *diag, uint64_t *ret_start_ns)
{
	leak_of(measurement)->looked_ns = clock_ns();
	return kmem_programs_start(leak_of(measurement)->programs, diag);
}

/* --- windows -------------------------------------------------------------------------------------------------------------------------- */

struct reading {
	struct kernel_leak *leak;
	uint64_t old_ns; /* blocks from before are reported */
};

static int take_block(void *arg, uint64_t kaddr, const struct sonde_kmem_block *block)
{
	const struct reading *reading = arg;
	const struct sonde_stack_ids ids = { .kernel_stack = block->kernel_stack, .kernel_state = block->kernel_state };
	const struct outstanding_block taken = { .ids = { .ids = known_ids(&ids), .at_event = 1 },
						 .addr = kaddr,
						 .bytes = block->bytes,
						 .weight = block->weight,
						 .comm = "kernel",
						 .is_old = block->time_ns <= reading->old_ns };

	reading->leak->nr_young += !taken.is_old;
	return outstanding_add(reading->leak->cut->outstanding, &taken);
}

static int take_all(struct kernel_leak *leak, uint64_t now_ns, struct diag *diag)
{
	uint64_t older_ns = leak->options.older_than_ns;
	struct reading reading = { .leak = leak, .old_ns = now_ns > older_ns ? now_ns - older_ns : 0 };
	int err = heap_renew(&leak->cut, leak->options.each);

	if (err)
		return err;
	leak->nr_young = 0;
	err = kmem_programs_read(leak->programs, take_block, &reading);
	kmem_programs_counters(leak->programs, &leak->counters);
	leak->looked_ns = now_ns;
	if (!err && !leak->options.each)
		err = suspects_look(leak->suspects, leak->cut->outstanding, now_ns);
	return err ? diag_errno(diag, -err, "cannot read the blocks: %s", strerror(-err)) : 0;
}

static int step(struct measurement *measurement, uint64_t now_ns, struct diag *diag)
{
	struct kernel_leak *leak = leak_of(measurement);

	if (measurement->parts.options->every_ns || leak->options.each || now_ns - leak->looked_ns < LOOK_NS)
		return 0;
	return take_all(leak, now_ns, diag);
}

static int cut(struct measurement *measurement, struct diag *diag)
{
	return take_all(leak_of(measurement), clock_ns(), diag);
}

static int stop(struct measurement *measurement, struct diag *diag, uint64_t *ret_end_ns)
{
	struct kernel_leak *leak = leak_of(measurement);

	*ret_end_ns = clock_ns();
	kmem_programs_stop(leak->programs);
	return take_all(leak, *ret_end_ns, diag);
}

static int close_window(struct measurement *measurement, const struct process_table *processes, struct window *window)
{
	return heap_close(&leak_of(measurement)->cut, measurement->parts.engine->recorder, processes, window);
}

static int make_profile(struct measurement *measurement, struct window *window, struct stack_builder *builder, struct profile *profile)
{
	return heap_profile(window->own, builder, profile);
}

/* --- the account ---------------------------------------------------------------------------------------------------------------------- */

static uint64_t nr(const struct measurement *measurement)
{
	struct sonde_kmem_counters counters;

	kmem_programs_counters(((const struct kernel_leak *)measurement)->programs, &counters);
	return counters.allocs;
}

static void summary(const struct measurement *measurement, struct buffer *lines)
{
	const struct kernel_leak *leak = (const struct kernel_leak *)measurement;
	const struct sonde_kmem_counters *c = &leak->counters;

	buffer_printf(lines, "seen: %" PRIu64 " allocations of blocks and pages, %" PRIu64 " frees; pages of slab caches count as both\n",
		      (uint64_t)c->allocs, (uint64_t)c->frees);
	memory_write_count(lines, leak->nr_young, "blocks were too young to be shown (--older-than)");
	memory_write_count(lines, c->frees_unknown, "frees of blocks that are not known: allocated before, or left out");
	memory_write_count(lines, c->own, "allocations of sonde itself: left out");
	memory_write_count(lines, c->left_out, "allocations left out, by size or sampling");
	memory_write_count(lines, c->reused, "blocks came again: a free was not seen");
	memory_write_count(lines, c->full, "allocations found no room: the report is too small (--max-live)");
	memory_write_count(lines, c->lost, "allocations lost: the map was in use on the CPU");
	memory_write_count(lines, c->no_scratch, "blocks without a stack: too many programs at a time on a CPU");
	memory_write_count(lines, kmem_programs_nr_left_out(leak->programs),
			   "events that the kernel did not pass on, as the same program was at work there: a block may be missing, or "
			   "stay");
}

const struct measurement_type kernel_leak_measurement = {
	.bytes = sizeof(struct kernel_leak),
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
