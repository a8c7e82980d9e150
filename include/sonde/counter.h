/* SPDX-License-Identifier: Apache-2.0 */
/* counter: what the processors and the kernel count (perf_event_open(2)): cycles, cache misses, page faults, tracepoints, ... for a thread,
 * processes, a cgroup, CPUs or the whole machine.
 *
 * A struct sonde_counters is a set of one or more counters. They are opened together and numbered from 0 in the order in which they were
 * requested. Functions that can fail return 0 or a negative errno. Many threads may use a set at once; sonde_counters_free must be the last
 * call. Sets are independent of each other. Any thread may call all other functions at any time; nothing changes a list of names. NULL for
 * an object, and structs that begin with their size, are handled as <sonde/sonde.h> says. struct sonde_count and struct sonde_overflow,
 * which the library fills, have no size and will not change. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default) /* everything else in the library is hidden */
#endif

/* --- which events --------------------------------------------------------------------------------------------------------------------- */

/* Flags of one event or of all events of a set. Without flags the hypervisor is left out, threads and processes that are started later are
 * counted as well, and counting begins with sonde_counters_start. */
enum sonde_counter_flag {
	SONDE_COUNTER_ENABLED = 1 << 0,	   /* counts as soon as it is opened */
	SONDE_COUNTER_ON_EXEC = 1 << 1,	   /* begins to count when the thread calls execve(2) */
	SONDE_COUNTER_NO_INHERIT = 1 << 2, /* leaves out what the counted threads start later */
	SONDE_COUNTER_HYPERVISOR = 1 << 3, /* also counts what runs in the hypervisor */
	SONDE_COUNTER_NO_USER = 1 << 4,	   /* leaves out what runs in user space */
	SONDE_COUNTER_NO_KERNEL = 1 << 5,  /* leaves out what runs in the kernel, so context switches and migrations are never counted */
	SONDE_COUNTER_NO_HOST = 1 << 6,	   /* leaves out what runs outside of guests */
	SONDE_COUNTER_NO_GUEST = 1 << 7,   /* leaves out what runs in guests */
	SONDE_COUNTER_NO_IDLE = 1 << 8,	   /* does not count while the CPU is idle */
	SONDE_COUNTER_PINNED = 1 << 9,	   /* always on the PMU, or an error: never in turn with others */
	SONDE_COUNTER_EXCLUSIVE = 1 << 10, /* the PMU for this group alone */
	SONDE_COUNTER_SCALE = 1 << 11,	   /* scales values that were counted for a part of the time: value * enabled / running */
	SONDE_COUNTER_ONE_THREAD = 1 << 12,  /* sonde_counters_open: `pid` means that thread alone, not its process */
	SONDE_COUNTER_GROUP = 1 << 13,	     /* of a set: all its events are one group; the first is the leader */
	/* Of a set: an event that may not be counted in the kernel is missing. Without this flag it counts user space only
	 * (is_user_only). */
	SONDE_COUNTER_NO_FALLBACK = 1 << 14,
};

/* An event as in the kernel's struct perf_event_attr. sonde_event_parse fills it from a name. */
struct sonde_event {
	size_t size;              /* sizeof(struct sonde_event), for later versions; the same in all events of a list */
	char name[128];           /* for results and messages; empty: the library chooses one */
	uint32_t type;            /* PERF_TYPE_* or the number of a PMU */
	/* 0: no group. Events with the same number are one group, on the PMU all or none; the first is the leader. Without inheritance
	 * (SONDE_COUNTER_NO_INHERIT; CPUs and cgroups have none) they are also read at one moment. */
	uint32_t group;
	/* For the PMUs uprobe and kprobe config1 is the address of a path or of a function's name, and config2 the offset in it; both are
	 * borrowed for the call. */
	uint64_t config, config1, config2;
	uint64_t flags;           /* enum sonde_counter_flag, added to those of the set; not SCALE, ONE_THREAD, GROUP */
	/* An overflow is recorded every `period` events, or `freq_hz` times a second (not both), for sonde_counters_overflows and BPF
	 * programs; both 0: it only counts. */
	uint64_t period, freq_hz;
};

