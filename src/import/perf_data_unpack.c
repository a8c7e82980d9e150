// SPDX-License-Identifier: Apache-2.0
/* The records of `perf record -z`: one stream of zstd, cut into records; what it unpacks to is records, cut anywhere. */
#include <errno.h>
#include <stdlib.h>
#include <zstd.h>

#include "import/perf_data_private.h"

#define STEP_BYTES (128u << 10)
#define WINDOW_LOG_MAX 27 /* perf asks for less; a stranger for up to 2 GiB */

struct unpacker {
	ZSTD_DStream *stream;
	uint8_t bytes[STEP_BYTES];
};

void perf_data_unpacker_free(struct unpacker *unpacker)
{
	if (!unpacker)
		return;
	ZSTD_freeDStream(unpacker->stream);
	free(unpacker);
}

static int make(struct perf_data *data)
{
	struct unpacker *unpacker = calloc(1, sizeof(*unpacker));

	if (!unpacker)
		return -ENOMEM;
	data->unpacker = unpacker;
	unpacker->stream = ZSTD_createDStream();
	if (!unpacker->stream || ZSTD_isError(ZSTD_DCtx_setParameter(unpacker->stream, ZSTD_d_windowLogMax, WINDOW_LOG_MAX)))
		return -ENOMEM;
	return 0;
}

int perf_data_unpack(struct perf_data *data, const void *bytes, size_t size, struct diag *diag)
{
	ZSTD_inBuffer in = { .src = bytes, .size = size };
	int err = data->unpacker ? 0 : make(data);
	bool is_full = true;

	while (!err && (in.pos < in.size || is_full)) {
		ZSTD_outBuffer out = { .dst = data->unpacker->bytes, .size = STEP_BYTES };

		if (ZSTD_isError(ZSTD_decompressStream(data->unpacker->stream, &out, &in)))
			return -EBADMSG;
		is_full = out.pos == out.size;
		err = perf_data_take(data, &data->unpacked, out.dst, out.pos, diag);
		if (!out.pos && in.pos == in.size)
			break;
	}
	return err;
}
