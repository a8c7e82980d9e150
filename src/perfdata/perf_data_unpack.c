// SPDX-License-Identifier: Apache-2.0
/* Unpacks the records of `perf record -z`: a single zstd stream, split into records. It unpacks to records, split at any byte. */
#include <errno.h>
#include <stdlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "perfdata/perf_data_private.h"

#define STEP_BYTES (128u << 10)
/* Limit of the growth. Stacks of 16 KiB each grow 135-fold; data crafted to grow does so ten thousandfold. */
#define UNPACKED_TIMES	1024
#define UNPACKED_ANYHOW ((uint64_t)256 << 20)
#define WINDOW_LOG_MAX 27 /* perf uses less; an untrusted file may demand up to 2 GiB */

struct unpacker {
	ZSTD_DStream *stream;
	uint64_t nr_packed, nr_unpacked; /* bytes so far */
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

/* Unpacks as much as there is room for. 0; -EBADMSG, -ENOMEM; -EFBIG: it grows more than the limit. */
static int unpack_step(struct unpacker *unpacker, ZSTD_inBuffer *in, size_t *ret_nr, struct diag *diag)
{
	ZSTD_outBuffer out = { .dst = unpacker->bytes, .size = STEP_BYTES };
	size_t before = in->pos, result = ZSTD_decompressStream(unpacker->stream, &out, in);

	if (ZSTD_isError(result))
		return ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation ? -ENOMEM : -EBADMSG;
	unpacker->nr_packed += in->pos - before;
	unpacker->nr_unpacked += out.pos;
	if (unpacker->nr_unpacked > UNPACKED_ANYHOW && unpacker->nr_unpacked / UNPACKED_TIMES > unpacker->nr_packed)
		return diag_errno(diag, EFBIG, "its packed records unpack to more than %d times their size", UNPACKED_TIMES);
	*ret_nr = out.pos;
	return 0;
}

int perf_data_unpack(struct perf_data *data, const void *bytes, size_t size, struct diag *diag)
{
	ZSTD_inBuffer in = { .src = bytes, .size = size };
	int err = data->unpacker ? 0 : make(data);
	size_t nr = STEP_BYTES;

	while (!err && (in.pos < in.size || nr == STEP_BYTES)) {
		err = unpack_step(data->unpacker, &in, &nr, diag);
		if (!err)
			err = perf_data_take(data, &data->unpacked, data->unpacker->bytes, nr, diag);
		if (!nr && in.pos == in.size)
			break;
	}
	return err;
}
