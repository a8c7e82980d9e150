/* SPDX-License-Identifier: Apache-2.0 */
/* window_part: which part of a window's profile is sent, where the whole is too large for a destination: a node of the tree that halves
 * it again and again. The same window has the same parts each time. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "send/push.h"

struct window_part {
	uint32_t number, nr_parts; /* 0 of 1: the whole */
};

void window_part_halve(struct window_part *part); /* goes to its first half */
/* Goes to what follows it. False: it was the last. */
bool window_part_next(struct window_part *part);
/* The whole has the window's id. A part has it with its number in the tree, whose root is 1, added (exclusive or) to the bytes 8 to 11,
 * big-endian; the last four are for the profiles in a message. */
void window_part_id(const struct window_part *part, const uint8_t window_id[PUSH_ID_BYTES], uint8_t ret_id[PUSH_ID_BYTES]);
