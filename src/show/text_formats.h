/* SPDX-License-Identifier: Apache-2.0 */
/* The writers of texts for people. As in formats/formats.h, but they obey the options. */
#pragma once
#include <stdbool.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "frames/export_options.h"
#include "model/profile.h"

MUST_CHECK int write_text(const struct profile *profile, const struct export_options *options, struct buffer *buffer);
/* Is the profile of memory that was allocated and not freed? write_text has another layout then, which begins with the time. */
bool text_is_outstanding(const struct profile *profile);
MUST_CHECK int write_outstanding(const struct profile *profile, const struct export_options *options, struct buffer *buffer);
MUST_CHECK int write_top(const struct profile *profile, const struct export_options *options, struct buffer *buffer);
MUST_CHECK int write_folded(const struct profile *profile, const struct export_options *options, struct buffer *buffer);
