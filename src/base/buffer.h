/* SPDX-License-Identifier: Apache-2.0 */
/* buffer: bytes that grow up to a maximum. A failed append is sticky, so writers may check once at the end. One thread. */
#pragma once
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

struct buffer {
	char *data; /* always followed by a NUL byte once something was appended */
	size_t size, capacity, max;
	int err; /* 0, or the sticky negative errno: -ENOMEM, -EFBIG (past max) */
};

#define BUFFER_INIT(max_bytes) ((struct buffer){ .max = (max_bytes) })
void buffer_done(struct buffer *buffer);
void buffer_append(struct buffer *buffer, const void *bytes, size_t size);
void buffer_text(struct buffer *buffer, const char *text);
__attribute__((format(printf, 2, 3))) void buffer_printf(struct buffer *buffer, const char *fmt, ...);
/* Room for `size` more bytes, counted as used; NULL (and a sticky error) when there is none. Valid until the next append. */
void *buffer_reserve(struct buffer *buffer, size_t size);
