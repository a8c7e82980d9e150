// SPDX-License-Identifier: Apache-2.0
#include "codec/gzip.h"

#include <errno.h>
#include <limits.h>
#include <zlib.h>

#define WINDOW_BITS  (15 + 16) /* 32 KiB, and + 16: a gzip header, which zlib.h's deflateInit2 makes with time 0 */
#define MEMORY_LEVEL 8
#define OUT_BYTES    ((size_t)64 << 10)

static int deflate_all(z_stream *stream, size_t size, struct buffer *buffer)
{
	int result = Z_OK;

	while (result != Z_STREAM_END) {
		Bytef *room;

		if (!stream->avail_in && size) { /* zlib counts in unsigned int */
			stream->avail_in = size > UINT_MAX ? UINT_MAX : (uInt)size;
			size -= stream->avail_in;
		}
		room = buffer_reserve(buffer, OUT_BYTES);
		if (!room)
			return buffer->err;
		stream->next_out = room;
		stream->avail_out = OUT_BYTES;
		result = deflate(stream, size ? Z_NO_FLUSH : Z_FINISH);
		buffer->size -= stream->avail_out;
		if (result == Z_STREAM_ERROR)
			return -EINVAL;
	}
	return 0;
}

int gzip(const void *bytes, size_t size, int level, struct buffer *buffer)
{
	z_stream stream = { .next_in = (z_const Bytef *)bytes };
	int err;

	if (deflateInit2(&stream, level, Z_DEFLATED, WINDOW_BITS, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	err = deflate_all(&stream, size, buffer);
	deflateEnd(&stream);
	return err;
}
