/* SPDX-License-Identifier: Apache-2.0 */
/* rss_programs: the kernel side of `alloc --rss`, beside the sampler's: sends a record with stacks when a process has a mebibyte of
 * resident memory more than ever before. Records arrive through the sampler's ring. One thread. */
#pragma once
#include "abi/rss.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "collect/sampler.h"

struct rss_programs;
/* Loads the program with the sampler's configuration, targets and maps. Borrows the sampler for its life. 0; -EPERM; -EOPNOTSUPP: this
 * kernel cannot (diag says what is missing). */
MUST_CHECK int rss_programs_new(struct sampler *sampler, struct diag *diag, struct rss_programs **ret_programs);
void rss_programs_free(struct rss_programs *programs); /* takes NULL; call it before sampler_free */
MUST_CHECK int rss_programs_start(struct rss_programs *programs, struct diag *diag); /* as trigger_attach */
void rss_programs_stop(struct rss_programs *programs); /* records in flight still arrive */
void rss_programs_counters(const struct rss_programs *programs, struct sonde_rss_counters *ret_counters); /* summed over the CPUs */
/* Number of times the kernel skipped the program because it was already running on that CPU; 0 before Linux 5.12. */
uint64_t rss_programs_nr_left_out(const struct rss_programs *programs);
