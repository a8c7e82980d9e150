/* SPDX-License-Identifier: Apache-2.0 */
/* svg_text: names and numbers as content of XML. */
#pragma once
#include <stdint.h>

#include "base/buffer.h"

/* Valid UTF-8 that XML allows; '?' for what is not plain. At most `max_columns` wide, of which ".." are the last two when it is cut; what
 * is not ASCII counts for two. */
void svg_text(struct buffer *buffer, const char *text, uint32_t max_columns);
/* "1,234,567". */
void svg_number(struct buffer *buffer, int64_t value);
