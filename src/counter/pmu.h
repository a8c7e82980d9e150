/* SPDX-License-Identifier: Apache-2.0 */
/* pmu: performance monitoring units as the kernel describes them in /sys/bus/event_source/devices: their numbers, the fields and aliases
 * of their events, and the CPUs that they count on. Linux: Documentation/ABI/testing/sysfs-bus-event_source-devices-*. Plain values; any
 * thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/cpus.h"
#include "base/diag.h"

#define PMU_DEVICES "/sys/bus/event_source/devices"
#define PMU_MAX_UNITS 64
#define PMU_NAME_BYTES 64

/* One PMU, or several of the same kind that are counted together: uncore_imc is uncore_imc_0, uncore_imc_1, ... */
struct pmu {
	uint32_t types[PMU_MAX_UNITS]; /* ascending */
	uint32_t nr_types;
	char name[PMU_NAME_BYTES];     /* of the PMU whose fields and aliases are read */
	struct cpus mask;              /* the CPUs that count, for the whole machine; empty: all CPUs, and threads too */
	bool is_of_cores;              /* it also counts the events that all processors have under common names */
};

struct pmu_event {
	uint64_t config[3];
	uint64_t period;
	double unit_scale;   /* 1: none given */
	char unit[24];
};

void pmu_done(struct pmu *pmu);
/* -ENOENT: no PMU of this name. */
MUST_CHECK int pmu_find(const char *name, struct diag *diag, struct pmu *ret_pmu);
/* The PMUs of cores, where a machine has several kinds of cores; else none: nr_types is 0. */
MUST_CHECK int pmu_find_kinds(struct diag *diag, struct pmu *ret_pmu);
/* Finds a PMU by its number; -ENOENT: none has it. */
MUST_CHECK int pmu_of_type(uint32_t type, struct diag *diag, struct pmu *ret_pmu);
/* Parses the text between the slashes: "event=0x3c,umask=1", "cache-misses", "config=7". -EINVAL: not valid; -ENOENT: the PMU has no such
 * field or alias. */
MUST_CHECK int pmu_parse(const struct pmu *pmu, const char *terms, struct diag *diag, struct pmu_event *ret_event);
