/* SPDX-License-Identifier: Apache-2.0 */
/* counter: what the processors and the kernel count (perf_event_open(2)): cycles, cache misses, page faults, tracepoints, ... for a thread,
 * processes, a cgroup, CPUs or the whole machine.
 *
 * A struct sonde_counters is a set of one or more counters, opened together and numbered from 0 in the order in which they were asked for.
 * Functions that can fail return 0 or a negative errno. A set may be used by many threads at once; sonde_counters_free must be the last.
 * Several sets know nothing of each other. All other functions may be called by any thread at any time; nothing changes a list of names.
 * NULL for an object, and structs that begin with their size, are taken as is said in <sonde/sonde.h>; struct sonde_count and struct
 * sonde_overflow, which the library fills, have no size and stay as they are. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default) /* all else in the library is hidden */
#endif

/* --- which events --------------------------------------------------------------------------------------------------------------------- */

/* Of one event or of all events of a set. None: the hypervisor is left out, threads and processes that are started later are counted as
 * well, and counting begins with sonde_counters_start. */
enum sonde_counter_flag {
	SONDE_COUNTER_ENABLED = 1 << 0,	   /* counts from its opening on */
	SONDE_COUNTER_ON_EXEC = 1 << 1,	   /* begins to count when the thread becomes another program by execve(2) */
	SONDE_COUNTER_NO_INHERIT = 1 << 2, /* not what the counted threads start later */
	SONDE_COUNTER_HYPERVISOR = 1 << 3, /* also what runs in the hypervisor */
	SONDE_COUNTER_NO_USER = 1 << 4,	   /* not what runs in user space */
	SONDE_COUNTER_NO_KERNEL =
	    1 << 5, /* not what runs in the kernel; context switches and migrations happen nowhere else, and are missing then */
	SONDE_COUNTER_NO_HOST = 1 << 6,	   /* not what runs outside of guests */
	SONDE_COUNTER_NO_GUEST = 1 << 7,   /* not what runs in guests */
	SONDE_COUNTER_NO_IDLE = 1 << 8,	   /* not while the CPU is idle */
	SONDE_COUNTER_PINNED = 1 << 9,	   /* always on the PMU, or an error: never in turn with others */
	SONDE_COUNTER_EXCLUSIVE = 1 << 10, /* the PMU for this group alone */
	SONDE_COUNTER_SCALE =
	    1 << 11, /* values that were counted a part of the time are estimated for all of it: value * enabled / running */
	SONDE_COUNTER_ONE_THREAD = 1 << 12,  /* sonde_counters_open: `pid` means that thread alone, not its process */
	SONDE_COUNTER_GROUP = 1 << 13,	     /* of a set: all its events are one group; the first is the leader */
	SONDE_COUNTER_NO_FALLBACK = 1 << 14, /* of a set: what may not be counted in the kernel is missing. Without it only user space is
						counted then (`is_user_only`) */
};

/* An event as the kernel takes it: struct perf_event_attr. sonde_event_parse fills it from a name. */
struct sonde_event {
	size_t size;              /* sizeof(struct sonde_event), for later versions; the same in all events of a list */
	char name[128];           /* for results and messages; empty: it gets one */
	uint32_t type;            /* PERF_TYPE_* or the number of a PMU */
	uint32_t group; /* 0: alone; events with the same number are one group, on the PMU all or none; the first of them is the leader.
			 * Without inheritance (SONDE_COUNTER_NO_INHERIT; CPUs and cgroups have none) they are also read at one moment */
	uint64_t config, config1, config2; /* of the PMUs uprobe and kprobe config1 is the address of a path or of a function's name, and
					      config2 the offset in it; borrowed for the call */
	uint64_t flags;           /* enum sonde_counter_flag, besides those of the set; not SCALE, ONE_THREAD, GROUP */
	/* Each so many events (or so many times a second, not both) an overflow is recorded, for sonde_counters_overflows and BPF programs;
	 * 0: it only counts. */
	uint64_t period, freq_hz;
};

