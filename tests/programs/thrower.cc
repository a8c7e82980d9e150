// SPDX-License-Identifier: Apache-2.0
/* thrower SECONDS: main > throw_loop calls itself down 20 deep() to thrower, which throws; throw_loop catches. Every fourth deep() has
 * something to destroy on the way. A good part of the time is spent in the unwinder of the language. */
#include "known.h"

static volatile unsigned long sink;

struct Guard {
	unsigned long n;
	explicit Guard(unsigned long value) : n(value) {}
	~Guard() { sink = n; }
};

extern "C" {

KNOWN unsigned long thrower(unsigned long n)
{
	unsigned long state = n + 88172645463325252UL;

	for (unsigned i = 0; i < 10000; i++) {
		state ^= state << 13;
		state ^= state >> 7;
	}
	sink = state;
	if (state)
		throw n;
	return n;
}

KNOWN unsigned long deep(unsigned n)
{
	volatile unsigned char room[24];
	unsigned long value;

	room[n] = 1;
	if (n % 4 == 1) {
		Guard guard(n);

		value = deep(n - 1);
	} else {
		value = n ? deep(n - 1) : thrower(n + 1);
	}
	return value + room[n];
}

KNOWN unsigned long throw_loop()
{
	unsigned long nr = 0;

	ENTER();
	known_print();
	known_ready();
	while (!known_done) {
		try {
			nr += deep(19);
		} catch (unsigned long value) {
			nr += value;
		}
	}
	return nr;
}
}

int main(int argc, char **argv)
{
	(void)argc;
	ENTER();
	known_start(argv[1]);
	sink = throw_loop();
	return 0;
}
