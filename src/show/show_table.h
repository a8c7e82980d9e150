/* SPDX-License-Identifier: Apache-2.0 */
/* show_table: writes the table of show_table() without its title, for the summary. */
#pragma once
#include "frames/functions.h"
#include "show/show.h"

MUST_CHECK int show_groups(const struct profile *profile, enum show_by by, const struct functions *functions, uint32_t max_lines,
			   const struct show_options *options, struct buffer *buffer);
