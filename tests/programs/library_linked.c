// SPDX-License-Identifier: Apache-2.0
/* The linked half of `library`. */
#include "library.h"

KNOWN unsigned lib_relay(unsigned (*callback)(void), void (*push)(const char *name))
{
	volatile char room[333];

	push(__func__);
	room[3] = 4;
	return callback() + (unsigned)room[3];
}
