// SPDX-License-Identifier: Apache-2.0
#include "codec/zstd_pack.h"

#include <errno.h>
#include <zstd.h>

#define LEVEL 3 /* zstd's own default */

int zstd_pack(const void *bytes, size_t size, struct buffer *buffer)
{
	size_t most = ZSTD_compressBound(size), packed;
	void *room = ZSTD_isError(most) ? NULL : buffer_reserve(buffer, most);

	if (!room)
		return buffer->err ?: -EFBIG;
	packed = ZSTD_compress(room, most, bytes, size, LEVEL);
	if (ZSTD_isError(packed))
		return -ENOMEM; /* there is room, so it can be nothing else */
	buffer->size -= most - packed;
	return 0;
}
