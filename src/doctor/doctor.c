// SPDX-License-Identifier: Apache-2.0
/* sonde doctor: examines and reports. Its exit code says whether profile works here. */
#include "doctor/doctor.h"

#include <bpf/libbpf.h>
#include <sonde/sonde.h>

#include "cli/output.h"
#include "cli/plain_format.h"
#include "cli/verbs.h"

struct doctor_arguments {
	const char *format;
	bool json; /* from --format */
};

static const struct option_spec options[] = {
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

static int doctor_run(void *all, const char *command_line)
{
	const struct doctor_arguments *arguments = all;
	struct buffer report = BUFFER_INIT(1 << 20);
	struct doctor doctor = { 0 };
	int code;

	libbpf_set_print(NULL); /* the findings report what it would warn about */
	doctor_examine(&doctor);
	if (arguments->json)
		doctor_json(&doctor, &report);
	else
		doctor_report(&doctor, output_colour(STDOUT_FILENO), &report);
	code = output_result(&report);
	buffer_done(&report);
	return code ? code : verdict_code(&doctor);
}

static const struct verb_example examples[] = {
	{ "sonde doctor", "what works here, what does not, and what helps" },
	{ "sonde doctor --format json", "the same for programs" },
	{ NULL, NULL },
};

const struct verb doctor_verb = {
	.name = "doctor",
	.summary = "what this kernel and this process allow",
	.description =
	    "Tries everything that sonde needs from the kernel, each on its own and by doing it: program types, map types, helpers, "
	    "events, access. Then says for each verb whether it works, works with less (what) or cannot (why), and the "
	    "command that helps.\n\n"
	    "Ends with exit code 0 when profile works or works with less, 3 when it is not permitted, 4 when this kernel cannot.",
	.options = options,
	.nr_options = ARRAY_SIZE(options),
	.examples = examples,
	.arguments_bytes = sizeof(struct doctor_arguments),
	.check = check,
	.run = doctor_run,
};
