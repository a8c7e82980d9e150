// SPDX-License-Identifier: Apache-2.0
#include "import/gunzip.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <zlib.h>

#define WINDOW_BITS (15 + 16) /* + 16: a gzip header, zlib.h's inflateInit2 */
#define OUT_BYTES   ((size_t)256 << 10)

struct packed {
	const Bytef *pos, *end;
	z_stream stream;
};

/* Unpacks one member; moves packed->pos past it. */
static int inflate_member(struct packed *packed, struct buffer *buffer)
{
	int result = Z_OK;

	while (result == Z_OK) {
		size_t left = (size_t)(packed->end - packed->pos), out = OUT_BYTES;
		Bytef *room;

		if (buffer->max - buffer->size < out && buffer->max > buffer->size)
			out = buffer->max - buffer->size;
		room = buffer_reserve(buffer, out);
		if (!room)
			return buffer->err;
		packed->stream.next_in = (z_const Bytef *)packed->pos;
		packed->stream.avail_in = left > UINT_MAX ? UINT_MAX : (uInt)left; /* zlib counts in unsigned int */
		packed->stream.next_out = room;
		packed->stream.avail_out = (uInt)out;
		result = inflate(&packed->stream, Z_NO_FLUSH);
		buffer->size -= packed->stream.avail_out;
		packed->pos = packed->stream.next_in;
	}
	if (result == Z_STREAM_END)
		return 0;
	return result == Z_MEM_ERROR ? -ENOMEM : -EBADMSG;
}

/* Skips the zeros after the last member: padding, as in gzip. */
static void skip_padding(struct packed *packed)
{
	while (packed->pos < packed->end && !*packed->pos)
		packed->pos++;
}

static int inflate_all(struct packed *packed, struct buffer *buffer)
{
	do {
		int err = inflate_member(packed, buffer);

		if (!err && inflateReset(&packed->stream) != Z_OK)
			err = -EBADMSG;
		if (err)
			return err;
		skip_padding(packed);
	} while (packed->pos < packed->end);
	return 0;
}

int gunzip(const void *bytes, size_t size, struct buffer *buffer, struct diag *diag)
{
	struct packed packed = { .pos = bytes, .end = (const Bytef *)bytes + size };
	int err;

	if (inflateInit2(&packed.stream, WINDOW_BITS) != Z_OK)
		return diag_errno(diag, ENOMEM, "no memory to unpack it");
	err = inflate_all(&packed, buffer);
	inflateEnd(&packed.stream);
	if (err == -EBADMSG)
		return diag_errno(diag, EBADMSG, "its gzip data is %s byte %zu", packed.pos == packed.end ? "cut off at" : "damaged near",
				  (size_t)(packed.pos - (const Bytef *)bytes));
	if (err == -EFBIG)
		return diag_errno(diag, EFBIG, "it unpacks to more than %zu bytes", buffer->max);
	return err ? diag_errno(diag, -err, "no memory to unpack it") : 0;
}
