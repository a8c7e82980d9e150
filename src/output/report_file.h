/* SPDX-License-Identifier: Apache-2.0 */
/* report_file: a profile's report to where it goes. Its bytes leave as they are made: of a regular file they are seen when all of them are
 * there, of a pipe or a device at once. */
#pragma once
#include "output/export.h"

/* Past `max_bytes` it is -EFBIG; else as export_write and output_stream_open. */
MUST_CHECK int report_file_write(const struct profile *profile, enum export_format format, const struct export_options *options,
				 const char *path, size_t max_bytes, struct diag *diag);
