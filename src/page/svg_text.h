/* SPDX-License-Identifier: Apache-2.0 */
/* svg_text: writes names and numbers as XML content. */
#pragma once
#include <stdint.h>

#include "base/buffer.h"

/* Writes valid UTF-8 that XML allows, with '?' for characters that are not plain. At most `max_columns` wide; a cut text ends in "..".
 * Characters outside ASCII count for two. */
void svg_text(struct buffer *buffer, const char *text, uint32_t max_columns);
/* "1,234,567". */
void svg_number(struct buffer *buffer, int64_t value);
