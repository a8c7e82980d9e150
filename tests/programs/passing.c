// SPDX-License-Identifier: Apache-2.0
/* passing MILLISECONDS: main;middle;spin for that much CPU time, then ends. 200 more functions give it an unwind table of some size. A
 * test changes its serial number in copies of the program. */
#include <stdlib.h>
#include <time.h>

#include "known.h"

#define FUNCTION(i, name) KNOWN unsigned long name##_##i(unsigned long seed, unsigned long *to) \
	{ \
		unsigned long room[i + 3]; \
		for (unsigned j = 0; j < i + 3; j++) \
			room[j] = seed * j; \
		*to = room[seed % (i + 3)]; \
		return seed ^ room[0]; \
	}
#define TEN(name) FUNCTION(0, name) FUNCTION(1, name) FUNCTION(2, name) FUNCTION(3, name) FUNCTION(4, name) \
	FUNCTION(5, name) FUNCTION(6, name) FUNCTION(7, name) FUNCTION(8, name) FUNCTION(9, name)
TEN(a) TEN(b) TEN(c) TEN(d) TEN(e) TEN(f) TEN(g) TEN(h) TEN(i) TEN(j) TEN(k) TEN(l) TEN(m) TEN(n) TEN(o) TEN(p) TEN(q) TEN(r) TEN(s) TEN(t)

volatile const char serial[24] = "serial number: 00000000";
static volatile unsigned long sink;

KNOWN static void spin(long ms)
{
	struct timespec now;

	do {
		for (int i = 0; i < 20000; i++)
			sink += (unsigned long)i;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	} while (now.tv_sec * 1000 + now.tv_nsec / 1000000 < ms);
	ENTER();
}

KNOWN static void middle(long ms)
{
	spin(ms);
	ENTER();
}

int main(int argc, char **argv)
{
	middle(strtol(argc > 1 ? argv[1] : "5", NULL, 10) + (serial[0] == 'x'));
	return 0;
}
