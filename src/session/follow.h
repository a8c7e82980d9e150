/* SPDX-License-Identifier: Apache-2.0 */
/* follow: a tracker for a sampler, with all that the kernel's unwinder is to know: tables from disk, and interpreters. */
#pragma once
#include "session/raw_stacks.h"
#include "session/stack_book.h"
#include "session/tracker.h"

struct follow_options {
	struct sampler *sampler; /* these four are borrowed for the tracker's life */
	struct parser *parser;
	struct proxy *proxy;
	struct account *account;
	uint64_t unwind_bytes;   /* for tables and mappings */
	bool no_cache;           /* of tables on disk */
};

/* Opens the side-band; tracker_scan reads what runs already. 0 or a negative errno. */
MUST_CHECK int follow_new(const struct follow_options *options, struct diag *diag, struct tracker **ret_tracker);

#define FOLLOW_STEP_NS 100000000u  /* how often what has come is taken in, and the targets are looked for */
#define FOLLOW_STEP_RECORDS 65536  /* of it before the clock and the stop are looked at again */

struct follow_cpus {
	uint64_t looked_ns;
	bool has_failed;
};

/* Once per FOLLOW_STEP_NS: goes to CPUs that came online, and leaves those that went; what cannot be done is noted. */
void follow_cpus(struct follow_cpus *follow, struct sampler *sampler, struct tracker *tracker, struct account *account);

struct follow_parts {
	struct sampler *sampler;
	struct tracker *tracker;
	struct raw_stacks *raws;
	struct stack_book *book;
};

/* Takes in all that has come, up to so many records: `take` has them. 0 or a negative errno, also what `take` returned. */
MUST_CHECK int follow_read(const struct follow_parts *parts, uint64_t max_records, sampler_record_fn take, void *arg, struct diag *diag);
