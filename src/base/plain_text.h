/* SPDX-License-Identifier: Apache-2.0 */
/* plain_text: makes untrusted text (names, paths, messages that quote them) safe to print: it cannot break a line, a folded stack or a
 * terminal, nor change the writing direction (utf8_is_plain). For everything that people or line-based tools read. Formats that can hold
 * any character (JSON, pprof) keep the real text. */
#pragma once
#include "base/buffer.h"

/* Appends `text` as valid UTF-8, with '?' for what is not plain and `semicolon` for each ';'. */
void plain_text(struct buffer *buffer, const char *text, char semicolon);
/* The same in place: '?' for what is not plain, or not UTF-8. */
void plain_make(char *text);
/* Copies `size` bytes up to a NUL, as plain_make writes them, and a NUL. What finds no room is cut between characters, and "..." shows it.
 * `room`: of `to`, at least 4. */
void plain_copy(char *to, size_t room, const char *text, size_t size);
