// SPDX-License-Identifier: Apache-2.0
#include "agent/window_part.h"

#include <string.h>

void window_part_halve(struct window_part *part)
{
	part->number *= 2;
	part->nr_parts *= 2;
}

bool window_part_next(struct window_part *part)
{
	while (part->number & 1) {
		part->number /= 2;
		part->nr_parts /= 2;
	}
	if (part->nr_parts == 1)
		return false;
	part->number++;
	return true;
}

void window_part_id(const struct window_part *part, const uint8_t window_id[PUSH_ID_BYTES], uint8_t ret_id[PUSH_ID_BYTES])
{
	uint32_t node = part->nr_parts > 1 ? part->nr_parts + part->number : 0;

	memcpy(ret_id, window_id, PUSH_ID_BYTES);
	for (int i = 0; i < 4; i++)
		ret_id[8 + i] ^= (uint8_t)(node >> (24 - 8 * i));
}
