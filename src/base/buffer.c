// SPDX-License-Identifier: Apache-2.0
#include "base/buffer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGE_BYTES ((size_t)64 << 20)

void buffer_done(struct buffer *buffer)
{
	free(buffer->data);
	*buffer = BUFFER_INIT(buffer->max);
}

/* Doubles the capacity. A large buffer, which realloc moves by its pages, grows by a quarter: the process's memory may be limited. */
static size_t grown(size_t capacity)
{
	if (capacity < LARGE_BYTES)
		return capacity ? capacity * 2 : 256;
	return capacity + capacity / 4;
}

void *buffer_reserve(struct buffer *buffer, size_t size)
{
	size_t need = buffer->size + size + 1;
	void *room;

	if (buffer->err)
		return NULL;
	if (size > buffer->max || need > buffer->max + 1) {
		buffer->err = -EFBIG;
		return NULL;
	}
	if (need > buffer->capacity) {
		size_t capacity = grown(buffer->capacity);
		char *data = realloc(buffer->data, capacity < need ? need : capacity);

		if (!data) {
			buffer->err = -ENOMEM;
			return NULL;
		}
		buffer->data = data;
		buffer->capacity = capacity < need ? need : capacity;
	}
	room = buffer->data + buffer->size;
	buffer->size += size;
	buffer->data[buffer->size] = '\0';
	return room;
}

void buffer_give(struct buffer *buffer)
{
	if (buffer->err || !buffer->size)
		return;
	buffer->err = buffer->take(buffer->taker, buffer->data, buffer->size);
	buffer->max -= buffer->size;
	buffer->size = 0;
}

void buffer_append(struct buffer *buffer, const void *bytes, size_t size)
{
	void *room = buffer_reserve(buffer, size);

	if (room && size)
		memcpy(room, bytes, size);
}

void buffer_text(struct buffer *buffer, const char *text)
{
	buffer_append(buffer, text, strlen(text));
}

void buffer_printf(struct buffer *buffer, const char *fmt, ...)
{
	va_list args;
	int size;

	va_start(args, fmt);
	size = vsnprintf(NULL, 0, fmt, args);
	va_end(args);
	if (size >= 0) {
		char *room = buffer_reserve(buffer, (size_t)size);

		if (!room)
			return;
		va_start(args, fmt);
		vsnprintf(room, (size_t)size + 1, fmt, args); /* the NUL overwrites the buffer's own */
		va_end(args);
	}
}
