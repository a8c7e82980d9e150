/* SPDX-License-Identifier: Apache-2.0 */
/* output: the destination of a report. A regular file appears complete under its name, or not at all. Stdout and devices are written
 * directly. */
#pragma once
#include <stddef.h>

#include "base/cleanup.h"
#include "base/diag.h"

/* Checks whether `path` can be written, without leaving anything behind. "-" is stdout. 0 or a negative errno. */
MUST_CHECK int output_check(const char *path, struct diag *diag);

struct output_stream;
MUST_CHECK int output_stream_open(const char *path, struct diag *diag, struct output_stream **ret_stream);
void output_stream_free(struct output_stream *stream); /* takes NULL; discards an unfinished regular file */
static inline void output_stream_freep(struct output_stream **stream)
{
	output_stream_free(*stream);
}
MUST_CHECK int output_stream_write(struct output_stream *stream, const void *bytes, size_t size, struct diag *diag);
MUST_CHECK int output_stream_finish(struct output_stream *stream, struct diag *diag); /* the file appears; once */
