/* SPDX-License-Identifier: Apache-2.0 */
/* report_file: writes a profile's report to its destination, in pieces as they are made. A regular file appears when it is complete; a pipe
 * or a device gets the bytes at once. */
#pragma once
#include "output/export.h"

/* -EFBIG: larger than `max_bytes`; otherwise as export_write and output_stream_open. */
MUST_CHECK int report_file_write(const struct profile *profile, enum export_format format, const struct export_options *options,
				 const char *path, size_t max_bytes, struct diag *diag);
