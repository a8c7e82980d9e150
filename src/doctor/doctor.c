// SPDX-License-Identifier: Apache-2.0
/* sonde doctor: examines this kernel, or a process, and reports. */
#include "doctor/doctor.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <bpf/libbpf.h>
#include <sonde/sonde.h>

#include "base/clock.h"
#include "cli/output.h"
#include "cli/plain_format.h"
#include "cli/target_options.h"
#include "cli/verbs.h"

struct doctor_arguments {
	uint64_t pid, seconds; /* pid 0: this kernel */
	const char *format;
	bool json; /* from --format */
};

static const struct option_spec options[] = {
	{ .group = "What",
	  .letter = 'p',
	  .name = "pid",
	  .metavar = "PID",
	  .kind = OPTION_NUMBER,
	  .offset = offsetof(struct doctor_arguments, pid),
	  .min = 1,
	  .max = TARGET_MAX_ID,
	  .values = OPTION_VALUES_PROCESS,
	  .help = "this process: its runtimes, files, names, and what would be missing in its stacks" },
	{ .name = "seconds",
	  .metavar = "S",
	  .kind = OPTION_NUMBER,
	  .offset = offsetof(struct doctor_arguments, seconds),
	  .max = 3600,
	  .help = "with -p: take its stacks for so long; 0: do not; 1" },
	{ .group = "Options",
	  .name = "format",
	  .metavar = "NAME",
	  .kind = OPTION_TEXT,
	  .offset = offsetof(struct doctor_arguments, format),
	  .value_name = plain_format_at,
	  .help = "text, or json: the same for programs" },
};

static int check(void *all, char *const *command, struct diag *diag)
{
	struct doctor_arguments *arguments = all;

	return plain_format_choose(arguments->format, NULL, diag, &arguments->json);
}

static int verdict_code(const struct doctor *doctor)
{
	struct doctor_opinion opinion;

	if (!doctor_opinion(doctor, 0, &opinion) || opinion.verdict <= DOCTOR_LESS)
		return SONDE_EXIT_REPORT;
	return opinion.verdict == DOCTOR_NOT_PERMITTED ? SONDE_EXIT_NOT_PERMITTED : SONDE_EXIT_KERNEL_CANNOT;
}

static int print(void *arg, const char *report)
{
	struct buffer *buffer = arg;

	buffer_text(buffer, report);
	return buffer->err;
}

static int say_why(uint64_t pid, int err)
{
	if (err == -ESRCH)
		fprintf(stderr, "sonde doctor: there is no process %" PRIu64 "\n", pid);
	else if (err == -EACCES || err == -EPERM)
		fprintf(stderr, "sonde doctor: process %" PRIu64 " may not be read: run it as root, or as that process's user\n", pid);
	else
		fprintf(stderr, "sonde doctor: process %" PRIu64 " cannot be examined: %s\n", pid, strerror(-err));
	return err == -EACCES || err == -EPERM ? SONDE_EXIT_NOT_PERMITTED : SONDE_EXIT_FAILED;
}

static int examine_process(const struct doctor_arguments *arguments)
{
	struct buffer report = BUFFER_INIT(1 << 26);
	const struct sonde_examine_options examined = { .size = sizeof(examined),
						       .tgid = (uint32_t)arguments->pid,
						       .stacks_ns = arguments->seconds * NS_PER_S,
						       .json = arguments->json,
						       .colour = output_colour(STDOUT_FILENO),
						       .text = print,
						       .arg = &report };
	int err = sonde_examine_process(&examined), code = err ? say_why(arguments->pid, err) : output_result(&report);

	buffer_done(&report);
	return code;
}

static int examine_kernel(const struct doctor_arguments *arguments)
{
	struct buffer report = BUFFER_INIT(1 << 20);
	struct doctor doctor = { 0 };
	int code;

	doctor_examine(&doctor);
	if (arguments->json)
		doctor_json(&doctor, &report);
	else
		doctor_report(&doctor, output_colour(STDOUT_FILENO), &report);
	code = output_result(&report);
	buffer_done(&report);
	return code ? code : verdict_code(&doctor);
}

static int doctor_run(void *all, const char *command_line)
{
	const struct doctor_arguments *arguments = all;

	libbpf_set_print(NULL); /* the findings report what it would warn about */
	return arguments->pid ? examine_process(arguments) : examine_kernel(arguments);
}

static const struct doctor_arguments defaults = { .seconds = 1 };

static const struct verb_example examples[] = {
	{ "sonde doctor", "what works here, what does not, and what helps" },
	{ "sonde doctor --format json", "the same for programs" },
	{ "sonde doctor -p 185", "what a profile of process 185 can show, what is missing and what helps" },
	{ NULL, NULL },
};

const struct verb doctor_verb = {
	.name = "doctor",
	.summary = "what this kernel allows, and what a process shows",
	.description =
	    "Tries everything that sonde needs from the kernel, each on its own and by doing it: program types, map types, helpers, "
	    "events, access. Then says for each verb whether it works, works with less (what) or cannot (why), and the "
	    "command that helps.\n\n"
	    "With -p it looks at a process instead: its runtimes and where the layout of their data comes from, for each file the "
	    "size of its unwind table, where its functions' names come from and whether there are source lines, code in no file, and "
	    "for a second the stacks of all its threads: how much of their time has whole stacks, and what the others lack.\n\n"
	    "Without -p it ends with exit code 0 when profile works or works with less, 3 when it is not permitted, 4 when this kernel "
	    "cannot.",
	.options = options,
	.nr_options = ARRAY_SIZE(options),
	.examples = examples,
	.arguments_bytes = sizeof(struct doctor_arguments),
	.defaults = &defaults,
	.check = check,
	.run = doctor_run,
};
