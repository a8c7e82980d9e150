// SPDX-License-Identifier: Apache-2.0
/* sonde leak: BCC's memleak, its options under long names. */
#include <errno.h>

#include "base/clock.h"
#include "allocs/heap_options.h"
#include "cli/verbs.h"

#define DEFAULT_INTERVAL_S 5
#define DEFAULT_OLDER_MS 500
#define MAX_OLDER_MS UINT64_C(1000000000) /* 11 days */

struct leak_arguments {
	struct heap_options heap;
	uint64_t older_ms, sample_rate;
	bool kernel, each, combined, missing_free;
};

#define FIELD(field) .offset = offsetof(struct leak_arguments, field)

static const struct option_spec options[] = {
	HEAP_INTERVAL_OPTIONS(struct leak_arguments, heap,
			      "seconds between two reports; 5. With -o and without it one report, at the end"),
	{ .name = "kernel",
	  .kind = OPTION_FLAG,
	  FIELD(kernel),
	  .excludes = "pid",
	  .instead = "the kernel's memory belongs to no process",
	  .help = "the kernel's own memory instead of a process's: blocks of kmalloc and of slab caches, and pages, by the kernel stack "
		  "that asked for them. The whole machine is slowed down a little" },
	{ .name = "older-than",
	  .metavar = "MS",
	  .kind = OPTION_NUMBER,
	  FIELD(older_ms),
	  .max = MAX_OLDER_MS,
	  .help = "report only blocks of this age, in milliseconds; 500" },
	HEAP_BLOCK_OPTIONS(struct leak_arguments, heap),
	{ .name = "sample-rate",
	  .metavar = "N",
	  .kind = OPTION_NUMBER,
	  FIELD(sample_rate),
	  .min = 1,
	  .max = UINT32_MAX,
	  .help = "track one in N allocations, chosen by chance; each counts as N. Saves memory of the kernel, but hardly time: the "
		  "calls are seen all the same" },
	{ .name = "combined-only", .kind = OPTION_FLAG, FIELD(combined), .help = "blocks of any age; the same as --older-than 0" },
	{ .name = "missing-free",
	  .kind = OPTION_FLAG,
	  FIELD(missing_free),
	  .help = "a block that is handed out again counts once, even if its free was not seen: so it is without this option, too" },

	TARGET_OPTIONS_IDS(struct leak_arguments, heap.recording.targets),
	HEAP_CHILDREN_OPTION(struct leak_arguments, heap),
	HEAP_YES_OPTION(struct leak_arguments, heap),

	HEAP_TOP_OPTION(struct leak_arguments, heap),
	{ .name = "all", .kind = OPTION_FLAG, FIELD(each), .help = "also the address and size of each block" },
	RECORDING_OUTPUT_OPTIONS(struct leak_arguments, heap.recording),
};

static const struct verb_example examples[] = {
	{ "sonde leak -p 185", "what process 185 allocates from now on and does not free, every 5 seconds" },
	{ "sonde leak -p 185 10 3", "every 10 seconds, three times" },
	{ "sonde leak -- ./prog", "a command from its start to its end" },
	{ "sonde leak --older-than 60000 -p 185", "only what is older than a minute" },
	{ "sonde leak -o leak.html -p 185", "as a flame graph, until Ctrl-C" },
	{ "sonde leak --kernel 10", "what the kernel allocates and does not free, every 10 seconds" },
	{ "sonde leak --all --top 1 -p 185", "with the blocks' addresses" },
	{ NULL, NULL },
};

static int check(void *all, char *const *command, struct diag *diag)
{
	struct leak_arguments *arguments = all;
	struct recording *recording = &arguments->heap.recording;

	if (arguments->combined)
		arguments->older_ms = 0;
	if (!recording->every_s && !recording->outputs.nr)
		recording->every_s = DEFAULT_INTERVAL_S;
	if (!arguments->kernel)
		return heap_options_check(&arguments->heap, command, diag);
	if (command || recording->targets.tids.nr || arguments->heap.object || arguments->heap.children)
		return diag_errno(diag, EINVAL, "--kernel is for the whole machine: leave out the command, -L, --obj and --children");
	return heap_options_check_recording(&arguments->heap, command, diag);
}

static int leak_run(void *all, const char *command_line)
{
	const struct leak_arguments *arguments = all;
	struct sonde_leak_options leak = heap_options_leak(&arguments->heap);
	struct sonde_session_options of_library = recording_options(&arguments->heap.recording, command_line);
	const struct recording_words words = { .is_attached = true, .no_samples = "nothing was allocated" };

	leak.older_than_ns = arguments->older_ms * NS_PER_MS;
	leak.sample_rate = (uint32_t)arguments->sample_rate;
	leak.each = arguments->each;
	of_library.mode = arguments->kernel ? SONDE_LEAK_KERNEL : SONDE_LEAK;
	of_library.leak = &leak;
	of_library.max_stacks = (uint32_t)arguments->heap.max_stacks;
	of_library.user_only = !arguments->kernel;
	of_library.kernel_only = arguments->kernel;
	of_library.lines = !of_library.no_lines;
	return recording_run(&leak_verb, &arguments->heap.recording, &of_library, &words);
}

static const struct leak_arguments defaults = { .older_ms = DEFAULT_OLDER_MS,
						.heap.max_stacks = HEAP_DEFAULT_STACKS,
						.heap.recording.debuginfod_timeout_s = RECORDING_DEFAULT_TIMEOUT };

const struct verb leak_verb = {
	.name = "leak",
	.summary = "which stacks hold memory that was not freed",
	.description = "Keeps each block of a process from its allocation to its free, in the kernel, and reports those that are not free, "
		       "by the stack that asked for them: malloc, calloc, realloc, reallocarray, aligned_alloc, posix_memalign, memalign, "
		       "valloc, pvalloc, C++'s new and delete, mmap and mremap, of the C library and of any other allocator that the "
		       "process maps or contains. No restart and no preloaded library is needed.\n\n"
		       "Each call costs the process a microsecond or more: one that allocates all the time becomes many times slower.\n\n"
		       "The options are those of BCC's memleak, under long names.",
	.options = options,
	.nr_options = ARRAY_SIZE(options),
	.examples = examples,
	.takes_command = true,
	.arguments_bytes = sizeof(struct leak_arguments),
	.defaults = &defaults,
	.check = check,
	.run = leak_run,
};
