/* SPDX-License-Identifier: Apache-2.0 */
/* account: what a recording or a window measured, cost and lost. Stored in the profile; most output formats include at least a part. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "abi/reason.h"
#include "abi/runtime.h"
#include "model/audit_reason.h"

#define ACCOUNT_MAX_NOTES 24
#define ACCOUNT_NOTE_BYTES 256
#define ACCOUNT_MAX_RUNTIMES 16

/* Fields of struct sonde_wait_counters (abi/wait.h). */
#define ACCOUNT_WAIT_LIST(X) \
	X(switches) \
	X(waits) X(filtered_target) X(filtered_time) X(unseen) X(no_storage) X(sums_full) X(lost_ns) X(slots_full) X(stack_cache_hits) \
	    X(stack_cache_checks) X(stack_cache_wrong) X(events_lost)

struct account_waits {
#define X(field) uint64_t field;
	ACCOUNT_WAIT_LIST(X)
#undef X
};

struct account_runtime {
	char name[16], version[16]; /* "python", "3.11.2" */
	uint32_t nr_processes;
};

/* Counters, all 64-bit numbers: the counts of two windows can be added. */
struct account_counts {
	/* ticks = recorded + sum(filtered) + sum(dropped) */
	uint64_t ticks, recorded;
	uint64_t expected;       /* ticks that were due, by the clock's time or by the event's count; 0: the kernel varies the period */
	uint64_t events;         /* the event's count */
	/* How often, and how long over all CPUs, the kernel throttled the event because of too many ticks. These ticks are due with clocks
	 * alone. */
	uint64_t throttled, throttled_ns;
	uint64_t unscheduled_ns; /* time when others had the PMU, over all CPUs: no ticks are due then */
	uint64_t filtered[SONDE_FILTER_COUNT], dropped[SONDE_DROP_COUNT];
	/* waits: switches = waits + filtered + unseen + no_storage + sums_full, apart from waits in progress at the end */
	struct account_waits waits;
	/* of the recorded samples, or waits: user stacks by their end, and missing sides */
	uint64_t stopped[SONDE_STOP_COUNT];
	uint64_t missed_user, missed_kernel;
	/* Deferred stacks, walked in user space; those that found no room; those that were cut for lack of room. */
	uint64_t late, late_refused, late_cut;
	uint64_t missed_full;    /* of missed_user and missed_kernel: the stack store was full */
	uint64_t missed_collided; /* likewise, with runtime stacks, labels and wakers: another stack has the same hash */
	uint64_t lost_sideband;  /* mapping and process events that the kernel could not deliver */
	/* interpreters: runtime stacks by their end, and frames whose names could not be read */
	uint64_t runtime_stopped[SONDE_RUNTIME_STOP_COUNT], nr_frames_unnamed;
	uint64_t runtime_missed; /* samples that lost their runtime stack: no room, or its program was not loaded */
	/* interpreters' frames whose code the kernel side had in its cache; of these: read again, and found to be other code */
	uint64_t runtime_cache_hits, runtime_cache_checks, runtime_cache_wrong;
	uint64_t labels_missed;  /* samples that lost their labels: no room, not readable, or their process had ended before it was read */
	/* stacks that libdw unwound again: audited = agreed + differed + sum(not comparable) */
	uint64_t audited, audit_agreed, audit_differed, audit_not_comparable[AUDIT_REASON_COUNT];
	/* own cost */
	uint64_t cpu_user_ns, cpu_system_ns;
	/* Unwind tables that were evicted, that were loaded again, and that came from a cache file. */
	uint64_t unwind_evicted, unwind_reloaded, unwind_cached;
};

/* One side of a difference. Both sides' values are scaled to the larger sum. */
struct account_side {
	char name[256];      /* of its file; "": not known */
	uint64_t all;        /* its sum of values; 0: this is not a difference */
	uint64_t nr_samples; /* that they come from; 0: not known */
};

struct account {
	/* requested */
	char command_line[512];  /* sonde's own arguments, blanks between them */
	char event[64];          /* as sampled: "cpu-clock" */
	char event_unit[16];     /* "nanoseconds" for clocks, else "count" */
	uint64_t freq_hz;        /* 0: a period was requested */
	uint64_t period;         /* events per tick; 0: the kernel varies it */
	/* where and when */
	char host[64], kernel[64];
	uint64_t start_unix_ns, duration_ns;
	uint32_t nr_cpus;        /* sampled */
	struct account_side sides[2]; /* before and after */
	bool has_waits;          /* waits were requested */
	union {
		struct account_counts counts;
		struct account_counts; /* the same fields without prefix */
	};
	/* own cost at the end of the run */
	uint64_t max_rss_bytes, bpf_map_bytes;
	uint64_t startup_ns;     /* from the session's start to the first moment when samples could be taken */
	uint64_t unwind_rows, unwind_bytes;
	uint32_t nr_processes, nr_objects;
	struct account_runtime runtimes[ACCOUNT_MAX_RUNTIMES]; /* that were found */
	uint32_t nr_runtimes, nr_runtimes_refused;
	/* warnings in words; those beyond the limit are counted */
	char notes[ACCOUNT_MAX_NOTES][ACCOUNT_NOTE_BYTES];
	uint32_t nr_notes, nr_notes_refused;
};

/* Adds `more` to `counts`. */
void account_counts_add(struct account_counts *counts, const struct account_counts *more);
/* Returns how much the counts in `now` have grown since the last call. *reported is the sum of what was returned so far. A count that
 * became less has grown by 0. */
struct account_counts account_counts_since(struct account_counts *reported, const struct account_counts *now);
/* Adds a warning. Control characters and invalid UTF-8 become '?'. */
__attribute__((format(printf, 2, 3))) void account_note(struct account *account, const char *fmt, ...);
bool account_has_note(const struct account *account, const char *note);
/* Adds the notes of `more` from the `first`-th on, those that are not there yet. */
void account_add_notes(struct account *account, const struct account *more, uint32_t first);
/* The samples, or waits, that were recorded. */
static inline uint64_t account_nr_recorded(const struct account *account)
{
	return account->has_waits ? account->waits.waits : account->recorded;
}
/* Adds `nr_processes` processes of this runtime. If there is no room for the runtime, the call is counted. Texts are cleaned as in notes
 * and cut to their room. */
void account_runtime(struct account *account, const char *name, const char *version, uint32_t nr_processes);
/* Names and texts of the reasons (abi/reason.h), for reports: "ring_full", "no room in the ring buffer for the sample". */
const char *filter_name(enum sonde_filter filter);
const char *drop_name(enum sonde_drop drop);
const char *stop_name(enum sonde_stop stop);
const char *runtime_stop_name(enum sonde_runtime_stop stop);
const char *audit_reason_name(enum audit_reason reason);
const char *drop_text(enum sonde_drop drop);
const char *stop_mark(enum sonde_stop stop); /* printf format with at most one %s; "" for COMPLETE */
const char *runtime_stop_mark(enum sonde_runtime_stop stop); /* likewise: %s is the runtime's name */
