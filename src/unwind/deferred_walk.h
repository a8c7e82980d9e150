/* SPDX-License-Identifier: Apache-2.0 */
/* deferred_walk: walks a deferred stack from the kernel side, with the steps of the kernel side's own walk (bpf/walk/unwind.h) over the
 * same tables. One thread. */
#pragma once
#include <stdint.h>

#include "abi/record.h"
#include "abi/unwind.h"
#include "base/cleanup.h"
#include "unwind/table_store.h"

/* What the process had mapped when the record was made. */
struct deferred_process {
	uint32_t tgid, generation;            /* 0: not known */
	const struct sonde_mapping *mappings; /* sorted by start_pc; only the first SONDE_MAX_MAPPINGS are used */
	uint32_t nr_mappings;                 /* 0: the process is not known */
	uint64_t serial;                      /* unique to these mappings: reused only for the same ones; 0: not known */
	const union sonde_runtime_known *known[SONDE_RUNTIME_COUNT]; /* of the runtimes that own code; NULL: nothing */
};

struct deferred_stack { /* the same data as struct sonde_stack_record */
	const uint64_t *frames; /* borrowed until the next walk */
	/* The frames of runtimes that own code, which follow the record; NULL: none. Borrowed likewise. */
	const struct sonde_runtime_record *runtime;
	/* What the kernel side would compute for this stack with the process's state of that time. With `runtime` it depends on those
	 * frames, too: equal native frames may be different functions. */
	uint64_t hash;
	uint64_t last_pc;       /* where the walk ended */
	uint32_t nr_walked;
	uint32_t generation;    /* of the process; 0: not known */
	/* Number of frames up to the first whose caller is on another stack (Go), including it; 0: there is none. */
	uint32_t switch_frame;
	uint16_t nr_frames;
	enum sonde_stop stop;
};

/* Reads code at `pc` of the process: 0, or not 0 if not all of it can be read. */
typedef int (*deferred_code_fn)(void *arg, uint64_t pc, void *to, size_t size);

struct deferred_walk;
/* Borrows the store for its life. hash_seed: the kernel side's. NULL: no memory. */
struct deferred_walk *deferred_walk_new(const struct table_store *store, uint64_t hash_seed);
void deferred_walk_free(struct deferred_walk *walk); /* takes NULL */
/* `record` is followed by its stack_bytes. If the stack continues behind them, it ends in SONDE_STOP_DEPTH. Exception: an initial stack,
 * for which `code` reads on. */
void deferred_walk_run(struct deferred_walk *walk, const struct sonde_deferred_record *record, const struct deferred_process *process,
		       deferred_code_fn code, void *arg, struct deferred_stack *ret_stack);
