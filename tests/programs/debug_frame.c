// SPDX-License-Identifier: Apache-2.0
/* Built without .eh_frame: its call frame information is in .debug_frame only. */
#include "debug_frame.h"

int call_with_debug_frame(int (*fn)(int), int value)
{
	volatile int room[37];

	room[value & 31] = value;
	room[value & 31] += fn(room[value & 31]);
	return room[value & 31];
}
