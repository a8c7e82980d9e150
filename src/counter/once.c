// SPDX-License-Identifier: Apache-2.0
/* Counts one event during a function. */
#include <errno.h>
#include <stdio.h>

#include "counter/set.h"

static int count_around(struct sonde_counters *counters, int (*function)(void *arg), void *arg, struct sonde_count *ret_count)
{
	struct sonde_count count;
	int result, err = sonde_counters_start(counters);

	if (err)
		return err;
	result = function(arg);
	err = sonde_counters_stop(counters);
	if (!err)
		err = sonde_counters_read(counters, &count, 1);
	if (err)
		return err;
	*ret_count = count;
	return result;
}

/* Hands the set's reason to the caller. */
static int tell(const struct sonde_counters *counters, int result, char *error, size_t error_bytes)
{
	if (result < 0 && error && error_bytes)
		snprintf(error, error_bytes, "%s", sonde_counters_error(counters));
	return result;
}

int sonde_count_function(const char *event, int (*function)(void *arg), void *arg, struct sonde_count *ret_count, char *error,
			 size_t error_bytes)
{
	const struct sonde_counter_options options = { .size = sizeof(options), .names = event, .flags = SONDE_COUNTER_SCALE };
	CLEANUP(counters_freep) struct sonde_counters *counters = NULL;
	int err = sonde_counters_new(&options, &counters);

	if (!err && sonde_counters_nr(counters) != 1)
		err = counters_fail(counters, -EINVAL, "'%s' is not one event", event);
	return tell(counters, err ? err : count_around(counters, function, arg, ret_count), error, error_bytes);
}

int sonde_count_function_config(uint32_t type, uint64_t config, int (*function)(void *arg), void *arg, struct sonde_count *ret_count,
				char *error, size_t error_bytes)
{
	CLEANUP(counters_freep) struct sonde_counters *counters = NULL;
	int err = sonde_counters_open(type, config, 0, -1, SONDE_COUNTER_SCALE, &counters);

	return tell(counters, err ? err : count_around(counters, function, arg, ret_count), error, error_bytes);
}
