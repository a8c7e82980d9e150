/* SPDX-License-Identifier: Apache-2.0 */
/* memory: the measurements of memory that is allocated. */
#pragma once
#include <inttypes.h>

#include "engine/measurement.h"

extern const struct measurement_type leak_measurement;
extern const struct measurement_type kernel_leak_measurement; /* of the kernel itself */
extern const struct measurement_type alloc_measurement;	/* who allocates, and what of it is not free */
extern const struct measurement_type alloc_windows_measurement; /* the same, estimated from short windows */
extern const struct measurement_type resident_measurement; /* whose resident memory grows */

/* A line of a summary: the count, and what was counted; nothing for 0. */
static inline void memory_write_count(struct buffer *lines, uint64_t count, const char *text)
{
	if (count)
		buffer_printf(lines, "%" PRIu64 " %s\n", count, text);
}
