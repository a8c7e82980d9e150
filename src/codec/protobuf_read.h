/* SPDX-License-Identifier: Apache-2.0 */
/* protobuf_read: a reader of the wire format (protobuf.dev, "Encoding"), for files and network. It knows no schema: the caller reads field
 * after field and takes those it knows. It copies and allocates nothing. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/reader.h"

enum protobuf_type { PROTOBUF_VARINT = 0, PROTOBUF_FIXED64 = 1, PROTOBUF_BYTES = 2, PROTOBUF_FIXED32 = 5, PROTOBUF_USED_UP = 8 };

struct protobuf_field {
	uint32_t number;
	uint32_t type;       /* enum protobuf_type */
	uint64_t value;      /* of a number; signed ones are sign-extended */
	struct reader bytes; /* of a text, bytes, a message or packed numbers; borrowed; empty for others */
};

/* Reads the next field. False at the end, and if the message is malformed: then message->bad is set. */
bool protobuf_next(struct reader *message, struct protobuf_field *ret_field);
/* Reads the next number of a repeated field, packed or not; PROTOBUF_VARINT is the type of packed ones. False: no more, or malformed: then
 * field->bytes.bad is set. */
bool protobuf_next_varint(struct protobuf_field *field, uint64_t *ret_value);
bool protobuf_next_fixed64(struct protobuf_field *field, uint64_t *ret_value);
