/* SPDX-License-Identifier: Apache-2.0 */
/* buffer: bytes that grow up to a maximum. A failed append is sticky, so writers may check once at the end. A buffer with a taker is a
 * window on the output: settled bytes leave it. One thread. */
#pragma once
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

struct buffer {
	char *data; /* always followed by a NUL byte once something was appended */
	size_t size, capacity, max; /* max: limit of size; buffer_give lowers it by what it passes on */
	int err; /* 0, or the sticky negative errno: -ENOMEM, -EFBIG (past max), or what take returned */
	int (*take)(void *taker, const void *bytes, size_t size); /* NULL: all bytes stay. 0 or a negative errno */
	void *taker;
};

#define BUFFER_WINDOW_BYTES ((size_t)256 << 10)
#define BUFFER_INIT(max_bytes) ((struct buffer){ .max = (max_bytes) })
void buffer_done(struct buffer *buffer);
void buffer_append(struct buffer *buffer, const void *bytes, size_t size);
void buffer_text(struct buffer *buffer, const char *text);
__attribute__((format(printf, 2, 3))) void buffer_printf(struct buffer *buffer, const char *fmt, ...);
/* Passes all bytes to the taker, and empties the buffer. */
void buffer_give(struct buffer *buffer);
/* Declares that nobody will change the bytes in the buffer any more. The taker gets them once there are enough for a call. */
static inline void buffer_settle(struct buffer *buffer)
{
	if (buffer->take && buffer->size >= BUFFER_WINDOW_BYTES)
		buffer_give(buffer);
}
/* Room for `size` more bytes, counted as used; NULL (and a sticky error) if there is none. Valid until the next append. */
void *buffer_reserve(struct buffer *buffer, size_t size);
