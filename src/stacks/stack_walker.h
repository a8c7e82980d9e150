/* SPDX-License-Identifier: Apache-2.0 */
/* stack_walker: what the stack_recorder needs for deferred stacks and runtime frames: the frames of a deferred stack, an audit of a stack
 * that the kernel side walked, the names of runtime frames. An interface, so that the recorder depends neither on the kernel side nor on
 * the tables. */
#pragma once
#include "abi/record.h"
#include "base/cleanup.h"
#include "naming/location.h"
#include "runtime/runtime.h"
#include "unwind/deferred_walk.h"

struct stack_walker {
	/* 0 or an error that ends the run. The frames are borrowed until the next call. */
	int (*walk)(void *arg, const struct sonde_deferred_record *record, struct deferred_stack *ret_stack);
	/* Audits a stack: the frames are the kernel side's walk at the moment of this deferred record; NULL: that stack never arrived. 0 or
	 * an error that ends the run. */
	int (*check)(void *arg, const struct sonde_deferred_record *record, const struct location_table *locations, const uint32_t *frames,
		     uint32_t nr_frames, enum sonde_stop stop);
	/* A stack passed through that file at that time. May be NULL. Called after the last `walk` of the same reading. */
	void (*used)(void *arg, uint32_t object, uint64_t time_ns);
	/* The stack ended in that file because its table is not loaded. 0 or an error that ends the run. */
	int (*need)(void *arg, uint32_t object, uint64_t time_ns);
	/* Resolves a runtime frame; fills in a name even if it is not known. `copy` (may be NULL): memory to read the name from. is_again:
	 * an earlier answer was NOT_YET. */
	enum runtime_answer (*describe)(void *arg, uint32_t tgid, uint32_t generation, const struct sonde_runtime_frame *frame,
					const struct sonde_code_record *copy, bool is_again, struct runtime_function *ret_function);
	/* The name of an attribute in the context of one of the process's threads: its first bytes are copied to `key`, which has room for
	 * SONDE_LABEL_KEY_BYTES. Returns the name's full number of bytes; 0: it has none, or it is not known. NULL: none has one. */
	uint32_t (*context_key)(void *arg, uint32_t tgid, uint32_t generation, uint8_t number, char *key);
	/* The kernel side could not read that process's memory there. */
	void (*touch)(void *arg, uint32_t tgid, uint64_t pc);
	void *arg;
};
