/* SPDX-License-Identifier: Apache-2.0 */
/* profile_files: what the verbs that read and write profiles have in common. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include <sonde/sonde.h>

#include "cli/option.h"

#define PROFILE_MEMORY_MIB 1024

/* The option for how much memory the verb may take: a uint64_t in its arguments, by default PROFILE_MEMORY_MIB. */
#define PROFILE_MEMORY_OPTION(type, field) \
	{ .name = "memory", .metavar = "MIB", .kind = OPTION_NUMBER, .offset = offsetof(type, field), .min = 16, .max = UINT32_MAX, \
	  .help = "take at most so much memory, and fail when a file needs more; 1024" }

/* Permanently gives up all rights not needed to read untrusted files and to write these outputs (NULL: none), and limits the memory.
 * Helper processes have limits of their own. */
void profile_confine(uint64_t memory_mib, const struct option_texts *outputs);
/* For struct sonde_read_options: gives up reading all files but `next`, a path still to be read, or NULL. The files that a perf.data names
 * are read from this machine, so with a perf.data as `next` nothing is given up. */
void profile_confine_reading(void *next);
/* Names of formats, for option_spec.value_name. */
const char *profile_read_format_at(uint32_t i);
const char *profile_write_format_at(uint32_t i);
/* Checks the outputs before there is a profile: each is named once, in a format that exists. `format` NULL: by the suffixes. 0; -EINVAL
 * with a line. */
MUST_CHECK int profile_check_outputs(const struct option_texts *outputs, const char *format, struct diag *diag);
/* Reads the file; reports on standard error what could not be kept. 0 or a negative errno. */
MUST_CHECK int profile_read(struct sonde_profile *profile, const char *path, const struct sonde_read_options *options);
/* Checks that the outputs can be written; reports the first that cannot, and why. Returns an exit code. */
MUST_CHECK int profile_try_outputs(const struct verb *verb, struct sonde_profile *profile, const struct option_texts *outputs,
				   const char *format);
/* Writes all outputs, also after a failure; reports what failed. Returns the exit code of the first failure. */
int profile_write_all(const struct verb *verb, struct sonde_profile *profile, const struct option_texts *outputs,
		      const struct sonde_write_options *options);
/* Reports the reason and returns the exit code. `err`: the library's error. */
int profile_failed(const struct verb *verb, const struct sonde_profile *profile, int err);
/* True when it has neither samples nor histograms. */
bool profile_is_empty(const struct sonde_profile *profile);
/* Says so; returns the exit code. */
int profile_no_samples(const char *path);
