/* SPDX-License-Identifier: Apache-2.0 */
/* identities: the labels of processes (process/process_labels.h) at each moment. A process is read while it lives: after an exec, or when
 * a sample of it arrives. What was read belongs to the program that ran then: the times of forks and execs, from the side-band, are its
 * borders. A sample from the other side of a border, or of a process that had ended before it could be read, has no labels rather than
 * those of another. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "process/process_labels.h"
#include "proxy/proxy.h"

struct identities;
/* Borrows `proxy` (NULL: none); copies `names`. NULL: no memory. */
struct identities *identities_new(struct proxy *proxy, const struct environment_names *names);
void identities_free(struct identities *identities); /* takes NULL */

/* A sample of that process has arrived: reads the process unless that was done or tried. Call it before the side-band is read up to now.
 * 0 or -ENOMEM. */
MUST_CHECK int identities_meet(struct identities *identities, uint32_t tgid);
/* Side-band events, in the order of their times. Each returns 0 or -ENOMEM. An exit is kept until identities_prune, and its time longer,
 * for a process that has the same id later. */
MUST_CHECK int identities_fork(struct identities *identities, uint32_t tgid, uint64_t time_ns);
MUST_CHECK int identities_exec(struct identities *identities, uint32_t tgid, uint64_t time_ns);
MUST_CHECK int identities_exit(struct identities *identities, uint32_t tgid, uint64_t time_ns);
/* Is there a process that executes another program and was not read yet? */
bool identities_have_begun(const struct identities *identities);
/* After all events that have come: reads those that have not ended, as long as all of that takes little CPU time. Those that are still in
 * the middle of it, as most are then, wait for the next time. Then read the side-band again before asking for labels: it has the borders of
 * what was read. 0 or -ENOMEM. */
MUST_CHECK int identities_read_begun(struct identities *identities);
/* Events up to then were lost: forgets all. */
void identities_lost(struct identities *identities, uint64_t time_ns);

/* The labels of the process at that time; borrowed until the next call. NULL: not known. */
struct process_labels *identities_at(const struct identities *identities, uint32_t tgid, uint64_t time_ns);
/* Likewise, if the process has run one program since that time, or since its start after it. For sums over that time. */
struct process_labels *identities_since(const struct identities *identities, uint32_t tgid, uint64_t time_ns);
/* Forgets what ended before that time. */
void identities_prune(struct identities *identities, uint64_t time_ns);
uint64_t identities_bytes(const struct identities *identities);
uint32_t identities_nr(const struct identities *identities); /* processes */
