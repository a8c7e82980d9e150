/* SPDX-License-Identifier: Apache-2.0 */
/* profile_files: what the verbs that read and write profiles have in common. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include <sonde/sonde.h>

#include "cli/option.h"

#define PROFILE_MEMORY_MIB 1024

/* How much memory the verb may take: a uint64_t of its arguments, by default PROFILE_MEMORY_MIB. */
#define PROFILE_MEMORY_OPTION(type, field) \
	{ .name = "memory", .metavar = "MIB", .kind = OPTION_NUMBER, .offset = offsetof(type, field), .min = 16, .max = UINT32_MAX, \
	  .help = "take at most so much memory, and fail when a file needs more; 1024" }

/* Gives up, for good, what is not needed to read strangers' files and to write these outputs (NULL: none), and all memory but so much.
 * Helpers that are started have limits of their own. */
void profile_confine(uint64_t memory_mib, const struct option_texts *outputs);
/* Of struct sonde_read_options: gives up reading all but `next`, a path that is still to be read, or NULL. What perf.data names is read
 * from this machine: with one as `next` nothing is given up. */
void profile_confine_reading(void *next);
/* Names of formats, for option_spec.value_name. */
const char *profile_read_format_at(uint32_t i);
const char *profile_write_format_at(uint32_t i);
/* What can be said of outputs before there is a profile: each is named once, in a format that there is. 0; -EINVAL with a line. `format`:
 * NULL: by the suffixes. */
MUST_CHECK int profile_check_outputs(const struct option_texts *outputs, const char *format, struct diag *diag);
/* Reads the file, and says on standard error what could not be kept. 0 or a negative errno. */
MUST_CHECK int profile_read(struct sonde_profile *profile, const char *path, const struct sonde_read_options *options);
/* Can the outputs be written? Says of the first that cannot why; an exit code. */
MUST_CHECK int profile_try_outputs(const struct verb *verb, struct sonde_profile *profile, const struct option_texts *outputs,
				   const char *format);
/* Writes all outputs; each is tried. Says what failed; the exit code of the first that did. */
int profile_write_all(const struct verb *verb, struct sonde_profile *profile, const struct option_texts *outputs,
		      const struct sonde_write_options *options);
/* Says why, and gives the exit code. `err`: what the library gave. */
int profile_failed(const struct verb *verb, const struct sonde_profile *profile, int err);
/* Has it neither samples nor histograms? */
bool profile_is_empty(const struct sonde_profile *profile);
/* Says so, and gives the exit code. */
int profile_no_samples(const char *path);
