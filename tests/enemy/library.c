// SPDX-License-Identifier: Apache-2.0
/* A library of the enemy suite, built twice. The builds differ only in function names and frame sizes (PREFIX, ROOM). */
#include "library.h"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define KEPT __attribute__((noipa))

KEPT static void JOIN(PREFIX, _leaf)(const struct library_hooks *hooks, unsigned turns, unsigned seed)
{
	volatile unsigned char room[ROOM];

	hooks->note('E', __func__);
	room[seed % ROOM] = 1;
	for (volatile unsigned i = 0; i < turns; i++)
		;
	room[seed % ROOM]++;
	hooks->note('L', "");
}

KEPT static void JOIN(PREFIX, _entry)(const struct library_hooks *hooks, unsigned turns, unsigned seed)
{
	volatile unsigned char room[2 * ROOM];

	hooks->note('E', __func__);
	room[seed % ROOM] = 1;
	for (volatile unsigned i = 0; i < turns / 4; i++)
		;
	hooks->note('C', "");
	JOIN(PREFIX, _leaf)(hooks, turns, seed);
	hooks->note('B', "1");
	room[seed % ROOM]++;
	hooks->note('L', "");
}

const library_fn library_entry = JOIN(PREFIX, _entry);
