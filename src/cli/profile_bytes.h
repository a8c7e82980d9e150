/* SPDX-License-Identifier: Apache-2.0 */
/* profile_bytes: profiles of the library in memory. */
#pragma once
#include <sonde/sonde.h>

#include "base/buffer.h"
#include "base/cleanup.h"

static inline void profile_freep(struct sonde_profile **profile)
{
	sonde_profile_free(*profile);
}

/* Appends the profile in the options' format. 0; or the error of the buffer or of sonde_profile_write_bytes. */
MUST_CHECK int profile_bytes_write(struct sonde_profile *profile, const struct sonde_write_options *options, struct buffer *buffer);