/* Parses the name of one event, as perf writes it:
 *    cycles, instructions, cache-misses, page-faults, context-switches, ...   generic names (sonde_list(SONDE_LIST_EVENTS) has them)
 *    cpu_cycles, l1_data_read_miss, minor_page_faults, ...                    the same events by the names of `sonde stat --json`
 *    L1-dcache-loads, LLC-store-misses, dTLB-load-misses, ...                 caches
 *    r1a8                                                                     raw, hexadecimal
 *    cpu/event=0x3c,umask=1/, cpu/cache-misses/, msr/tsc/                     a PMU of this machine: terms or aliases
 *    cpu_core/cycles/                                                         one kind of core of a hybrid machine
 *    sched:sched_switch                                                       a tracepoint
 * PMUs are those of /sys/bus/event_source/devices. On a hybrid machine `cycles` is the sum over all kinds of cores. A suffix restricts the
 * event: :u :k :h :H :G :I (user, kernel, hypervisor, host, guest only; not idle), :D (pinned), :e (exclusive); behind a slash also without
 * the colon. -EINVAL: no such event; -ENOENT: no such PMU, alias or tracepoint; -EACCES: tracefs is not readable. `error` (may be NULL)
 * gets the reason, one line. ret_event->size must be set before. */
__attribute__((warn_unused_result)) int sonde_event_parse(const char *text, struct sonde_event *ret_event, char *error, size_t error_bytes);

/* Kinds of events that have generic names. */
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
	/* what: all that is given, in this order */
	const char *names;           /* "cycles,instructions,{cache-misses,cache-references}:u": braces make groups, leader first */
	const struct sonde_event *events;
	uint32_t nr_events;
	uint32_t kinds;              /* enum sonde_event_kind: all events of these kinds */
	/* targets: each is counted once, even if it is given twice; none: the calling thread */
	const uint32_t *tids;        /* threads */
	const uint32_t *tgids;       /* processes: their threads, and what these start */
	uint32_t nr_tids, nr_tgids;
	const char *cgroup;          /* a cgroup v2 and those below it: its path, with or without the mount point, or its id in digits */
	/* where: none: every CPU; with cpus or all_cpus and no targets: whatever runs there */
	const uint32_t *cpus;
	uint32_t nr_cpus;
	bool all_cpus;
	uint64_t flags;              /* enum sonde_counter_flag, of all events */
	/* For events with a period or frequency: memory for overflows per CPU: a power of two, from a page to 1 GiB; 0: overflows are not
	 * recorded. */
	uint32_t ring_bytes;
	uint32_t max_callers;        /* callers recorded with an overflow, kernel and user, by frame pointers: up to 127; 0: none */
};

/* Opens the set. If some events cannot be opened, the set has the others, and the result is the first event's error. If no event can be
 * opened, *ret_counters is still set (after -ENOMEM it may be NULL), so that each event's reason can be read. sonde_counters_has_any tells
 * both cases apart. -EINVAL: bad options; -E2BIG: options that this version does not know, more than 1,024 events, or too many threads and
 * CPUs; -ENODATA: no events were requested; -ENOENT: no such cgroup or event; -EOPNOTSUPP: cgroup v2 is not mounted; -ESRCH: no such
 * process; -EACCES, -EPERM: not permitted; -EMFILE: too many open files; or the kernel's error for an event. */
__attribute__((warn_unused_result)) int sonde_counters_new(const struct sonde_counter_options *options,
							   struct sonde_counters **ret_counters);
/* Opens a set of one event. `pid` 0: the calling thread, -1: all, else a process. `cpu` -1: any; -1 for both: all CPUs. `flags`: enum
 * sonde_counter_flag. */
__attribute__((warn_unused_result)) int sonde_counters_open(uint32_t type, uint64_t config, int32_t pid, int32_t cpu, uint64_t flags,
							    struct sonde_counters **ret_counters);
void sonde_counters_free(struct sonde_counters *counters); /* closes the set */

