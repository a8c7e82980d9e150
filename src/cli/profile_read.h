/* SPDX-License-Identifier: Apache-2.0 */
/* profile_read: what the verbs that read profiles have in common. */
#pragma once
#include <stdint.h>

#include <sonde/sonde.h>

#include "cli/option.h"

const char *profile_read_format_at(uint32_t i); /* for option_spec.value_name */
/* Reads the file, and says on standard error what could not be kept. 0 or a negative errno. */
MUST_CHECK int profile_read(struct sonde_profile *profile, const char *path, const char *format);
/* Says why, and gives the exit code. */
int profile_failed(const struct verb *verb, const struct sonde_profile *profile);
/* Says so, and gives the exit code. */
int profile_no_samples(const char *path);
