/* SPDX-License-Identifier: Apache-2.0 */
/* set: the inside of struct sonde_counters, for the files of this folder. What is set here before sonde_counters_new returns does not
 * change afterwards, but what the lock is for. */
#pragma once
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <sonde/counter.h>

#include "base/diag.h"
#include "counter/ring.h"
#include "counter/spec.h"
#include "counter/targets.h"

struct reading {
	uint64_t value, enabled_ns, running_ns;
	int err;
};

struct counter {
	struct spec spec;      /* spec.err: why it is missing */
	int *fds;              /* one per place and unit of its PMU; -1: that thread or CPU is gone */
	uint32_t nr_fds;
	uint32_t leader;       /* of its group: a number in the set; its own when it is alone */
	bool reads_group;      /* a leader whose reading holds its members' */
	bool without_excludes; /* its PMU cannot leave the hypervisor out */
	bool reads_lost;       /* its reading ends with how many of its overflows found no room */
	bool without_lost;     /* not before Linux 6.0 */
	bool is_user_only;     /* because the kernel may not be counted */
};

struct sonde_counters {
	struct counter *counters;
	uint32_t nr;
	uint64_t flags;
	uint32_t max_callers;
	struct counter_targets targets;
	struct diag diag;        /* why it could not be opened as it was asked for */
	const char *_Atomic error; /* of the last call that failed since; NULL: none */
	pthread_mutex_t lock;    /* for what follows */
	struct reading *now;     /* the last one, of each counter */
	struct reading *base;    /* at the last reset */
	struct rings rings;
	uint64_t nr_lost;        /* that have been told of */
	struct failure *failures;
};

/* Remembers why a call failed, for sonde_counters_error. With the lock held. Gives `err` back. */
__attribute__((format(printf, 3, 4))) int counters_fail(struct sonde_counters *set, int err, const char *fmt, ...);
void counters_forget_failures(struct sonde_counters *set);

/* Opens one of the set's counters, its leader before; the reason of a failure is left in its spec. 0, or -ENOMEM. */
MUST_CHECK int counter_open(struct sonde_counters *set, uint32_t i);
void counter_close(struct counter *counter);

static inline void counters_freep(struct sonde_counters **set)
{
	sonde_counters_free(*set);
}