/* True: at least one event could be opened. */
bool sonde_counters_has_any(const struct sonde_counters *counters);
uint32_t sonde_counters_nr(const struct sonde_counters *counters); /* including events that could not be opened */
/* Why the last call with this set failed, on any thread. Before any failure: why the set as a whole, or its first missing event, could not
 * be opened; "" when nothing is missing. One line, borrowed until the set is freed. */
const char *sonde_counters_error(const struct sonde_counters *counters);

/* Description of an event of a set; the texts live as long as the set. */
struct sonde_counter_info {
	size_t size;            /* sizeof(struct sonde_counter_info), set before the call; for later versions */
	const char *name;       /* as it was requested, or its usual name */
	const char *json_name;  /* in sonde's and perf-utils' JSON: "cpu_cycles"; NULL: it has no name there */
	const char *unit;       /* "ns", "Joules", ...; "" for a plain number */
	double unit_scale;      /* size of one count in this unit */
	uint32_t type;
	uint32_t group;
	uint64_t config;
	uint64_t flags;         /* enum sonde_counter_flag, of the event itself: its modifiers */
	const char *error;      /* why it could not be opened, in words; "": it is open */
	int32_t err;            /* the same as a negative errno; 0: it is open */
	bool is_user_only;      /* the kernel was requested too, but may not be counted: only user space is counted */
	uint8_t reserved[3];
};

/* -EINVAL: no such event in the set, or no size. */
__attribute__((warn_unused_result)) int sonde_counters_info(const struct sonde_counters *counters, uint32_t i,
							    struct sonde_counter_info *ret_info);

/* Start and stop all events. If one fails, the others are still tried, and the first one's error is returned. */
__attribute__((warn_unused_result)) int sonde_counters_start(struct sonde_counters *counters);
__attribute__((warn_unused_result)) int sonde_counters_stop(struct sonde_counters *counters);
/* Sets values and times back to 0. Overflows that were recorded stay. An event that cannot be read is not reset, and the first one's error
 * is returned. */
__attribute__((warn_unused_result)) int sonde_counters_reset(struct sonde_counters *counters);

struct sonde_count {
	/* As the kernel counts: events, or nanoseconds of clocks. The event's `unit_scale` converts it to `unit` (struct
	 * sonde_counter_info). */
	uint64_t value;
	uint64_t enabled_ns;  /* how long the event was enabled, added up over threads and CPUs */
	/* How long it was counted: less than enabled_ns when the PMU cannot count all requested events at once; 0: never, and `value` is
	 * meaningless. */
	uint64_t running_ns;
	int32_t err;          /* 0, or why there is no value: a negative errno */
	bool scaled;          /* `value` is an estimate (SONDE_COUNTER_SCALE) */
	uint8_t reserved[3];
};

/* Reads the counts of the first `nr` events; -EINVAL when the set has fewer. 0: all open events of the set were read; else the first error,
 * which is also in its `err`. An event that could not be opened is no error here: its `err` says so. */
__attribute__((warn_unused_result)) int sonde_counters_read(struct sonde_counters *counters, struct sonde_count *ret_counts, uint32_t nr);

/* Writes the counts as one JSON object, as `sonde stat --format json` does (docs/formats.md). `counts`: of all events of the set, as read,
 * or differences of two reads. `duration_ns`: the time that they cover, or 0. The caller frees *ret_text with free(3). -ENOMEM. */
__attribute__((warn_unused_result)) int sonde_counters_json(struct sonde_counters *counters, const struct sonde_count *counts,
							    uint64_t duration_ns, char **ret_text);

/* Estimates the count for the whole enabled time, as SONDE_COUNTER_SCALE does: for differences of counts. */
void sonde_count_scale(struct sonde_count *count);

/* --- around a function ---------------------------------------------------------------------------------------------------------------- */

/* Counts one event in the calling thread, and in what it starts, while `function` runs. Returns a negative errno if the event could not be
 * counted: the function was not called, or its count is lost. Else returns the function's result, which should not be negative. -EINVAL: no
 * such event, or more than one. What was counted for a part of the time is scaled, as with SONDE_COUNTER_SCALE. `error` (may be NULL) gets
 * the reason of a failure, one line. */
