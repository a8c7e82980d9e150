// SPDX-License-Identifier: Apache-2.0
#include "session/modes.h"

#include "events/events.h"
#include "memory/memory.h"
#include "offcpu/offcpu.h"
#include "session/counting.h"
#include "session/sampling.h"

const struct measurement_type *measurement_type_of(enum sonde_mode mode)
{
	static const struct measurement_type *const types[] = {
		[SONDE_ON_CPU] = &sampling_measurement, [SONDE_OFF_CPU] = &waiting_measurement,
		[SONDE_WALL] = &wall_measurement,	[SONDE_RUN_QUEUE] = &runq_measurement,
		[SONDE_COUNT] = &counting_measurement,	[SONDE_FILES] = &opens_measurement,
		[SONDE_IO] = &transfers_measurement,	[SONDE_TRACE] = &tracing_measurement,
		[SONDE_LEAK] = &leak_measurement,	[SONDE_ALLOC] = &alloc_measurement,
		[SONDE_RESIDENT] = &resident_measurement, [SONDE_LEAK_KERNEL] = &kernel_leak_measurement,
		[SONDE_TRACE_STACKS] = &traced_stacks_measurement, [SONDE_ALLOC_WINDOWS] = &alloc_windows_measurement,
	};

	return (unsigned int)mode < ARRAY_SIZE(types) ? types[mode] : NULL;
}
