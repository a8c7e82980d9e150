/* SPDX-License-Identifier: Apache-2.0 */
/* engine: what every measurement stands on: the kernel side with its ring and maps, who follows processes and files for it, who walks what
 * comes raw, and the book of what was recorded. A measurement adds what triggers it (an event, the scheduler's programs, ...) and makes a
 * profile of it. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "collect/sampler.h"
#include "engine/auditor.h"
#include "engine/deferred_stacks.h"
#include "engine/initial_stacks.h"
#include "model/account.h"
#include "parse/parser.h"
#include "proxy/proxy.h"
#include "stacks/stack_recorder.h"
#include "track/tracker.h"

#define ENGINE_STEP_NS 100000000u  /* how often what has come is taken in, and the targets are looked for */
#define ENGINE_STEP_RECORDS 65536  /* of it before the clock and the stop are looked at again */

struct engine_options {
	const struct sampler_options *sampling; /* borrowed for the call */
	struct account *account;    /* borrowed for the engine's life: notes, and what is counted on the way */
	uint64_t unwind_bytes;      /* for tables and mappings */
	uint32_t audit_every;       /* 0: nothing is audited */
	bool no_cache;              /* of tables on disk */
	bool timestamps;            /* as with_times of stack_recorder_new */
	bool initial_stacks;                 /* threads that wait at the start are told of */
	bool renews_payloads;         /* the kernel side may forget which stacks it sent, so that more come */
};

/* Zeros, or its parts, for measurements to use; the engine owns them. */
struct engine {
	struct account *account;
	struct parser *parser;
	struct proxy *proxy;
	struct sampler *sampler;
	struct tracker *tracker;
	struct auditor *auditor;    /* NULL: nothing is audited */
	struct initial_stacks *initial_stacks;        /* NULL: not asked for */
	struct deferred_stacks *deferred;
	struct stack_recorder *recorder;
	bool renews_payloads;
	uint64_t looked_ns;         /* at the list of CPUs */
	bool has_failed_cpus;       /* they are not followed any more */
};

/* Loads the kernel side and opens the side-band; nothing is measured yet. 0; as sampler_new, parser_ready and tracker_new. After a failure,
 * too, engine_done is to be called. */
MUST_CHECK int engine_init(struct engine *engine, const struct engine_options *options, struct diag *diag);
void engine_done(struct engine *engine);
/* The process table, once the engine is there; NULL before. */
const struct process_table *engine_processes(const struct engine *engine);
void engine_set_nice(struct engine *engine, int nice); /* of the processes that work for it */

/* Takes in all that has come, up to so many records: `take` has them. 0 or a negative errno, also what `take` returned. */
MUST_CHECK int engine_read(struct engine *engine, uint64_t max_records, sampler_record_fn take, void *arg, struct diag *diag);
/* From time to time: goes to CPUs that came online, and leaves those that went; what cannot be done is noted. */
void engine_follow_cpus(struct engine *engine);
/* Behind each reading: makes room for stacks that have not come yet, and forgets what nobody asks for any more. 0 or a negative errno. */
MUST_CHECK int engine_step(struct engine *engine, uint64_t now_ns, struct diag *diag);

/* Closes the book's window (stack_recorder_cut was called) and begins the next: as stack_recorder_close, and the kernel side sends all
 * bodies anew. 0 or a negative errno. */
MUST_CHECK int engine_close_window(struct engine *engine, struct closed_window *ret_window);
/* As stack_recorder_done. */
void engine_forget_window(struct engine *engine, const struct stack_store *store);
