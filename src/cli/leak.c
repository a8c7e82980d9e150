// SPDX-License-Identifier: Apache-2.0
/* sonde leak: BCC's memleak, its options under long names. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "cli/output.h"
#include "cli/recording.h"
#include "cli/verbs.h"

#define DEFAULT_INTERVAL_S 5
#define DEFAULT_OLDER_MS 500
#define DEFAULT_STACKS 10
#define MAX_OLDER_MS UINT64_C(1000000000) /* 11 days */
#define MAX_BLOCKS (1 << 28)

struct leak_arguments {
	struct recording recording; /* every_s: the interval */
	uint64_t nr_intervals;      /* 0: not given */
	uint64_t older_ms, min_bytes, max_bytes, sample_rate, max_live, max_stacks;
	const char *object;
	bool each, combined, missing_free, children;
};

#define FIELD(field) .offset = offsetof(struct leak_arguments, field)

static const struct option_spec options[] = {
	{ .group = "What is measured",
	  .metavar = "INTERVAL",
	  .kind = OPTION_NUMBER,
	  FIELD(recording.every_s),
	  .min = 1,
	  .max = RECORDING_MAX_DURATION_S,
	  .help = "seconds between two reports; 5. With -o and without it one report, at the end" },
	{ .metavar = "COUNT", .kind = OPTION_NUMBER, FIELD(nr_intervals), .min = 1, .max = UINT32_MAX, .help = "so many reports" },
	{ .name = "older-than",
	  .metavar = "MS",
	  .kind = OPTION_NUMBER,
	  FIELD(older_ms),
	  .max = MAX_OLDER_MS,
	  .help = "report only blocks of this age, in milliseconds; 500" },
	{ .name = "min-size", .metavar = "BYTES", .kind = OPTION_NUMBER, FIELD(min_bytes), .max = INT64_MAX,
	  .help = "track only allocations of at least this size" },
	{ .name = "max-size", .metavar = "BYTES", .kind = OPTION_NUMBER, FIELD(max_bytes), .min = 1, .max = INT64_MAX,
	  .help = "and of at most this size" },
	{ .name = "sample-rate",
	  .metavar = "N",
	  .kind = OPTION_NUMBER,
	  FIELD(sample_rate),
	  .min = 1,
	  .max = UINT32_MAX,
	  .help = "track one in N allocations, chosen by chance; each counts as N. Saves memory of the kernel, but hardly time: the "
		  "calls are seen all the same" },
	{ .name = "max-live",
	  .metavar = "N",
	  .kind = OPTION_NUMBER,
	  FIELD(max_live),
	  .min = 1,
	  .max = MAX_BLOCKS,
	  .help = "track so many blocks at a time; 1000000. Those beyond it are counted, and the report says so" },
	{ .name = "combined-only", .kind = OPTION_FLAG, FIELD(combined), .help = "blocks of any age; the same as --older-than 0" },
	{ .name = "missing-free",
	  .kind = OPTION_FLAG,
	  FIELD(missing_free),
	  .help = "a block that is handed out again counts once, even if its free was not seen: so it is without this option, too" },
	{ .letter = 'O',
	  .name = "obj",
	  .metavar = "OBJECT",
	  .kind = OPTION_TEXT,
	  FIELD(object),
	  .values = OPTION_VALUES_FILE,
	  .help = "probe only the allocator in this file: a path, or a name such as libc; without it every allocator that is mapped" },

	TARGET_OPTIONS_IDS(struct leak_arguments, recording.targets),
	{ .name = "children",
	  .kind = OPTION_FLAG,
	  FIELD(children),
	  .help = "also the processes that the command starts. All processes that map the allocator's file are slowed down then" },

	{ .group = "How it is shown",
	  .name = "top",
	  .metavar = "N",
	  .kind = OPTION_NUMBER,
	  FIELD(max_stacks),
	  .min = 1,
	  .max = UINT32_MAX,
	  .help = "so many stacks in text, those that hold the most; 10. The largest is the last" },
	{ .name = "all", .kind = OPTION_FLAG, FIELD(each), .help = "also the address and size of each block" },
	RECORDING_OUTPUT_OPTIONS(struct leak_arguments, recording),
};

static const struct verb_example examples[] = {
	{ "sonde leak -p 185", "what process 185 allocates from now on and does not free, every 5 seconds" },
	{ "sonde leak -p 185 10 3", "every 10 seconds, three times" },
	{ "sonde leak -- ./prog", "a command from its start to its end" },
	{ "sonde leak --older-than 60000 -p 185", "only what is older than a minute" },
	{ "sonde leak -o leak.html -p 185", "as a flame graph, until Ctrl-C" },
	{ "sonde leak --all --top 1 -p 185", "with the blocks' addresses" },
	{ NULL, NULL },
};

static int check(void *all, char *const *command, struct diag *diag)
{
	struct leak_arguments *arguments = all;
	struct recording *recording = &arguments->recording;

	recording->command = command;
	if (!command && !recording->targets.tgids.nr)
		return diag_errno(diag, EINVAL, "say which process: -p PID, or -- command");
	if (recording->targets.tids.nr)
		return diag_errno(diag, EINVAL, "a block belongs to a process, not to a thread: -p PID instead of -L");
	if (arguments->children && !command)
		return diag_errno(diag, EINVAL, "--children is for a command: give the children's ids to -p");
	if (arguments->max_bytes && arguments->max_bytes < arguments->min_bytes)
		return diag_errno(diag, EINVAL, "no block has at least %" PRIu64 " and at most %" PRIu64
				  " bytes: --max-size is below --min-size",
				  arguments->min_bytes, arguments->max_bytes);
	if (arguments->combined)
		arguments->older_ms = 0;
	if (!recording->every_s && !recording->outputs.nr)
		recording->every_s = DEFAULT_INTERVAL_S;
	recording->duration_s = arguments->nr_intervals <= RECORDING_MAX_DURATION_S ? arguments->nr_intervals * recording->every_s : 0;
	return recording_check(recording, diag);
}

static int leak_run(void *all, const char *command_line)
{
	const struct leak_arguments *arguments = all;
	const struct sonde_leak_options leak = {
		.size = sizeof(leak),
		.older_than_ns = arguments->older_ms * NS_PER_MS,
		.min_bytes = arguments->min_bytes,
		.max_bytes = arguments->max_bytes,
		.sample_rate = (uint32_t)arguments->sample_rate,
		.max_live = (uint32_t)arguments->max_live,
		.each = arguments->each,
		.children = arguments->children,
		.object = arguments->object,
	};
	struct sonde_session_options of_library = recording_options(&arguments->recording, command_line);
	const struct recording_words words = { .is_attached = true, .no_samples = "nothing was allocated" };

	of_library.mode = SONDE_LEAK;
	of_library.leak = &leak;
	of_library.max_stacks = (uint32_t)arguments->max_stacks;
	of_library.user_only = true;
	of_library.lines = !of_library.no_lines;
	return recording_run(&leak_verb, &arguments->recording, &of_library, &words);
}

static const struct leak_arguments defaults = { .older_ms = DEFAULT_OLDER_MS,
						.max_stacks = DEFAULT_STACKS,
						.recording.debuginfod_timeout_s = RECORDING_DEFAULT_TIMEOUT };

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
