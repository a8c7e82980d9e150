/* SPDX-License-Identifier: Apache-2.0 */
/* plain_text: texts of strangers (names, paths, messages that quote them) as text that cannot break a line, a folded stack or a terminal,
 * nor turn the writing direction: utf8_is_plain. For all that a person or a reader of lines gets; formats that can write any character
 * (JSON, pprof) keep the real text. */
#pragma once
#include "base/buffer.h"

/* Appends `text` as valid UTF-8 with '?' for what is not plain; `semicolon` stands for each ';'. */
void plain_text(struct buffer *buffer, const char *text, char semicolon);
/* The same where it stands: '?' for what is not plain, or no UTF-8. */
void plain_make(char *text);
