/* SPDX-License-Identifier: Apache-2.0 */
/* protobuf: a writer of the wire format (protobuf.dev, "Encoding"), for files and network. Errors are the buffer's. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

/* Fields of a message. As in proto3, a number that is 0 is omitted; empty texts and bytes are written. Signed numbers (int32, int64) are
 * passed as the uint64_t they sign-extend to. */
void protobuf_u64(struct buffer *buffer, uint32_t field, uint64_t value);
void protobuf_fixed64(struct buffer *buffer, uint32_t field, uint64_t value);
void protobuf_bytes(struct buffer *buffer, uint32_t field, const void *bytes, size_t size);

/* A message inside the message, or packed numbers: all that is appended between the two calls. They may be nested. */
size_t protobuf_open(struct buffer *buffer, uint32_t field);
void protobuf_close(struct buffer *buffer, size_t opened);
/* A bare number, for packed fields. */
void protobuf_varint(struct buffer *buffer, uint64_t value);
