/* SPDX-License-Identifier: Apache-2.0 */
/* kmem_programs: the kernel side of `leak --kernel`, beside the sampler's: keeps what the kernel has allocated and not freed. Stacks arrive
 * through the sampler's ring. One thread. */
#pragma once
#include "abi/kmem.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "collect/sampler.h"

struct kmem_programs;
/* Loads the programs with the sampler's configuration and maps; borrows the sampler for its life. `config`: page_shift and own_tgid are
 * filled in. `max_blocks`: allocated at a time; more are counted. 0; -EPERM; -EOPNOTSUPP: this kernel cannot (diag says what is
 * missing). */
MUST_CHECK int kmem_programs_new(struct sampler *sampler, const struct sonde_kmem_config *config, uint32_t max_blocks, struct diag *diag,
				 struct kmem_programs **ret_programs);
void kmem_programs_free(struct kmem_programs *programs); /* takes NULL */
MUST_CHECK int kmem_programs_start(struct kmem_programs *programs, struct diag *diag);
void kmem_programs_stop(struct kmem_programs *programs); /* blocks stay */

typedef int (*kmem_block_fn)(void *arg, uint64_t kaddr, const struct sonde_kmem_block *block);
/* Passes each block that is allocated to `fn`, while programs may add and remove others. Returns 0, -ENOMEM, or what bpf(2) or fn
 * returned. */
MUST_CHECK int kmem_programs_read(const struct kmem_programs *programs, kmem_block_fn fn, void *arg);
void kmem_programs_counters(const struct kmem_programs *programs, struct sonde_kmem_counters *ret_counters); /* summed over the CPUs */
/* Number of events that the kernel did not pass to the programs, because the same one was at work on the CPU. */
uint64_t kmem_programs_nr_left_out(const struct kmem_programs *programs);
