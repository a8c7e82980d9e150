/* SPDX-License-Identifier: Apache-2.0 */
/* json_read: a reader of JSON (RFC 8259) that builds no tree. The caller walks through the text, takes what it knows and skips the rest, so
 * a file needs no memory beyond itself. To return to a position later, copy the struct. A failure is sticky. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"

#define JSON_MAX_DEPTH 256

struct json_reader {
	const char *pos, *end; /* borrowed */
	bool fresh;            /* nothing was read yet in the innermost list or object */
	const char *bad;       /* NULL, or the error at `pos`, in words */
};

struct json_reader json_reader_of(const char *text, size_t size);
void json_fail(struct json_reader *r, const char *why); /* keeps the first error */

/* The kind of the value that begins here: '{', '[', '"', '0' (a number), 't', 'f', 'n'; 0: no value begins so. */
char json_peek(struct json_reader *r);
/* Enters a list ('[') or object ('{'). If there is none, fails and returns false. To leave it, read all of it. */
bool json_enter(struct json_reader *r, char bracket);
/* Is there another element in the current list? The caller reads or skips it. False at the list's end, or failed. */
bool json_next(struct json_reader *r);
/* The same for objects; stores the key in `ret_key`, NUL-terminated (NULs in it become '?'). */
bool json_next_key(struct json_reader *r, struct buffer *ret_key);
void json_skip(struct json_reader *r); /* a value of any kind */
/* Replaces the buffer's contents by a text in UTF-8; halves of surrogate pairs become U+FFFD. Fails if there is no room for it. */
void json_read_text(struct json_reader *r, struct buffer *ret_text);
/* Read whole numbers; in quotes also, and there also in hexadecimal ("0x1f"). Return 0 if failed. */
uint64_t json_read_u64(struct json_reader *r);
int64_t json_read_i64(struct json_reader *r);
/* Reads a number with its fraction and exponent, times 10^nr_decimals. What is behind that is left out, as are digits beyond 18. Returns 0
 * if failed. */
int64_t json_read_decimal(struct json_reader *r, int nr_decimals);
bool json_read_bool(struct json_reader *r);
/* Skips a null, and returns true if there was one. */
bool json_take_null(struct json_reader *r);
/* Fails unless only blanks follow. */
void json_end(struct json_reader *r);
