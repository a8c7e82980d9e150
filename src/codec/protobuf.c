// SPDX-License-Identifier: Apache-2.0
#include "codec/protobuf.h"

#include <string.h>

#define VARINT_MAX_BYTES 10

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2 };

static size_t encode_varint(uint64_t value, uint8_t bytes[VARINT_MAX_BYTES])
{
	size_t size = 0;

	while (value >= 0x80) {
		bytes[size++] = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	bytes[size++] = (uint8_t)value;
	return size;
}

void protobuf_varint(struct buffer *buffer, uint64_t value)
{
	uint8_t bytes[VARINT_MAX_BYTES];

	buffer_append(buffer, bytes, encode_varint(value, bytes));
}

static void write_tag(struct buffer *buffer, uint32_t field, enum wire_type type)
{
	protobuf_varint(buffer, (uint64_t)field << 3 | type);
}

void protobuf_u64(struct buffer *buffer, uint32_t field, uint64_t value)
{
	if (!value)
		return;
	write_tag(buffer, field, WIRE_VARINT);
	protobuf_varint(buffer, value);
}

void protobuf_fixed64(struct buffer *buffer, uint32_t field, uint64_t value)
{
	uint8_t bytes[8];

	if (!value)
		return;
	for (unsigned int i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(value >> 8 * i);
	write_tag(buffer, field, WIRE_FIXED64);
	buffer_append(buffer, bytes, sizeof(bytes));
}

void protobuf_bytes(struct buffer *buffer, uint32_t field, const void *bytes, size_t size)
{
	write_tag(buffer, field, WIRE_BYTES);
	protobuf_varint(buffer, size);
	buffer_append(buffer, bytes, size);
}

size_t protobuf_open(struct buffer *buffer, uint32_t field)
{
	write_tag(buffer, field, WIRE_BYTES);
	buffer_reserve(buffer, 1); /* one byte for the length, usually enough; if not, protobuf_close moves the content */
	return buffer->size;
}

void protobuf_close(struct buffer *buffer, size_t opened)
{
	uint8_t length[VARINT_MAX_BYTES];
	size_t size = buffer->size - opened, length_size = encode_varint(size, length);

	if (length_size > 1)
		buffer_reserve(buffer, length_size - 1);
	if (buffer->err)
		return;
	memmove(buffer->data + opened - 1 + length_size, buffer->data + opened, size);
	memcpy(buffer->data + opened - 1, length, length_size);
}
