// SPDX-License-Identifier: Apache-2.0
#include "codec/protobuf_read.h"

#define MAX_FIELD ((1u << 29) - 1)

/* Most varints have one byte: types, small numbers, lengths. Bits above 64 are dropped, as the specification says. */
static uint64_t read_varint(struct reader *r)
{
	if (r->pos < r->end && *r->pos < 0x80)
		return *r->pos++;
	return reader_uleb(r);
}

bool protobuf_next(struct reader *message, struct protobuf_field *ret_field)
{
	struct protobuf_field field = { 0 };
	uint64_t tag;

	if (!reader_left(message))
		return false;
	tag = read_varint(message);
	field.type = tag & 7;
	field.number = (uint32_t)(tag >> 3);
	if (!field.number || tag >> 3 > MAX_FIELD)
		reader_fail(message);
	switch (field.type) {
	case PROTOBUF_VARINT:
		field.value = read_varint(message);
		break;
	case PROTOBUF_FIXED64:
		field.value = reader_u64(message);
		break;
	case PROTOBUF_BYTES:
		field.bytes = reader_sub(message, read_varint(message));
		break;
	case PROTOBUF_FIXED32:
		field.value = reader_u32(message);
		break;
	default: /* groups, which are obsolete, and invalid types */
		reader_fail(message);
	}
	if (message->bad)
		return false;
	*ret_field = field;
	return true;
}

/* Returns a number that is not packed, once. */
static bool take_single(struct protobuf_field *field, uint32_t type, uint64_t *ret_value)
{
	if (field->type != type)
		return false;
	*ret_value = field->value;
	field->type = PROTOBUF_USED_UP;
	return true;
}

bool protobuf_next_varint(struct protobuf_field *field, uint64_t *ret_value)
{
	uint64_t value;

	if (field->type != PROTOBUF_BYTES)
		return take_single(field, PROTOBUF_VARINT, ret_value);
	if (!reader_left(&field->bytes))
		return false;
	value = read_varint(&field->bytes);
	if (field->bytes.bad)
		return false;
	*ret_value = value;
	return true;
}

bool protobuf_next_fixed64(struct protobuf_field *field, uint64_t *ret_value)
{
	uint64_t value;

	if (field->type != PROTOBUF_BYTES)
		return take_single(field, PROTOBUF_FIXED64, ret_value);
	if (!reader_left(&field->bytes))
		return false;
	value = reader_u64(&field->bytes);
	if (field->bytes.bad)
		return false;
	*ret_value = value;
	return true;
}
