/* SPDX-License-Identifier: Apache-2.0 */
/* told: what is said of a count that grows: at 1, 10, 100, ... Under a bound that is reached it grows all the time. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* *told: the next count at which it is said; 1 at first. */
static inline bool is_told_at(uint64_t nr, uint64_t *told)
{
	bool is_now = nr >= *told;

	while (*told <= nr)
		*told *= 10;
	return is_now;
}
