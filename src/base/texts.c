// SPDX-License-Identifier: Apache-2.0
#include "base/texts.h"

#include <string.h>

void texts_done(struct texts *texts)
{
	buffer_done(&texts->bytes);
	u64_map_done(&texts->by_hash);
}

uint32_t texts_add(struct texts *texts, const char *text)
{
	size_t size = strlen(text) + 1;
	uint64_t hash = hash_bytes(text, size, 0);
	uint32_t cursor = 0, *known, at = (uint32_t)texts->bytes.size;

	while ((known = u64_map_each(&texts->by_hash, hash, &cursor))) {
		if (!strcmp(texts_at(texts, *known), text))
			return *known;
	}
	buffer_append(&texts->bytes, text, size);
	return texts->bytes.err || u64_map_add(&texts->by_hash, hash, at) ? TEXTS_NONE : at;
}
