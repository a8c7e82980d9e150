/* SPDX-License-Identifier: Apache-2.0 */
/* buffer: bytes that grow up to a maximum. A failed append is sticky, so writers may check once at the end. A buffer with a taker is a
 * window on what is written: what is settled leaves it. One thread. */
#pragma once
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

struct buffer {
	char *data; /* always followed by a NUL byte once something was appended */
	size_t size, capacity, max; /* max: of what stands in it; less by what was taken out of it */
	int err; /* 0, or the sticky negative errno: -ENOMEM, -EFBIG (past max), or what the taker gave */
	int (*take)(void *taker, const void *bytes, size_t size); /* NULL: all stays in it. 0 or a negative errno */
	void *taker;
};

#define BUFFER_WINDOW_BYTES ((size_t)256 << 10)
#define BUFFER_INIT(max_bytes) ((struct buffer){ .max = (max_bytes) })
void buffer_done(struct buffer *buffer);
void buffer_append(struct buffer *buffer, const void *bytes, size_t size);
void buffer_text(struct buffer *buffer, const char *text);
__attribute__((format(printf, 2, 3))) void buffer_printf(struct buffer *buffer, const char *fmt, ...);
/* Gives the taker all that stands in the buffer, which is empty then. */
void buffer_give(struct buffer *buffer);
/* Says that nobody will look back at what stands in the buffer: the taker gets it as soon as it is worth a call. */
static inline void buffer_settle(struct buffer *buffer)
{
	if (buffer->take && buffer->size >= BUFFER_WINDOW_BYTES)
		buffer_give(buffer);
}
/* Room for `size` more bytes, counted as used; NULL (and a sticky error) when there is none. Valid until the next append. */
void *buffer_reserve(struct buffer *buffer, size_t size);
