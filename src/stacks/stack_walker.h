/* SPDX-License-Identifier: Apache-2.0 */
/* stack_walker: what the stack_recorder asks for when a stack came raw: its frames, and what an audit thinks of a stack that was walked
 * before. An interface, so that the book knows neither the kernel nor the tables. */
#pragma once
#include "abi/record.h"
#include "base/cleanup.h"
#include "naming/location.h"
#include "runtime/runtime.h"
#include "unwind/deferred_walk.h"

struct stack_walker {
	/* 0 or an error that ends the run. The frames are borrowed until the next call. */
	int (*walk)(void *arg, const struct sonde_deferred_record *record, struct deferred_stack *ret_stack);
	/* The stack that the kernel side walked where this raw record was taken; NULL: it never came. 0 or an error that ends the run. */
	int (*check)(void *arg, const struct sonde_deferred_record *record, const struct location_table *locations, const uint32_t *frames,
		     uint32_t nr_frames, enum sonde_stop stop);
	/* A stack came to that file at that time; or NULL. Told before `walk` is asked for a stack of the same reading. */
	void (*used)(void *arg, uint32_t object, uint64_t time_ns);
	/* And it ended there, because the file's table is not loaded. 0 or an error that ends the run. */
	int (*need)(void *arg, uint32_t object, uint64_t time_ns);
	/* What a frame of an interpreter is called, also when that is not known; by a copy, NULL: there is none; asked again when it was
	 * NOT_YET. */
	enum runtime_answer (*describe)(void *arg, uint32_t tgid, uint32_t generation, const struct sonde_runtime_frame *frame,
					const struct sonde_code_record *copy, bool is_again, struct runtime_function *ret_function);
	/* Memory of that process was not there when the kernel side looked. */
	void (*touch)(void *arg, uint32_t tgid, uint64_t pc);
	void *arg;
};