/* One event by its name, as perf writes it:
 *   cycles, instructions, cache-misses, page-faults, context-switches, ...   what all machines call so (sonde_list(SONDE_LIST_EVENTS) has
 *   them)
 *   cpu_cycles, l1_data_read_miss, minor_page_faults, ...                     the same, by the names of `sonde stat --json`
 *   L1-dcache-loads, LLC-store-misses, dTLB-load-misses, ...                  caches
 *   r1a8                                                                      raw, hexadecimal
 *   cpu/event=0x3c,umask=1/, cpu/cache-misses/, msr/tsc/                      a PMU of this machine: terms or aliases of
 *   /sys/bus/event_source/devices
 *   cpu_core/cycles/                                                          one kind of cores, where there are several; cycles alone is
 *                                                                             the sum of all kinds
 *   sched:sched_switch                                                        a tracepoint
 * and behind it :u :k :h :H :G :I (user, kernel, hypervisor, host, guest only; not idle), :D (pinned), :e (exclusive); behind a slash also
 * without the colon.
 * -EINVAL: no such event; -ENOENT: no such PMU, alias or tracepoint; -EACCES: tracefs may not be read. `error` (may be NULL) gets the
 * reason, one line.
 * ret_event->size must be set before. */
__attribute__((warn_unused_result)) int sonde_event_parse(const char *text, struct sonde_event *ret_event, char *error, size_t error_bytes);

/* Sets of events with names of their own. */
enum sonde_event_kind {
	SONDE_EVENTS_HARDWARE = 1 << 0,
	SONDE_EVENTS_SOFTWARE = 1 << 1,
	SONDE_EVENTS_CACHE = 1 << 2,
};

/* --- a set ---------------------------------------------------------------------------------------------------------------------------- */

struct sonde_counters;

/* Zero means default. Lists and texts are borrowed for the call. */
struct sonde_counter_options {
	size_t size;                 /* sizeof(struct sonde_counter_options), for later versions */
	/* what: in this order, all that is given */
	const char *names;           /* "cycles,instructions,{cache-misses,cache-references}:u": braces make groups, leader first */
	const struct sonde_event *events;
	uint32_t nr_events;
	uint32_t kinds;              /* enum sonde_event_kind: all events of these kinds */
	/* whose, each once however often it is named: nothing is the calling thread */
	const uint32_t *tids;        /* threads */
	const uint32_t *tgids;       /* processes: the threads that they have, and those that these start */
	uint32_t nr_tids, nr_tgids;
	const char *cgroup;          /* of version 2, and those below it: its path, with or without the mount point, or its id in digits */
	/* where: nothing is every CPU; with cpus or all_cpus and nobody named: whatever runs there */
	const uint32_t *cpus;
	uint32_t nr_cpus;
	bool all_cpus;
	uint64_t flags;              /* enum sonde_counter_flag, of all events */
	uint32_t ring_bytes; /* for events with a period or frequency: memory for overflows per CPU: a power of two, from a page to 1 GiB;
				0: none, overflows are not recorded */
	uint32_t max_callers;        /* recorded with an overflow, kernel and user, by frame pointers: up to 127; 0: none */
};

/* Opens the set. When some events cannot be had, the set is returned with those that can, and the result is the first event's error; when
 * none can, *ret_counters is set as well (after -ENOMEM it may be NULL), so that each event's reason can be asked for;
 * sonde_counters_has_any tells the two apart. -EINVAL: options; -E2BIG: options that this version does not know, more than 1,024 events,
 * too many threads and CPUs; -ENODATA: no events were asked for; -ENOENT: no such cgroup, no such event; -EOPNOTSUPP: cgroups of version 2
 * are not mounted; -ESRCH: no such process; -EACCES, -EPERM: not permitted; -EMFILE: too many files open; what the kernel says for an
 * event. */
__attribute__((warn_unused_result)) int sonde_counters_new(const struct sonde_counter_options *options,
							   struct sonde_counters **ret_counters);
/* One event. `pid`: 0 the calling thread, -1 all, else a process; `cpu`: -1 any; -1 for both: all CPUs. `flags`: enum sonde_counter_flag.
 */
