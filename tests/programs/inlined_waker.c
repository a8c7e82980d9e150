/* SPDX-License-Identifier: Apache-2.0 */
/* inlined_waker SECONDS: one thread writes blocks into a pipe that is too small for them, another reads them. Each wakes the other with
 * the same call in which it waits itself. The call is in a function inlined into an inlined function. Built with -g. */
#include <pthread.h>

#include "known.h"

#define BLOCK_BYTES 262144 /* a pipe holds 65536 */
#define INLINED static inline __attribute__((always_inline))

static unsigned char block_in[BLOCK_BYTES], block_out[BLOCK_BYTES];
static int ends[2];
static volatile unsigned sink;

#define ENTER_AT_FIRST(turn) do { if (!(turn)) ENTER(); } while (0)

INLINED void say(unsigned turn)
{
	if (!turn)
		known_print();
}

INLINED unsigned mix(const unsigned char *bytes, unsigned sum)
{
	for (unsigned i = 0; i < BLOCK_BYTES; i++)
		sum = sum * 33 + bytes[i];
	return sum;
}

INLINED void put(unsigned turn)
{
	ENTER_AT_FIRST(turn);
	say(turn);
	for (size_t done = 0; done < BLOCK_BYTES;) {
		ssize_t nr = write(ends[1], block_out + done, BLOCK_BYTES - done);

		if (nr <= 0)
			exit(1);
		done += (size_t)nr;
	}
}

INLINED void get(unsigned turn)
{
	ENTER_AT_FIRST(turn);
	say(turn);
	for (size_t done = 0; done < BLOCK_BYTES;) {
		ssize_t nr = read(ends[0], block_in + done, BLOCK_BYTES - done);

		if (nr <= 0)
			exit(1);
		done += (size_t)nr;
	}
}

INLINED void push(unsigned turn)
{
	ENTER_AT_FIRST(turn);
	sink += mix(block_out, turn);
	put(turn);
}

INLINED void pull(unsigned turn)
{
	ENTER_AT_FIRST(turn);
	get(turn);
	sink += mix(block_in, turn);
}

KNOWN static void feed(unsigned turn)
{
	ENTER_AT_FIRST(turn);
	push(turn);
	sink++;
}

KNOWN static void eat(unsigned turn)
{
	ENTER_AT_FIRST(turn);
	pull(turn);
	sink++;
}

KNOWN static void *feeder(void *arg)
{
	ENTER();
	prctl(PR_SET_NAME, "feeder");
	for (unsigned turn = 0; arg; turn++)
		feed(turn);
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	ENTER();
	known_start(argv[1]);
	if (argc < 2 || pipe(ends) || pthread_create(&thread, NULL, feeder, argv))
		return 1;
	prctl(PR_SET_NAME, "eater");
	for (unsigned turn = 0; !known_done; turn++)
		eat(turn);
	return 0; /* whatever the feeder waits for */
}