__attribute__((warn_unused_result)) int sonde_count_function(const char *event, int (*function)(void *arg), void *arg,
							     struct sonde_count *ret_count, char *error, size_t error_bytes);
__attribute__((warn_unused_result)) int sonde_count_function_config(uint32_t type, uint64_t config, int (*function)(void *arg), void *arg,
								    struct sonde_count *ret_count, char *error, size_t error_bytes);

/* --- overflows and BPF ---------------------------------------------------------------------------------------------------------------- */

struct sonde_overflow {
	uint32_t event;         /* the event's number in the set */
	uint32_t tgid, tid;     /* as this process's PID namespace sees them */
	uint32_t cpu;
	uint64_t time_ns;       /* CLOCK_MONOTONIC */
	uint64_t pc;
	uint64_t period;        /* number of events since the last overflow */
	const uint64_t *callers; /* leaf first, with PERF_CONTEXT_* marks between kernel and user; borrowed for the call */
	uint32_t nr_callers;
	uint32_t reserved;
};

/* Passes what was recorded since the last call to the callback, one ring after the other. *ret_nr_lost is the number of records that did
 * not fit (before Linux 6.0 a loss is known only when the next record is written). -ENODATA: the set has no rings; -ENOMEM. The callback
 * must not use the set; other threads that use it wait meanwhile. */
__attribute__((warn_unused_result)) int sonde_counters_overflows(struct sonde_counters *counters,
								 void (*callback)(void *arg, const struct sonde_overflow *overflow),
								 void *arg, uint64_t *ret_nr_lost);
/* Waits for overflows. 1: there are some; 0: timeout, or a signal arrived; -ESRCH: all targets have ended, and nothing is left to read;
 * -ENODATA: as above; -ENOMEM. `timeout_ms` -1: no timeout. */
__attribute__((warn_unused_result)) int sonde_counters_wait(struct sonde_counters *counters, int timeout_ms);

/* Attaches a loaded BPF program, which then runs each time the event overflows or happens: a perf event program for events with a period or
 * frequency, a tracepoint program for a tracepoint. The descriptor stays the caller's and may be closed. -EINVAL: no such event in the set;
 * the event's own error if it could not be opened; or the kernel's error. */
__attribute__((warn_unused_result)) int sonde_counters_attach_bpf(struct sonde_counters *counters, uint32_t i, int program_fd);

/* --- lists ---------------------------------------------------------------------------------------------------------------------------- */

enum sonde_list_kind {
	SONDE_LIST_PMUS,   /* of this machine: "cpu", "software", "uncore_imc_0", ... */
	SONDE_LIST_EVENTS, /* `within` a PMU: its aliases, "cpu/cache-misses/"; NULL: the generic names, then the aliases of all PMUs */
	SONDE_LIST_SUBSYSTEMS,	/* of tracepoints: "sched" */
	SONDE_LIST_TRACEPOINTS, /* "sched:sched_switch"; `within` a subsystem, or NULL */
	SONDE_LIST_TRACERS,	/* the kernel's function tracers */
	SONDE_LIST_TRACER,	/* the tracer in use: "nop" */
};

struct sonde_names;
/* Returns a sorted list. On failure *ret_names is still set (NULL after -ENOMEM), so that the reason can be read. -EINVAL: bad `within` or
 * `kind`; -ENOENT, -ENODEV: not on this machine; -EACCES, -EPERM: not permitted. Tracefs need not be mounted if this process may mount it
 * for itself (CAP_SYS_ADMIN; no other process sees that mount). */
__attribute__((warn_unused_result)) int sonde_list(enum sonde_list_kind kind, const char *within, struct sonde_names **ret_names);
const char *sonde_names_at(const struct sonde_names *names, uint32_t i); /* NULL ends */
const char *sonde_names_error(const struct sonde_names *names); /* the reason of a failure, one line */
void sonde_names_free(struct sonde_names *names);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
