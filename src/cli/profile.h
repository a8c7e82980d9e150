/* SPDX-License-Identifier: Apache-2.0 */
/* profile: the verb's arguments and what is made of them. */
#pragma once
#include "cli/recording.h"

struct profile_arguments {
	struct recording recording;
	uint64_t cpu;             /* PROFILE_ALL_CPUS: all */
	bool idle;
	uint64_t freq_hz, period; /* 0: not given */
	const char *event;
	bool no_fallback;
	bool audit;
	uint64_t audit_every;     /* 0: not given */
	bool timestamps;
	bool ebpf;
};

#define PROFILE_ALL_CPUS UINT64_MAX

/* The verb's run function. */
int profile_run(const struct verb *verb, int argc, char **argv);

/* What the table cannot say: as recording_check, and CPUs. 0; -EINVAL with a line. */
MUST_CHECK int profile_check(const struct profile_arguments *arguments, struct diag *diag);
/* "Sampling at 49 Hertz of all threads by user + kernel stack... Hit Ctrl-C to end." and a newline. */
void profile_header(const struct profile_arguments *arguments, struct buffer *buffer);
