/* SPDX-License-Identifier: Apache-2.0 */
/* json_read: a reader of JSON (RFC 8259) that makes no tree: the caller walks through the text, taking what it knows and skipping the rest,
 * so a file takes no memory beyond itself. A place can be kept and gone back to (it is a value: copy the struct, but for `text`). A failure
 * is sticky. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"

#define JSON_MAX_DEPTH 256

struct json_reader {
	const char *pos, *end; /* borrowed */
	bool fresh;            /* nothing was read yet of the list or object that was entered last */
	const char *bad;       /* NULL, or what was wrong at `pos`, in words */
};

struct json_reader json_reader_of(const char *text, size_t size);
void json_fail(struct json_reader *r, const char *why); /* the first stands */

/* What begins here: '{', '[', '"', '0' (a number), 't', 'f', 'n', or 0: nothing that may. */
char json_peek(struct json_reader *r);
/* Goes into a list ('[') or object ('{'). False (and failed) when there is none. Leave it by having read all of it. */
bool json_enter(struct json_reader *r, char bracket);
/* Is there another element in the list that was entered? The caller reads or skips it. False behind the list's end, or failed. */
bool json_next(struct json_reader *r);
/* The same for objects; the key is put into `ret_key`, NUL-terminated (NULs in it become '?'). */
bool json_next_key(struct json_reader *r, struct buffer *ret_key);
void json_skip(struct json_reader *r); /* a value of any kind */
/* A text replaces what is in the buffer, as UTF-8; halves of surrogate pairs become U+FFFD. Without room for it the reader has failed, too.
 */
void json_read_text(struct json_reader *r, struct buffer *ret_text);
/* Whole numbers, also in quotes, there also in hexadecimal ("0x1f"). 0 when failed. */
uint64_t json_read_u64(struct json_reader *r);
int64_t json_read_i64(struct json_reader *r);
bool json_read_bool(struct json_reader *r);
/* Takes a null that stands here. */
bool json_take_null(struct json_reader *r);
/* Is what stands behind the value blank? Else failed. */
void json_end(struct json_reader *r);
