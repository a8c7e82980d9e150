// SPDX-License-Identifier: Apache-2.0
/* A native function of beam_spin.erl, which runs for the given number of microseconds. */
#include <time.h>

#include <erl_nif.h>

static long now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

__attribute__((noinline)) long native_spin(long us)
{
	long end = now_us() + us, nr = 0;

	while (now_us() < end)
		nr++;
	return nr;
}

static ERL_NIF_TERM native(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
	int us = 0;

	(void)argc;
	enif_get_int(env, argv[0], &us);
	enif_consume_timeslice(env, 5); /* percent */
	return enif_make_long(env, native_spin(us));
}

static ErlNifFunc functions[] = { { "native", 1, native, 0 } };

ERL_NIF_INIT(beam_spin, functions, NULL, NULL, NULL, NULL)
