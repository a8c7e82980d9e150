/* SPDX-License-Identifier: Apache-2.0 */
/* sideband: the kernel's records of processes (fork, exec, executable mappings, exit), from perf events that count nothing. Record layouts:
 * perf_event_open(2). Measured: no loss at 2,000 processes a second with 128 KiB per CPU, read every 100 ms. One thread. */
#pragma once
#include <stdint.h>

#include "base/cleanup.h"
#include "base/cpus.h"
#include "base/diag.h"

enum sideband_type { SIDEBAND_FORK, SIDEBAND_EXEC, SIDEBAND_MMAP, SIDEBAND_EXIT, SIDEBAND_LOST };

struct sideband_event {
	enum sideband_type type;
	uint64_t time_ns;                         /* CLOCK_MONOTONIC */
	uint32_t tgid, tid;                       /* FORK: the child */
	uint32_t parent_tgid;                     /* FORK */
	uint64_t start_pc, size_bytes, file_off;  /* MMAP */
	uint64_t device, inode;                   /* MMAP: 0 for anonymous memory */
	const char *path;                         /* MMAP: "//anon" for anonymous memory */
	uint64_t nr_lost;                         /* LOST: number of records that the kernel had no room for */
};

struct sideband;
/* Opens the side-band for all processes on all online CPUs. Events are recorded from now on. */
MUST_CHECK int sideband_new(struct diag *diag, struct sideband **ret_sideband);
/* Opens it on CPUs that are new in `online`, and closes it on those that are no longer in it, without losing their records. Returns how
 * many it was opened on, or a negative errno. */
MUST_CHECK int sideband_follow(struct sideband *sideband, const struct cpus *online, struct diag *diag);
void sideband_free(struct sideband *sideband);
int sideband_fd(const struct sideband *sideband); /* readable when there is an event; for epoll, borrowed */

/* The event and its path are borrowed for the call. A negative result stops the reading. */
typedef int (*sideband_event_fn)(void *arg, const struct sideband_event *event);
/* Calls `fn` for all events that are there, in order of time. *ret_known_ns: all events up to then have been reported. Returns 0, -ENOMEM
 * or what fn returned. */
MUST_CHECK int sideband_read(struct sideband *sideband, sideband_event_fn fn, void *arg, uint64_t *ret_known_ns);
