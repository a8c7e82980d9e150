/* SPDX-License-Identifier: Apache-2.0 */
/* prev_stacks: where the thread was that had the CPU while another one waited for it: the kernel side's slow waits, with the stacks that come before them in the same ring, named as soon as they come. One thread. */
#pragma once
#include <stdint.h>

#include "abi/runq.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "collect/sampler.h"
#include "model/account.h"

struct prev_stacks;
/* Loads the sampler's programs. 0 or as sampler_new. */
MUST_CHECK int prev_stacks_new(struct diag *diag, struct prev_stacks **ret_stacks);
void prev_stacks_free(struct prev_stacks *stacks); /* takes NULL */
struct sampler *prev_stacks_sampler(const struct prev_stacks *stacks); /* for the programs of the waits; borrowed */
/* Reads what runs, once these are loaded. */
MUST_CHECK int prev_stacks_start(struct prev_stacks *stacks, struct diag *diag);
#define PREV_STACKS_FDS 2
void prev_stacks_fds(const struct prev_stacks *stacks, int fds[PREV_STACKS_FDS]); /* readable when there is something to read; borrowed */
/* A negative result ends the reading. */
typedef int (*prev_stacks_fn)(void *arg, const struct sonde_slow_record *record);
/* The waits that have come, in their order, up to so many records of the sampler (sampler_read). 0, what fn gave, or what cannot be gone on with (then diag may tell). */
MUST_CHECK int prev_stacks_read(struct prev_stacks *stacks, uint64_t max_records, prev_stacks_fn fn, void *arg, struct diag *diag);
/* Appends the stacks of a wait, leaf first, a frame to a line; from within fn. 0 or -ENOMEM. */
MUST_CHECK int prev_stacks_print(struct prev_stacks *stacks, const struct sonde_slow_record *record, struct buffer *lines);
void prev_stacks_follow_cpus(struct prev_stacks *stacks); /* as follow_cpus */
const struct account *prev_stacks_account(const struct prev_stacks *stacks); /* its notes: what could not be read; borrowed */
