// SPDX-License-Identifier: Apache-2.0
#include "store/packed_body.h"

#include <errno.h>
#include <stdlib.h>
#include <zstd.h>

int packed_body_make(const void *body, size_t size, struct diag *diag, void **ret_packed, size_t *ret_size)
{
	size_t room = ZSTD_compressBound(size), packed_size;
	CLEANUP(freep) void *packed = NULL;
	void *fitting;

	if (size > STORE_MAX_BODY_BYTES)
		return diag_errno(diag, EFBIG, "a window is too large for the store");
	packed = malloc(room);
	if (!packed)
		return -ENOMEM;
	packed_size = ZSTD_compress(packed, room, body, size, ZSTD_CLEVEL_DEFAULT);
	if (ZSTD_isError(packed_size))
		return diag_errno(diag, EIO, "cannot compress a window: %s", ZSTD_getErrorName(packed_size));
	fitting = realloc(packed, packed_size); /* it may be kept for long */
	if (fitting)
		packed = fitting;
	*ret_size = packed_size;
	*ret_packed = MOVE(packed);
	return 0;
}

/* The bytes may be another's work: no size is believed. */
int packed_body_open(const void *packed, size_t size, struct diag *diag, void **ret_body, size_t *ret_size)
{
	unsigned long long bytes = ZSTD_getFrameContentSize(packed, size); /* its errors are larger than any limit */
	CLEANUP(freep) void *body = NULL;

	if (!packed || bytes > STORE_MAX_BODY_BYTES)
		return diag_errno(diag, EUCLEAN, "the store has a row that sonde did not write");
	body = malloc((size_t)bytes + 1);
	if (!body)
		return -ENOMEM;
	if (ZSTD_decompress(body, (size_t)bytes, packed, size) != bytes)
		return diag_errno(diag, EUCLEAN, "a row of the store is damaged");
	*ret_body = MOVE(body);
	*ret_size = (size_t)bytes;
	return 0;
}
