/* SPDX-License-Identifier: Apache-2.0 */
/* set: the inside of struct sonde_counters, for the files of this folder. All fields are constant once sonde_counters_new has returned,
 * except those that the lock protects. */
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
	int *fds;              /* one per target and unit of its PMU; -1: that thread or CPU is gone */
	uint32_t nr_fds;
	uint32_t leader;       /* of its group: a number in the set; its own number when it is alone */
	bool reads_group;      /* a leader whose reading includes its members */
	bool without_excludes; /* its PMU cannot leave the hypervisor out */
	bool reads_lost;       /* its reading ends with the number of its lost overflows */
	bool without_lost;     /* the kernel cannot count them (before Linux 6.0) */
	bool is_user_only;     /* because counting the kernel is not permitted */
};

struct sonde_counters {
	struct counter *counters;
	uint32_t nr;
	uint64_t flags;
	uint32_t max_callers;
	struct counter_targets targets;
	struct diag diag;        /* why it could not be opened as requested */
	const char *_Atomic error; /* of the last call that failed; NULL: none */
	pthread_mutex_t lock;    /* protects what follows */
	struct reading *now;     /* the last reading of each counter */
	struct reading *base;    /* the reading at the last reset */
	struct rings rings;
	uint64_t nr_lost;        /* already reported */
	struct failure *failures;
};

/* Stores why a call failed, for sonde_counters_error. Call with the lock held. Returns `err`. */
__attribute__((format(printf, 3, 4))) int counters_fail(struct sonde_counters *set, int err, const char *fmt, ...);
void counters_forget_failures(struct sonde_counters *set);

/* Opens one of the set's counters, after its leader. The reason of a failure goes to its spec. 0, or -ENOMEM. */
MUST_CHECK int counter_open(struct sonde_counters *set, uint32_t i);
void counter_close(struct counter *counter);

static inline void counters_freep(struct sonde_counters **set)
{
	sonde_counters_free(*set);
}
