// SPDX-License-Identifier: Apache-2.0
/* sonde alloc: who allocates memory. */
#include <errno.h>

#include "allocs/heap_options.h"
#include "cli/verbs.h"

struct alloc_arguments {
	struct heap_options heap;
	uint64_t sample_bytes;
	bool rss, low_overhead, histograms;
};

#define FIELD(field) .offset = offsetof(struct alloc_arguments, field)

static const struct option_spec options[] = {
	HEAP_INTERVAL_OPTIONS(struct alloc_arguments, heap, "seconds between two reports; without it one report, at the end"),
	{ .name = "sample",
	  .metavar = "BYTES",
	  .kind = OPTION_BYTES,
	  FIELD(sample_bytes),
	  .min = 1,
	  .max = 128 << 20,
	  .help = "sample: points lie on the allocated bytes at random, one in so many (512K), and a block with a point in it is tracked. "
		  "It counts as many as its chance says, so all numbers are right in the mean" },
	{ .name = "low-overhead",
	  .kind = OPTION_FLAG,
	  FIELD(low_overhead),
	  .excludes = "sample",
	  .instead = "--low-overhead sees all calls of a part of the time",
	  .help = "for a process that must not be slowed: an estimate from windows of some milliseconds at random, in which alone "
		  "there are probes. These take 1 % of its CPU time; how much the estimate may be wrong is shown with it. What is freed "
		  "is not seen. It needs some ten seconds to be of use" },
	HEAP_BLOCK_OPTIONS(struct alloc_arguments, heap),
	{ .name = "rss",
	  .kind = OPTION_FLAG,
	  FIELD(rss),
	  .excludes = "sample",
	  .instead = "--rss takes a stack for each new mebibyte anyway",
	  .help = "instead of allocations: where resident memory grows, a stack for each mebibyte that a process has more than ever "
		  "before; of the whole machine or of the targets, and without probes in them. Anonymous memory, huge pages, files, shared "
		  "memory and swap are counted apart" },

	TARGET_OPTIONS(struct alloc_arguments, heap.recording.targets),
	HEAP_CHILDREN_OPTION(struct alloc_arguments, heap),
	HEAP_YES_OPTION(struct alloc_arguments, heap),

	HEAP_TOP_OPTION(struct alloc_arguments, heap),
	{ .name = "histograms", .kind = OPTION_FLAG, FIELD(histograms), .help = "the sizes and lifetimes of each stack, too" },
	RECORDING_OUTPUT_OPTIONS(struct alloc_arguments, heap.recording),
};

static const struct verb_example examples[] = {
	{ "sonde alloc --rss", "whose resident memory grows on this machine, and where" },
	{ "sonde alloc -p 185", "who allocates in process 185, until Ctrl-C" },
	{ "sonde alloc -p 185 10", "every 10 seconds" },
	{ "sonde alloc --low-overhead -p 185 30", "the same as an estimate, which costs the process next to nothing, every 30 seconds" },
	{ "sonde alloc --sample 512K -o alloc.html -- ./prog", "a command, sampled, as a flame graph" },
	{ "sonde alloc -o alloc.pb.gz -p 185", "for pprof: all its values of a heap" },
	{ NULL, NULL },
};

static int check(void *all, char *const *command, struct diag *diag)
{
	struct alloc_arguments *arguments = all;

	if (arguments->low_overhead && (arguments->heap.children || arguments->heap.max_live))
		return diag_errno(diag, EINVAL, "--low-overhead follows no blocks, and is for the processes of -p or the command "
						"alone: leave out --max-live and --children");
	if (!arguments->rss)
		return heap_options_check(&arguments->heap, command, diag);
	if (arguments->low_overhead || arguments->histograms || arguments->heap.min_bytes || arguments->heap.max_bytes ||
	    arguments->heap.object || arguments->heap.children || arguments->heap.max_live)
		return diag_errno(diag, EINVAL, "--rss sees no blocks: leave out --low-overhead, --histograms, --min-size, --max-size, "
						"--max-live, --obj and --children");
	arguments->heap.recording.user_only = true;
	return heap_options_check_recording(&arguments->heap, command, diag);
}

static int run_rss(const struct alloc_arguments *arguments, struct sonde_session_options *of_library)
{
	const struct recording_words words = { .is_attached = true,
					       .no_samples = "no process has grown by a mebibyte" };

	of_library->mode = SONDE_RESIDENT;
	return recording_run(&alloc_verb, &arguments->heap.recording, of_library, &words);
}

static int alloc_run(void *all, const char *command_line)
{
	const struct alloc_arguments *arguments = all;
	struct sonde_leak_options leak = heap_options_leak(&arguments->heap);
	struct sonde_session_options of_library = recording_options(&arguments->heap.recording, command_line);
	const struct recording_words words = { .is_attached = true, .no_samples = "nothing was allocated" };

	of_library.max_stacks = (uint32_t)arguments->heap.max_stacks;
	of_library.user_only = true;
	of_library.lines = !of_library.no_lines;
	if (arguments->rss)
		return run_rss(arguments, &of_library);
	leak.sample_bytes = arguments->sample_bytes;
	leak.histograms = arguments->histograms;
	of_library.mode = arguments->low_overhead ? SONDE_ALLOC_WINDOWS : SONDE_ALLOC;
	of_library.leak = &leak;
	return recording_run(&alloc_verb, &arguments->heap.recording, &of_library, &words);
}

static const struct alloc_arguments defaults = { .heap.max_stacks = HEAP_DEFAULT_STACKS,
						 .heap.recording.debuginfod_timeout_s = RECORDING_DEFAULT_TIMEOUT };

const struct verb alloc_verb = {
	.name = "alloc",
	.summary = "who allocates memory: bytes, counts, sizes, lifetimes",
	.description = "Counts all that a process allocates, by the stack that asks for it: bytes and number, what of it is not free, how "
		       "large blocks are and how long they live; in any allocator that the process maps or contains, without a restart.\n\n"
		       "Each call costs the process a microsecond or more: one that allocates all the time becomes many times slower.",
	.options = options,
	.nr_options = ARRAY_SIZE(options),
	.examples = examples,
	.takes_command = true,
	.arguments_bytes = sizeof(struct alloc_arguments),
	.defaults = &defaults,
	.check = check,
	.run = alloc_run,
};
