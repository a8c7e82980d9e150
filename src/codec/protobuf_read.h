/* SPDX-License-Identifier: Apache-2.0 */
/* protobuf_read: a reader of the wire format (protobuf.dev, "Encoding"), for files and network. It knows no schema: the caller asks for
 * field after field and takes those that it knows. Nothing is copied, nothing allocated. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/reader.h"

enum protobuf_type { PROTOBUF_VARINT = 0, PROTOBUF_FIXED64 = 1, PROTOBUF_BYTES = 2, PROTOBUF_FIXED32 = 5, PROTOBUF_USED_UP = 8 };

struct protobuf_field {
	uint32_t number;
	uint32_t type;       /* enum protobuf_type */
	uint64_t value;      /* of a number; signed ones are sign-extended already */
	struct reader bytes; /* of a text, bytes, a message or packed numbers; borrowed, empty for others */
};

/* The next field. False at the end, and where the message is malformed: then message->bad. */
bool protobuf_next(struct reader *message, struct protobuf_field *ret_field);
/* The next number of a repeated field, packed or not; PROTOBUF_VARINT is the type of packed ones. False: no more, or malformed: then
 * field->bytes.bad. */
bool protobuf_next_varint(struct protobuf_field *field, uint64_t *ret_value);
bool protobuf_next_fixed64(struct protobuf_field *field, uint64_t *ret_value);
