/* SPDX-License-Identifier: Apache-2.0 */
/* reader: a cursor over untrusted bytes with a sticky failure, so that callers may check once at the end. Little-endian (like all our
 * targets). Borrows the bytes; any thread may own one. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct reader {
	const uint8_t *pos, *end;
	bool bad; /* a read went past the end, or a LEB128 was too long; later reads return 0 */
};

static inline struct reader reader_of(const void *bytes, size_t size)
{
	return (struct reader){ .pos = bytes, .end = (const uint8_t *)bytes + size };
}

static inline size_t reader_left(const struct reader *r)
{
	return (size_t)(r->end - r->pos);
}

static inline void reader_fail(struct reader *r)
{
	r->bad = true;
	r->pos = r->end; /* later reads fail too, so loops over the reader end */
}

static inline void reader_copy(struct reader *r, void *to, size_t size)
{
	if (reader_left(r) < size) {
		memset(to, 0, size);
		reader_fail(r);
		return;
	}
	memcpy(to, r->pos, size);
	r->pos += size;
}

static inline uint8_t reader_u8(struct reader *r)
{
	uint8_t value;

	reader_copy(r, &value, sizeof(value));
	return value;
}

static inline uint16_t reader_u16(struct reader *r)
{
	uint16_t value;

	reader_copy(r, &value, sizeof(value));
	return value;
}

static inline uint32_t reader_u32(struct reader *r)
{
	uint32_t value;

	reader_copy(r, &value, sizeof(value));
	return value;
}

static inline uint64_t reader_u64(struct reader *r)
{
	uint64_t value;

	reader_copy(r, &value, sizeof(value));
	return value;
}

static inline void reader_skip(struct reader *r, size_t size)
{
	if (reader_left(r) < size)
		reader_fail(r);
	else
		r->pos += size;
}

/* Returns a reader over the next `size` bytes, and skips them here. If there are fewer, both readers fail. */
static inline struct reader reader_sub(struct reader *r, size_t size)
{
	struct reader sub = { .pos = r->pos, .end = r->pos };

	if (reader_left(r) < size) {
		reader_fail(r);
		sub.bad = true;
		return sub;
	}
	sub.end += size;
	r->pos += size;
	return sub;
}

/* LEB128 (DWARF 5 section 7.6), at most 10 bytes. */
uint64_t reader_uleb(struct reader *r);
int64_t reader_sleb(struct reader *r);
/* Reads a text and its NUL; borrowed from the bytes. Without a NUL returns "", and the reader fails. */
const char *reader_text(struct reader *r);
