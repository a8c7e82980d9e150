/* SPDX-License-Identifier: Apache-2.0 */
/* texts: strings stored once each, identified by their offset. One thread adds; when all are added, any thread may read. */
#pragma once
#include <stdint.h>

#include "base/buffer.h"
#include "base/u64_map.h"

#define TEXTS_NONE UINT32_MAX

struct texts {
	struct buffer bytes; /* each with its NUL */
	struct u64_map by_hash;
};

#define TEXTS_INIT(max_bytes) ((struct texts){ .bytes = BUFFER_INIT((max_bytes) < UINT32_MAX ? (max_bytes) : UINT32_MAX - 1) })
void texts_done(struct texts *texts);
/* TEXTS_NONE: no memory, or the limit. */
uint32_t texts_add(struct texts *texts, const char *text);
static inline const char *texts_at(const struct texts *texts, uint32_t text) /* borrowed until the next one is added */
{
	return texts->bytes.data + text;
}