__attribute__((warn_unused_result)) int sonde_counters_open(uint32_t type, uint64_t config, int32_t pid, int32_t cpu, uint64_t flags,
							    struct sonde_counters **ret_counters);
void sonde_counters_free(struct sonde_counters *counters); /* closes */

/* Is there an event that counts? */
bool sonde_counters_has_any(const struct sonde_counters *counters);
uint32_t sonde_counters_nr(const struct sonde_counters *counters); /* also those that could not be had */
/* Why the last call with this set failed, of whichever thread; before one did: why the set as a whole, or its first missing event, could
 * not be had; "" when nothing is missing. One line, borrowed until the set is freed. */
const char *sonde_counters_error(const struct sonde_counters *counters);

/* What is known of an event of the set; the texts live as long as the set. */
struct sonde_counter_info {
	size_t size;            /* sizeof(struct sonde_counter_info), set before; for later versions */
	const char *name;       /* as it was asked for, or its usual name */
	const char *json_name;  /* in sonde's and perf-utils' JSON: "cpu_cycles"; NULL: it has none there */
	const char *unit;       /* "ns", "Joules", ...; "" for a plain number */
	double unit_scale;      /* one count is so many of the unit */
	uint32_t type;
	uint32_t group;
	uint64_t config;
	uint64_t flags;         /* enum sonde_counter_flag, of the event itself: its modifiers */
	const char *error;      /* why it could not be had, in words; "": it could */
	int32_t err;            /* the same as a negative errno; 0 */
	bool is_user_only;      /* what happens in the kernel was asked for as well, but may not be counted: it is left out */
	uint8_t reserved[3];
};

/* -EINVAL: no such event in the set, or no size. */
__attribute__((warn_unused_result)) int sonde_counters_info(const struct sonde_counters *counters, uint32_t i,
							    struct sonde_counter_info *ret_info);

/* All events; one that refuses keeps none of the others from it, and the first one's error is returned. */
__attribute__((warn_unused_result)) int sonde_counters_start(struct sonde_counters *counters);
__attribute__((warn_unused_result)) int sonde_counters_stop(struct sonde_counters *counters);
/* From now on values and times are those since this moment. Overflows that have been recorded stay. An event that cannot be read is not
 * reset, and the first one's error is returned. */
__attribute__((warn_unused_result)) int sonde_counters_reset(struct sonde_counters *counters);

struct sonde_count {
	uint64_t value;	      /* as the kernel counts: events, nanoseconds of clocks; times `unit_scale` it is in the event's `unit` (struct
				 sonde_counter_info) */
	uint64_t enabled_ns;  /* how long they were to be counted, added up over threads and CPUs */
	uint64_t running_ns;  /* how long they were counted: less when more was asked for than the PMU can count at once; 0: never, and
				 `value` says nothing */
	int32_t err;          /* 0, or why there is no value: a negative errno */
	bool scaled;          /* `value` was estimated (SONDE_COUNTER_SCALE) */
	uint8_t reserved[3];
};

/* The first `nr` events' counts; past the set's end -EINVAL. 0 when each of the set's open events has been read; else the first error,
 * which is also in its `err`. An event that could not be opened is no error here: its `err` says so. */
__attribute__((warn_unused_result)) int sonde_counters_read(struct sonde_counters *counters, struct sonde_count *ret_counts, uint32_t nr);

/* What was counted as one JSON object, as `sonde stat --format json` writes it (docs/formats.md). `counts`: of all of the set's events, as
 * read or as differences of such. `duration_ns`: the time that they are of, or 0. *ret_text is the caller's, to be freed by free(3).
 * -ENOMEM. */
__attribute__((warn_unused_result)) int sonde_counters_json(struct sonde_counters *counters, const struct sonde_count *counts,
							    uint64_t duration_ns, char **ret_text);

/* Estimates what would have been counted all of the time, as SONDE_COUNTER_SCALE does: for differences of counts. */
void sonde_count_scale(struct sonde_count *count);

/* --- around a function ---------------------------------------------------------------------------------------------------------------- */

