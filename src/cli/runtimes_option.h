/* SPDX-License-Identifier: Apache-2.0 */
/* runtimes_option: the option --runtimes, the same for every verb that takes stacks. */
#pragma once
#include "cli/option.h"

/* `at`: the offset of the text; `otel`: as in struct option_spec. */
#define OPTION_ROW_RUNTIMES(at, otel) \
	{ .name = "runtimes", \
	  .metavar = "LIST", \
	  .otel_name = (otel), \
	  .kind = OPTION_TEXT, \
	  .offset = (at), \
	  .value_name = runtimes_option_name_at, \
	  .help = "walk the frames of these languages alone, with commas between; none: of no language, the frames of their interpreters " \
		  "are shown instead. otel is no language: the traces and spans that OpenTelemetry publishes for threads. Without it all " \
		  "of them" }

const char *runtimes_option_name_at(uint32_t i);
/* 0; -EINVAL with a line that has the name that is meant, if one is near. `list` NULL: not given. */
MUST_CHECK int runtimes_option_check(const char *list, struct diag *diag);
