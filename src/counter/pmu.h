/* SPDX-License-Identifier: Apache-2.0 */
/* pmu: performance monitoring units as the kernel describes them in /sys/bus/event_source/devices: their numbers, the fields of their
 * events, the aliases of those, and on which CPUs they count. Linux: Documentation/ABI/testing/sysfs-bus-event_source-devices-*. Plain
 * values; any thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/cpus.h"
#include "base/diag.h"

#define PMU_DEVICES "/sys/bus/event_source/devices"
#define PMU_MAX_UNITS 64
#define PMU_NAME_BYTES 64

/* One, or several of the same kind that are counted together: uncore_imc is uncore_imc_0, uncore_imc_1, ... */
struct pmu {
	uint32_t types[PMU_MAX_UNITS]; /* ascending */
	uint32_t nr_types;
	char name[PMU_NAME_BYTES];     /* of the one whose fields and aliases are read */
	struct cpus mask;              /* where it counts, for the whole machine; empty: anywhere, also for threads */
	bool is_of_cores;              /* it counts what all processors call by the same names, too */
};

struct pmu_event {
	uint64_t config[3];
	uint64_t period;
	double unit_scale;   /* 1: none is given */
	char unit[24];
};

void pmu_done(struct pmu *pmu);
/* -ENOENT: there is none of this name. */
MUST_CHECK int pmu_find(const char *name, struct diag *diag, struct pmu *ret_pmu);
/* Those of the cores, where a machine has cores of several kinds; else none: nr_types is 0. */
MUST_CHECK int pmu_find_kinds(struct diag *diag, struct pmu *ret_pmu);
/* By its number; -ENOENT: none has it. */
MUST_CHECK int pmu_of_type(uint32_t type, struct diag *diag, struct pmu *ret_pmu);
/* What stands between the slashes: "event=0x3c,umask=1", "cache-misses", "config=7". -EINVAL: it makes no sense; -ENOENT: the PMU has no
 * such field or alias. */
MUST_CHECK int pmu_parse(const struct pmu *pmu, const char *terms, struct diag *diag, struct pmu_event *ret_event);