/* Counts one event in the calling thread, and in what it starts, while `function` runs. Negative errno: it could not be counted, and the
 * function was not called or its count is lost; else what the function returned, which should not be negative. -EINVAL: no such event, or
 * more than one. What was counted a part of the time is estimated, as with SONDE_COUNTER_SCALE. `error` (may be NULL) gets the reason of a
 * failure, one line. */
__attribute__((warn_unused_result)) int sonde_count_function(const char *event, int (*function)(void *arg), void *arg,
							     struct sonde_count *ret_count, char *error, size_t error_bytes);
__attribute__((warn_unused_result)) int sonde_count_function_config(uint32_t type, uint64_t config, int (*function)(void *arg), void *arg,
								    struct sonde_count *ret_count, char *error, size_t error_bytes);

/* --- overflows and BPF ---------------------------------------------------------------------------------------------------------------- */

struct sonde_overflow {
	uint32_t event;         /* its number in the set */
	uint32_t tgid, tid;     /* as this process's PID namespace sees them */
	uint32_t cpu;
	uint64_t time_ns;       /* CLOCK_MONOTONIC */
	uint64_t pc;
	uint64_t period;        /* so many events since the last one */
	const uint64_t *callers; /* leaf first, with PERF_CONTEXT_* marks between kernel and user; borrowed for the call */
	uint32_t nr_callers;
	uint32_t reserved;
};

/* Hands on what was recorded since the last time, a ring after the other, and how many records found no room (before Linux 6.0 that is
 * known when the next one is recorded). -ENODATA: the set has no rings; -ENOMEM. The callback must not use the set; other threads that use
 * it wait meanwhile. */
__attribute__((warn_unused_result)) int sonde_counters_overflows(struct sonde_counters *counters,
								 void (*callback)(void *arg, const struct sonde_overflow *overflow),
								 void *arg, uint64_t *ret_nr_lost);
/* Waits until there are overflows. 1: there are; 0: none within the time, or until a signal came; -ESRCH: all that was counted has ended,
 * and nothing is left; -ENODATA as above; -ENOMEM. `timeout_ms` -1: for ever. */
__attribute__((warn_unused_result)) int sonde_counters_wait(struct sonde_counters *counters, int timeout_ms);

/* Runs a loaded BPF program (a perf event's for events with a period or frequency, a tracepoint's for a tracepoint) each time the event
 * overflows or happens. The descriptor stays the caller's, and may be closed. -EINVAL: no such event in the set; that for which it could
 * not be had; what the kernel says. */
__attribute__((warn_unused_result)) int sonde_counters_attach_bpf(struct sonde_counters *counters, uint32_t i, int program_fd);

/* --- what there is -------------------------------------------------------------------------------------------------------------------- */

enum sonde_list_kind {
	SONDE_LIST_PMUS,   /* of this machine: "cpu", "software", "uncore_imc_0", ... */
	SONDE_LIST_EVENTS, /* `within` a PMU: its aliases, "cpu/cache-misses/"; NULL: the names that all machines have, then the aliases of
			      all PMUs */
	SONDE_LIST_SUBSYSTEMS,	/* of tracepoints: "sched" */
	SONDE_LIST_TRACEPOINTS, /* "sched:sched_switch"; `within` a subsystem, or NULL */
	SONDE_LIST_TRACERS,	/* function tracers that the kernel has */
	SONDE_LIST_TRACER,	/* the one that is in use: "nop" */
};

struct sonde_names;
/* Sorted. On failure *ret_names is set as well (NULL after -ENOMEM), so that the reason can be asked for: -EINVAL: `within` is no name, or
 * `kind` no list; -ENOENT, -ENODEV: there is nothing of it; -EACCES, -EPERM: not permitted. Tracefs need not be mounted where we may mount
 * it for ourselves (CAP_SYS_ADMIN; nobody else sees that). */
__attribute__((warn_unused_result)) int sonde_list(enum sonde_list_kind kind, const char *within, struct sonde_names **ret_names);
const char *sonde_names_at(const struct sonde_names *names, uint32_t i); /* NULL ends */
const char *sonde_names_error(const struct sonde_names *names); /* one line */
void sonde_names_free(struct sonde_names *names);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
