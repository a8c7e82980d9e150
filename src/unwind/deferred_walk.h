/* SPDX-License-Identifier: Apache-2.0 */
/* deferred_walk: walks a stack that the kernel side sent raw, by the steps that the kernel side walks with itself (bpf/walk/unwind.h) over
 * the same tables. One thread. */
#pragma once
#include <stdint.h>

#include "abi/record.h"
#include "abi/unwind.h"
#include "base/cleanup.h"
#include "unwind/table_store.h"

/* What the process had mapped when the record was made. */
struct deferred_process {
	uint32_t tgid, generation;            /* 0: not known */
	const struct sonde_mapping *mappings; /* sorted by start_pc; the first SONDE_MAX_MAPPINGS are used */
	uint32_t nr_mappings;                 /* 0: the process is not known */
	uint64_t serial;                      /* these same mappings had it in an earlier walk, or none had; 0: it is not known whether */
};

struct deferred_stack { /* as a struct sonde_stack_record would tell of it */
	const uint64_t *frames; /* borrowed until the next walk */
	uint64_t hash;          /* what the kernel side would give the same stack once it knows the process as it was then */
	uint64_t last_pc;       /* where it ended */
	uint32_t nr_walked;
	uint32_t generation;    /* of the process; 0: not known */
	uint32_t switch_frame; /* how many frames there are up to the first whose caller is on another stack (Go); 0: there is none */
	uint16_t nr_frames;
	enum sonde_stop stop;
};

/* Reads code at `pc` of the process: 0, or not 0 when not all of it can be read. */
typedef int (*deferred_code_fn)(void *arg, uint64_t pc, void *to, size_t size);

struct deferred_walk;
/* Borrows the store for its life. hash_seed: the kernel side's. NULL: no memory. */
struct deferred_walk *deferred_walk_new(const struct table_store *store, uint64_t hash_seed);
void deferred_walk_free(struct deferred_walk *walk); /* takes NULL */
/* `record` is followed by its stack_bytes. A stack that goes on behind them ends in SONDE_STOP_DEPTH, unless it is a seed's: then `code` is
 * asked. */
void deferred_walk_run(struct deferred_walk *walk, const struct sonde_deferred_record *record, const struct deferred_process *process,
		       deferred_code_fn code, void *arg, struct deferred_stack *ret_stack);
