// SPDX-License-Identifier: Apache-2.0
#include "output/report_file.h"

#include "output/output.h"

struct taker {
	struct output_stream *stream;
	struct diag *diag;
};

static void taker_done(struct taker *taker)
{
	output_stream_free(taker->stream);
}

static int take(void *arg, const void *bytes, size_t size)
{
	struct taker *taker = arg;

	return output_stream_write(taker->stream, bytes, size, taker->diag);
}

int report_file_write(const struct profile *profile, enum export_format format, const struct export_options *options, const char *path,
		      size_t max_bytes, struct diag *diag)
{
	CLEANUP(taker_done) struct taker taker = { .diag = diag };
	CLEANUP(buffer_done) struct buffer buffer = BUFFER_INIT(max_bytes);
	int err = output_stream_open(path, diag, &taker.stream);

	if (err)
		return err;
	buffer.take = take;
	buffer.taker = &taker;
	err = export_write(profile, format, options, &buffer, diag);
	if (err)
		return err;
	buffer_give(&buffer);
	return buffer.err ? buffer.err : output_stream_finish(taker.stream, diag);
}
