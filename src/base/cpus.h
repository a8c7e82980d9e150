/* SPDX-License-Identifier: Apache-2.0 */
/* cpus: the kernel's lists of CPUs in /sys/devices/system/cpu/{online,possible}, such as "0-3,8". */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"

#define CPUS_MAX 8192 /* CONFIG_NR_CPUS has never been more */

struct cpus {
	uint32_t *ids; /* ascending */
	uint32_t nr;
};

void cpus_done(struct cpus *cpus);
/* The highest possible CPU id plus 1: the number of values in a per-CPU map's element. */
MUST_CHECK int cpus_nr_possible(struct diag *diag, uint32_t *ret_nr);
/* `which` is "online" or "possible". 0; -EBADMSG: the list is malformed. */
MUST_CHECK int cpus_read(const char *which, struct diag *diag, struct cpus *ret_cpus);
/* The list of online CPUs, looked at often: a CPU that goes offline and returns between two looks is not seen, and the kernel does not
 * restore its events. Starts as zeros. */
struct cpus_watch {
	int fd;
	bool is_open;
	struct cpus online; /* as it was last */
	uint64_t hash;      /* of its text */
};

void cpus_watch_done(struct cpus_watch *watch);
/* The list as it is now, borrowed until the next call. 0 or a negative errno. */
MUST_CHECK int cpus_watch_look(struct cpus_watch *watch, const struct cpus **ret_online);
bool cpus_has(const struct cpus *cpus, uint32_t cpu);
MUST_CHECK int cpus_parse(const char *text, struct cpus *ret_cpus);
