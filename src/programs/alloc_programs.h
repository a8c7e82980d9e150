/* SPDX-License-Identifier: Apache-2.0 */
/* alloc_programs: the kernel side of `leak`, beside the sampler's: keeps the blocks that are allocated, by uprobes at allocators'
 * functions. Stacks arrive through the sampler's ring. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "abi/alloc.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "collect/sampler.h"
#include "collect/uprobe_link.h"

struct alloc_options {
	struct sonde_alloc_config config;
	uint32_t max_blocks;      /* allocated at a time; more are counted */
	enum uprobe_way first_way; /* the best way to try; UPROBE_SESSION */
};

struct alloc_programs;
/* Loads the programs, for the best way of probing that this kernel has, with the sampler's configuration, targets and maps; borrows the
 * sampler for its life. 0; -EPERM; -EOPNOTSUPP: this kernel cannot (diag says what is missing). */
MUST_CHECK int alloc_programs_new(struct sampler *sampler, const struct alloc_options *options, struct diag *diag,
				  struct alloc_programs **ret_programs);
void alloc_programs_free(struct alloc_programs *programs); /* takes NULL */

struct alloc_probe {
	uint64_t entry_off, probe_off; /* in the file: of the function, and where its probe is best */
	enum sonde_alloc_call call;
};
/* Probes the functions of a file, in one process or (tgid 0) in all. `path` as in struct uprobe_points. 0; -EPERM; -EOPNOTSUPP: this kernel
 * has no uprobes; or the kernel's error. */
MUST_CHECK int alloc_programs_attach(struct alloc_programs *programs, const char *path, uint32_t tgid, const struct alloc_probe *probes,
				     uint32_t nr, struct diag *diag);
void alloc_programs_detach(struct alloc_programs *programs); /* from all; blocks stay */

/* Probes them so that their calls are only counted, until alloc_programs_end_count. As alloc_programs_attach; not for all processes. */
MUST_CHECK int alloc_programs_count(struct alloc_programs *programs, const char *path, uint32_t tgid, const struct alloc_probe *probes,
				    uint32_t nr);
void alloc_programs_end_count(struct alloc_programs *programs);
uint64_t alloc_programs_nr_calls(const struct alloc_programs *programs); /* that were counted so far */

/* With config.windows (Linux 6.6): alloc_programs_attach only tries; probes are there while armed, and calls are hits while the gate is
 * open. These may be called by one other thread. */
/* Arms all files that were attached. Returns the number of links; 0: there is nothing to probe. */
uint32_t alloc_programs_arm(struct alloc_programs *programs);
void alloc_programs_disarm(struct alloc_programs *programs); /* returns when no program is at work any more */
void alloc_programs_open_gate(const struct alloc_programs *programs, uint32_t window); /* its number; not 0 */
void alloc_programs_close_gate(const struct alloc_programs *programs);
/* From the next window on the files of the process are probed in all processes, and the programs filter: once its first thread has ended
 * the kernel would set no probes in it, without an error. */
void alloc_programs_widen(struct alloc_programs *programs, uint32_t tgid);
/* The hits of the last window, once it is disarmed; valid until the gate opens again. */
const struct sonde_alloc_hit *alloc_programs_hits(const struct alloc_programs *programs, uint32_t *ret_nr, uint32_t *ret_nr_lost);
/* Probes a function of this process, at that place of its file, from now on: its calls are hits as those of config.own_tgid. Before
 * anything is armed. 0 or the kernel's error. */
MUST_CHECK int alloc_programs_attach_own(struct alloc_programs *programs, const char *path, uint64_t off);

/* True if config.held_tgid was stopped since the last call: it is to get SIGCONT, once what is mapped was read. */
bool alloc_programs_take_hold(const struct alloc_programs *programs);

typedef int (*alloc_block_fn)(void *arg, const struct sonde_alloc_key *key, const struct sonde_alloc_block *block);
/* Passes each block that is allocated to `fn`, while programs may add and remove others. Returns 0, -ENOMEM, or what bpf(2) or fn
 * returned. */
MUST_CHECK int alloc_programs_read(const struct alloc_programs *programs, alloc_block_fn fn, void *arg);
typedef int (*alloc_sum_fn)(void *arg, const struct sonde_alloc_sum_key *key, const struct sonde_alloc_sum *sum);
/* Passes what was allocated since the start, by stacks (config.sums). As alloc_programs_read. */
MUST_CHECK int alloc_programs_read_sums(const struct alloc_programs *programs, alloc_sum_fn fn, void *arg);
void alloc_programs_forget(const struct alloc_programs *programs, const struct sonde_alloc_key *key); /* its memory is gone */
/* When the process last began a program, as far as is known; 0: before the recording. */
uint64_t alloc_programs_start_ns(const struct alloc_programs *programs, uint32_t tgid);
void alloc_programs_counters(const struct alloc_programs *programs, struct sonde_alloc_counters *ret_counters); /* summed over the CPUs */
/* Number of events that the kernel did not pass to the programs, because one was at work on the CPU. */
uint64_t alloc_programs_nr_left_out(const struct alloc_programs *programs);
enum uprobe_way alloc_programs_way(const struct alloc_programs *programs);
