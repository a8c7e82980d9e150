/* SPDX-License-Identifier: Apache-2.0 */
/* account: what a run was, what it cost and what it lost: stands in every report and file beside the samples. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "abi/reason.h"
#include "abi/runtime.h"
#include "model/audit_reason.h"

#define ACCOUNT_MAX_NOTES 24
#define ACCOUNT_NOTE_BYTES 256
#define ACCOUNT_MAX_RUNTIMES 16

/* As in struct sonde_wait_counters (abi/wait.h). */
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

/* What is counted, all of it 64-bit numbers: of two windows the sums are those of both. */
struct account_counts {
	/* ticks = recorded + sum(filtered) + sum(dropped) */
	uint64_t ticks, recorded;
	uint64_t
	    expected; /* ticks that were due, by the time of clocks or by what the event has counted; 0: the kernel varies the period */
	uint64_t events;         /* that it has counted */
	uint64_t throttled, throttled_ns; /* how often, and how long over all CPUs, the kernel held the event back as there were too many
					     ticks: they are due with clocks alone */
	uint64_t unscheduled_ns; /* others had the PMU, over all CPUs: nothing is due then */
	uint64_t filtered[SONDE_FILTER_COUNT], dropped[SONDE_DROP_COUNT];
	/* of waits: switches = waits + filtered + unseen + no_storage + sums_full, but for those under way at the end */
	struct account_waits waits;
	/* of the recorded samples, or waits: user stacks by how they end, and sides that are missed */
	uint64_t stopped[SONDE_STOP_COUNT];
	uint64_t missed_user, missed_kernel;
	uint64_t late, late_refused, late_cut; /* user stacks that came raw and were walked in user space; those for which there was no
						  room, or no room for all of them */
	uint64_t missed_full;    /* those of the two above for which the stack store was full */
	uint64_t missed_collided; /* and those, with runtime stacks, labels and wakers, whose hash another stack has, too */
	uint64_t lost_sideband;  /* mapping and process events that the kernel could not deliver */
	/* of what interpreters ran: stacks by how they end, and frames whose names could not be read */
	uint64_t runtime_stopped[SONDE_RUNTIME_STOP_COUNT], nr_frames_unnamed;
	uint64_t runtime_missed; /* samples whose runtime stack was lost: no room, or its program was not loaded */
	uint64_t labels_missed;  /* samples whose labels were lost: no room, or they could not be read */
	/* stacks that libdw unwound once more: audited = agreed + differed + sum(not comparable) */
	uint64_t audited, audit_agreed, audit_differed, audit_not_comparable[AUDIT_REASON_COUNT];
	/* own cost */
	uint64_t cpu_user_ns, cpu_system_ns;
	uint64_t unwind_evicted, unwind_reloaded,
	    unwind_cached; /* tables that made room for others, that came back, and that a file of the cache gave */
};

struct account {
	/* what was asked for */
	char command_line[512];  /* sonde's own arguments, blanks between them */
	char event[64];          /* as sampled: "cpu-clock" */
	char event_unit[16];     /* "nanoseconds" for clocks, else "count" */
	uint64_t freq_hz;        /* 0 when a period was asked for */
	uint64_t period;         /* events per tick; 0 when the kernel varies it */
	/* where and when */
	char host[64], kernel[64];
	uint64_t start_unix_ns, duration_ns;
	uint32_t nr_cpus;        /* sampled */
	bool has_waits;          /* they were asked for */
	union {
		struct account_counts counts;
		struct account_counts; /* by their names alone */
	};
	/* own cost, as it is at the end */
	uint64_t max_rss_bytes, bpf_map_bytes;
	uint64_t startup_ns;     /* from the session's start to the first moment that samples could be taken */
	uint64_t unwind_rows, unwind_bytes;
	uint32_t nr_processes, nr_objects;
	struct account_runtime runtimes[ACCOUNT_MAX_RUNTIMES]; /* that were met */
	uint32_t nr_runtimes, nr_runtimes_refused;
	/* warnings, in words for a person; what does not fit is counted */
	char notes[ACCOUNT_MAX_NOTES][ACCOUNT_NOTE_BYTES];
	uint32_t nr_notes, nr_notes_refused;
};

/* Adds what was counted. */
void account_counts_add(struct account_counts *counts, const struct account_counts *more);
/* Gives what has been counted since the last call, of numbers that grow: *told is what was given so far. What has become less counts as
 * nothing new. */
struct account_counts account_counts_since(struct account_counts *reported, const struct account_counts *now);
/* Control characters and what is not UTF-8 become '?'. */
__attribute__((format(printf, 2, 3))) void account_note(struct account *account, const char *fmt, ...);
/* `nr_processes` more processes of this runtime. Of runtimes that find no room the calls are counted. Texts become plain as in notes, and
 * are cut to their room. */
void account_runtime(struct account *account, const char *name, const char *version, uint32_t nr_processes);
/* Names and texts of the reasons (abi/reason.h), for reports: "ring_full", "no room in the ring buffer for the sample". */
const char *filter_name(enum sonde_filter filter);
const char *drop_name(enum sonde_drop drop);
const char *stop_name(enum sonde_stop stop);
const char *runtime_stop_name(enum sonde_runtime_stop stop);
const char *audit_reason_name(enum audit_reason reason);
const char *drop_text(enum sonde_drop drop);
const char *stop_mark(enum sonde_stop stop); /* a printf format with at most one %s, "" for COMPLETE */
const char *runtime_stop_mark(enum sonde_runtime_stop stop); /* the same: %s is the runtime's name */
