/* SPDX-License-Identifier: Apache-2.0 */
/* profile: the verb's arguments and what is made of them. */
#pragma once
#include <sonde/sonde.h>

#include "cli/option.h"

struct profile_arguments {
	struct option_ids tgids, tids;
	const char *comm;
	uint64_t cpu;                     /* PROFILE_ALL_CPUS: all */
	bool idle, user_only, kernel_only;
	uint64_t freq_hz, period, duration_s; /* 0: not given */
	const char *event;
	bool no_fallback;
	uint64_t stack_storage;
	uint64_t unwind_mib; /* 0: not given */
	bool no_unwind_cache;
	uint64_t debuginfod_timeout_s;    /* PROFILE_DEFAULT_TIMEOUT: not given */
	bool audit;
	uint64_t audit_every; /* 0: not given */
	bool delimited, annotate, folded, lines, no_lines, offsets, threads, timestamps;
	const char *vmlinux;
	struct option_texts outputs;
	const char *format;
	bool ebpf;
	char *const *command;             /* NULL: none */
};

#define PROFILE_ALL_CPUS UINT64_MAX
#define PROFILE_DEFAULT_TIMEOUT UINT64_MAX

/* The verb's run function. */
int profile_run(const struct verb *verb, int argc, char **argv);

/* What the table cannot say: formats, suffixes, lengths, CPUs. 0; -EINVAL with a line. */
MUST_CHECK int profile_check(const struct profile_arguments *arguments, struct diag *diag);
/* The format for an output: --format, else by the suffix; -f turns text into folded. NULL: unknown. */
const char *profile_format(const struct profile_arguments *arguments, const char *path);
/* "Sampling at 49 Hertz of all threads by user + kernel stack... Hit Ctrl-C to end." and a newline. */
void profile_header(const struct profile_arguments *arguments, struct buffer *buffer);
