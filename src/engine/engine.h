/* SPDX-License-Identifier: Apache-2.0 */
/* engine: the base of every measurement: the kernel side with its ring buffer and maps, the tracker that follows processes and files for
 * it, the walker of deferred stacks, and the recorder. A measurement adds its trigger (an event, the scheduler's programs, ...) and makes a
 * profile of the result. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/cpus.h"
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

#define ENGINE_STEP_NS 100000000u  /* how often records are read and the targets are checked */
#define ENGINE_STEP_RECORDS 65536  /* read at most, before the clock and the stop are checked again */

struct engine_options {
	const struct sampler_options *sampling; /* borrowed for the call */
	struct account *account;    /* borrowed for the engine's life: notes and counts */
	uint64_t unwind_bytes;      /* for tables and mappings */
	uint32_t audit_every;       /* 0: no audits */
	bool no_cache;              /* of tables on disk */
	bool timestamps;            /* as with_times of stack_recorder_new */
	bool initial_stacks;                 /* report the threads that wait at the start */
	const struct environment_names *label_names; /* of variables: samples have the labels of their processes; NULL: they have not */
	bool renews_payloads;         /* the kernel side may forget which stacks it sent, to make room for more */
	uint32_t runtimes_off;        /* bits 1 << enum sonde_runtime: their frames are not walked */
};

/* Zeros at first. Measurements use its parts; the engine owns them. */
struct engine {
	struct account *account;
	struct parser *parser;
	struct proxy *proxy;
	struct sampler *sampler;
	struct tracker *tracker;
	struct auditor *auditor;    /* NULL: no audits */
	struct initial_stacks *initial_stacks;        /* NULL: not requested */
	struct deferred_stacks *deferred;
	struct identities *identities; /* likewise */
	struct stack_recorder *recorder;
	bool renews_payloads;
	struct cpus_watch cpus;
	uint64_t looked_ns;         /* at the list of CPUs */
	bool has_failed_cpus;       /* new CPUs are no longer followed */
};

/* Loads the kernel side and opens the side-band; measures nothing yet. 0; as sampler_new, parser_ready and tracker_new. Call engine_done
 * after a failure, too. */
MUST_CHECK int engine_init(struct engine *engine, const struct engine_options *options, struct diag *diag);
void engine_done(struct engine *engine);
/* The process table; NULL before engine_init. */
const struct process_table *engine_processes(const struct engine *engine);
void engine_set_nice(struct engine *engine, int nice); /* of the processes that work for it */

/* Reads all that has arrived, at most so many records, and passes records to `take`. 0 or a negative errno, also that of `take`. */
MUST_CHECK int engine_read(struct engine *engine, uint64_t max_records, sampler_record_fn take, void *arg, struct diag *diag);
/* From time to time: starts on CPUs that came online, and leaves those that went offline. Failures are noted. */
void engine_follow_cpus(struct engine *engine);
/* After each reading: makes room for new stacks, and drops what is no longer needed. 0 or a negative errno. */
MUST_CHECK int engine_step(struct engine *engine, uint64_t now_ns, struct diag *diag);

/* Closes the recorder's window (after stack_recorder_cut) and begins the next: as stack_recorder_close, and the kernel side sends all
 * payloads again. 0 or a negative errno. */
MUST_CHECK int engine_close_window(struct engine *engine, struct closed_window *ret_window);
/* As stack_recorder_done. */
void engine_forget_window(struct engine *engine, const struct stack_store *store);
