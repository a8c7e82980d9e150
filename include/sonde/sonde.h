/* SPDX-License-Identifier: Apache-2.0 */
/* sonde: the library's public interface. A session configures a measurement, takes it and writes it. Functions that can fail return 0 or a
 * negative errno and leave the reason in the session as one line (sonde_session_error). Returned texts are borrowed from the session until
 * sonde_session_free. A session belongs to one thread; only sonde_session_stop may be called from any thread and from signal handlers.
 *
 * All functions accept NULL for an object (a session, a profile, ...), which is what -ENOMEM leaves. Then _error says that there was no
 * memory, _exit_code is SONDE_EXIT_FAILED, functions that can fail return -EINVAL, other texts are empty or at their end, numbers are 0 and
 * answers are false.
 *
 * Option structs begin with `size`, the caller's sizeof. Zeroed memory means defaults (in C++: `struct sonde_session_options options =
 * {};`). A struct of an older version is accepted. One of a newer version is accepted if all fields that this version does not know are
 * zero; else the call returns -E2BIG. Without a size: -EINVAL. */
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

#define SONDE_DEFAULT_FREQ_HZ 49
#define SONDE_DEFAULT_STACK_STORAGE 16384
#define SONDE_DEFAULT_UNWIND_BYTES (64u << 20)
#define SONDE_DEFAULT_DEBUGINFOD_TIMEOUT_NS INT64_C(5000000000)

/* Exit codes of all verbs; sonde_session_exit_code() returns them. */
enum sonde_exit {
	SONDE_EXIT_REPORT = 0,
	SONDE_EXIT_FAILED = 1,
	SONDE_EXIT_USAGE = 2,
	SONDE_EXIT_NOT_PERMITTED = 3,
	SONDE_EXIT_KERNEL_CANNOT = 4,
	SONDE_EXIT_NO_SAMPLES = 5,
	SONDE_EXIT_NOT_EXECUTABLE = 126, /* the command is not executable; as in a shell */
	SONDE_EXIT_NO_COMMAND = 127,
};

/* What a session measures. */
enum sonde_mode {
	SONDE_ON_CPU,    /* where threads use a CPU: samples at each tick of an event */
	SONDE_OFF_CPU,   /* where they wait, and for how long: by the scheduler's events */
	SONDE_WALL,      /* both: all of the threads' time, running, runnable and blocked */
	SONDE_RUN_QUEUE, /* how long they wait for a CPU, how long they stay on it, how many of them wait */
	SONDE_COUNT,     /* events, by counters: no stacks, no profile */
	SONDE_FILES,     /* files that are opened: lines or sums */
	SONDE_IO,        /* what is read and written, by process and file: sums */
	SONDE_LEAK,      /* memory that was allocated and not freed, by probes of the allocator's functions */
	SONDE_TRACE,     /* hits of tracepoints, system calls and functions: counts, times, lines */
	SONDE_TRACE_STACKS, /* the same with stacks: a profile, or with `print` and SONDE_BY_STACK lines */
	SONDE_ALLOC,     /* who allocates memory: all that was allocated, and what of it is not free; by the same probes */
	SONDE_RESIDENT,  /* where resident memory grows: by the kernel's counters, on the whole machine if no target is given */
	SONDE_LEAK_KERNEL, /* as SONDE_LEAK, for the kernel's own memory: no targets */
	SONDE_ALLOC_WINDOWS, /* as SONDE_ALLOC, estimated from short windows, at next to no cost; not what is freed */
};

/* A number of a window's account. The texts live for ever; groups and names are those of one mode, always the same in the same order. */
struct sonde_window_count {
	/* "samples": "recorded" (also of waits), "expected" (that were due), "late" (whose stacks were deferred). "filtered" (not
	 * requested) and "lost": a reason. "stacks": where the user stack of a recorded sample ends, "complete" or a reason. "missed": what
	 * recorded samples lack, "user" and "kernel" (that stack), "runtime" (interpreters' frames), "labels". "events_lost": "sideband"
	 * (processes, mappings). "audit": "agreed", "differed", "not_comparable". "processes": of each runtime, and "other". */
	const char *group, *name;
	uint64_t nr;
	bool is_level;              /* since the session began, as of the window's end; else of the window alone */
};

/* A window that was resolved and written to the outputs. */
struct sonde_window {
	size_t size;                /* sizeof(struct sonde_window) */
	uint32_t number;            /* from 1 on */
	uint64_t start_unix_ns, duration_ns;
	uint64_t nr_samples;        /* or number of waits */
	int err;                    /* 0, or a negative errno: the window could not be made, or not written to all outputs */
	/* For the callback `profile` alone: what was recorded and lost; borrowed for the call. */
	const struct sonde_window_count *counts;
	uint32_t nr_counts;
};

/* What probes will cost, before they are set. */
struct sonde_expected {
	size_t size;                /* sizeof(struct sonde_expected) */
	double calls_per_s;         /* that will be probed */
	double slow_down;           /* times as much CPU time; 1: none */
	bool is_least;              /* or more: it could not be told how much */
};

/* --- options of a measurement: one struct per mode; zero means default, a NULL struct means all zeros --------------------------------- */

struct sonde_sampling_options { /* SONDE_ON_CPU, SONDE_WALL */
	size_t size;                /* sizeof(struct sonde_sampling_options) */
	const char *event;          /* perf's name, such as "cycles:u"; NULL: cpu-clock */
	bool no_fallback;           /* fail instead of falling back to cpu-clock */
	uint64_t freq_hz, period;   /* samples per second and CPU, or events per sample; not both; neither: SONDE_DEFAULT_FREQ_HZ */
	const uint32_t *cpu;        /* only this CPU; NULL: all */
	bool idle;                  /* also sample idle CPUs */
};

#define SONDE_STATE_PREEMPTED (-1)

struct sonde_wait_options { /* SONDE_OFF_CPU, SONDE_WALL */
	size_t size;                /* sizeof(struct sonde_wait_options) */
	uint64_t min_ns, max_ns;    /* shorter and longer waits are left out; max 0: no limit */
	int32_t state;              /* 0: any; SONDE_STATE_PREEMPTED; else one bit of the kernel's thread state: 1, 2, ... */
	bool user_threads_only, kernel_threads_only;
	bool wake;                  /* also record who ended the wait */
	bool count_waits;           /* formats with room for one value write the number of waits, not their time */
	bool histograms;            /* of the waits' durations, in total and per stack */
	/* Limit of the BPF programs' share of the machine's time: above it min_ns is raised; 0: no limit. Not with SONDE_WALL. */
	uint32_t max_overhead_percent;
	const char *events;         /* file that gets each switch and wake-up (docs/formats.md); NULL: none */
};

#define SONDE_DEFAULT_SLOWER_NS UINT64_C(10000000)
#define SONDE_RUNQ_LENGTH_HZ 99

enum sonde_runq_what {
	SONDE_RUNQ_LATENCY, /* from wake-up or preemption to running, as the scheduler counts it: /proc/PID/schedstat has the sum */
	SONDE_RUNQ_ON_CPU,  /* how long threads stay on the CPU at a time */
	SONDE_RUNQ_LENGTH,  /* how many threads wait beside the running one, read on each CPU SONDE_RUNQ_LENGTH_HZ times a second */
};

/* How histograms are grouped. */
enum sonde_runq_by { SONDE_RUNQ_WHOLE, SONDE_RUNQ_BY_PID, SONDE_RUNQ_BY_TID, SONDE_RUNQ_BY_CPU, SONDE_RUNQ_BY_CGROUP, SONDE_RUNQ_BY_COMM };

/* With `every_ns`, the callback `text` gets a report after each interval. The profile has the histograms of the whole run. */
struct sonde_runq_options { /* SONDE_RUN_QUEUE */
	size_t size;                /* sizeof(struct sonde_runq_options) */
	enum sonde_runq_what what;
	enum sonde_runq_by by;
	bool milliseconds;          /* instead of microseconds */
	bool timestamps;            /* print the time before each report */
	bool quiet;                 /* no reports as text, only the profile */
	/* SONDE_RUNQ_LATENCY: a line for each wait longer than slower_ns (0: SONDE_DEFAULT_SLOWER_NS) as it ends, instead of histograms. */
	bool slower;
	uint64_t slower_ns;
	bool histogram;             /* with slower: also the histogram, at the end */
	bool stacks;                /* with slower: below each line the stacks of the thread that had the CPU, leaf first */
};

/* How lines are written. */
enum sonde_lines {
	SONDE_LINES_TEXT,
	SONDE_LINES_BPFTRACE,       /* the words of bpftrace's one-line program for the same */
	SONDE_LINES_JSON,           /* an object per line; docs/formats.md */
};

/* What sums are grouped by. */
enum sonde_by { SONDE_BY_PID = 1, SONDE_BY_COMM = 2, SONDE_BY_FILE = 4, SONDE_BY_CALL = 8, SONDE_BY_TID = 16, SONDE_BY_CPU = 32,
		SONDE_BY_STACK = 64 };

struct sonde_files_options { /* SONDE_FILES */
	size_t size;                /* sizeof(struct sonde_files_options) */
	enum sonde_lines format;
	bool failed_only;           /* only calls that failed */
	bool sums;                  /* no line for each call, but sums after each `every_ns` and at the end */
	bool timestamps;            /* with sums: the time before each report */
	uint32_t by;                /* with sums: bits of enum sonde_by, without SONDE_BY_CALL; 0: SONDE_BY_FILE */
	uint32_t top;               /* with sums: the largest so many; 0: all */
};

struct sonde_io_options { /* SONDE_IO: sums after each `every_ns` and at the end */
	size_t size;                /* sizeof(struct sonde_io_options) */
	enum sonde_lines format;    /* not SONDE_LINES_BPFTRACE */
	bool requested;             /* sum what calls asked for, not what they transferred */
	bool timestamps;            /* the time before each report */
	uint32_t by;                /* bits of enum sonde_by; 0: SONDE_BY_PID | SONDE_BY_FILE */
	uint32_t top;               /* the largest so many; 0: all */
};

#define SONDE_DEFAULT_MAX_LIVE 1000000

/* With `every_ns`, each window's profile has the blocks that are allocated at its end. */
struct sonde_leak_options { /* SONDE_LEAK, SONDE_ALLOC: processes or a command are required; SONDE_LEAK_KERNEL */
	size_t size;                /* sizeof(struct sonde_leak_options) */
	uint64_t older_than_ns;     /* report only blocks of this age; 0: all */
	uint64_t min_bytes, max_bytes; /* track only allocations of these sizes; max 0: no limit */
	uint32_t sample_rate;       /* track one in so many allocations, by chance; each then counts as so many. 0 and 1: all */
	uint32_t max_live;          /* blocks tracked at a time; more are counted and left out; 0: SONDE_DEFAULT_MAX_LIVE */
	bool each;                  /* each block is a sample of its own, with the label "address" */
	bool children;              /* of the command: too. The probes are then in every process that maps the allocator's file */
	const char *object;         /* probe only this file: a path, or a name such as "libc"; NULL: every allocator */
	/* Sample by bytes: points lie on them at random, one in so many; a block with a point in it is tracked, and counts as many as its
	 * chance says, so that sums are right in the mean. 0: all. Not with sample_rate. */
	uint64_t sample_bytes;
	bool histograms;            /* SONDE_ALLOC: of sizes and lifetimes, also for each stack; without it for all together */
};

struct sonde_trace_options { /* SONDE_TRACE, SONDE_TRACE_STACKS */
	size_t size;                /* sizeof(struct sonde_trace_options) */
	const char *probes;         /* "syscall:openat,uprobe:/bin/bash:readline"; separated by commas */
	const char *filter;         /* "fd > 2 && comm ^= \"ng\""; NULL: none */
	enum sonde_lines format;    /* not SONDE_LINES_BPFTRACE */
	uint32_t by;                /* bits of enum sonde_by: pid, tid, comm, cpu, of SONDE_TRACE_STACKS stack; 0: one sum for each probe */
	const char *by_arg;         /* and by this argument; NULL: none */
	bool latency;               /* times from entry to return, of functions and system calls */
	bool print;                 /* a line for each hit, with its arguments */
};

struct sonde_counter_options;

/* Zero means default. Lists and texts are borrowed until sonde_session_new returns. */
struct sonde_session_options {
	size_t size;                /* sizeof(struct sonde_session_options) */
	const char *command_line;   /* for the report */
	enum sonde_mode mode;
	const struct sonde_sampling_options *sampling; /* structs of other modes are ignored */
	const struct sonde_wait_options *waits;
	const struct sonde_runq_options *runq;
	/* SONDE_COUNT; <sonde/counter.h>. The targets below apply. Without targets: everything that runs; with a command and no CPUs: the
	 * command, from its execve(2) on. */
	const struct sonde_counter_options *counters;
	const struct sonde_files_options *files;
	const struct sonde_io_options *io;
	const struct sonde_trace_options *trace;
	uint64_t duration_ns;       /* 0: until stopped, or until the targets have ended */
	/* targets */
	const uint32_t *tgids, *tids; /* not both */
	uint32_t nr_tgids, nr_tids;
	const char *comm;           /* name of the thread or of its process: up to 15 bytes, as the kernel keeps it */
	const char *cgroup;         /* this cgroup v2 and those below it: its path, with or without the mount point, or its id in digits */
	/* NULL, or the argv of a command that is started when measuring has begun; its children are followed. Not with SONDE_RUN_QUEUE.
	 * With SONDE_COUNT also beside processes, threads or a cgroup: then the command only sets the duration. */
	char *const *command;
	/* stacks */
	bool user_only, kernel_only;
	/* Maximum number of different stacks; 0: no fixed number, but up to 256 MiB of them, and SONDE_DEFAULT_STACK_STORAGE within a tenth
	 * of a second. */
	uint64_t stack_storage;
	uint64_t unwind_bytes;      /* kernel memory for unwind tables and mappings, at least 256 KiB; 0: SONDE_DEFAULT_UNWIND_BYTES */
	bool no_unwind_cache;       /* do not read or write compiled unwind tables on disk */
	uint32_t audit_every;       /* unwind one in this many user stacks again with libdw and count the differences; 0: none */
	bool timestamps;            /* keep the time of each sample, for formats that have it: 80 bytes of memory per sample */
	bool lines, no_lines;       /* look up source lines and inlined functions / do not; neither: only for formats that show them */
	bool as_linked;             /* addresses as if files were mapped where they are linked: processes of a file share its locations */
	bool addresses;             /* code in files keeps its addresses, without names: whoever reads the profile looks them up */
	const char *vmlinux;        /* with lines: the running kernel's file with debug info; NULL: search for it */
	/* How long after the end of sampling the report may wait for debug files from $DEBUGINFOD_URLS; 0:
	 * SONDE_DEFAULT_DEBUGINFOD_TIMEOUT_NS; -1: not at all. */
	int64_t debuginfod_timeout_ns;
	/* how stacks are written */
	bool delimited, annotate;   /* a line (in folded stacks: a frame) between kernel and user frames; _[k] behind kernel functions */
	bool offsets, threads;      /* write function+offset, one stack per address; keep the threads of a process apart */
	/* Windows: one profile per `every_ns`, resolved and written to the outputs while the next one is recorded; 0: one profile for the
	 * whole run. The file name of each output has %n, the window's number, or %t, the time (UTC) at which the window began:
	 * 20261123T164128Z, followed by the number (20261123T164128Z-7) when an earlier or a later window has the same second. %% is a
	 * percent sign. */
	uint64_t every_ns;
	uint32_t keep;              /* how many files of each output to keep; older ones are removed; 0: all */
	/* Callbacks of sonde_session_run; each may be NULL. `started`: measuring has begun. `progress`: at most five times a second.
	 * `window`: after a window was written; until the next one, sonde_session_warning and _account describe this window. With
	 * SONDE_COUNT `window` is called after each interval, including the last or only one, when its counts can be read. `text`: lines
	 * that are reported during the run (SONDE_RUN_QUEUE, SONDE_FILES and SONDE_IO need it); called from any thread, one call at a time.
	 * A value other than 0 ends the run, and sonde_session_run returns it. */
	void (*started)(void *arg);
	void (*progress)(void *arg, uint64_t elapsed_ns, uint64_t nr_samples);
	void (*window)(void *arg, const struct sonde_window *window);
	int (*text)(void *arg, const char *lines);
	void *arg;
	const struct sonde_leak_options *leak; /* as `sampling` and the others */
	uint32_t max_stacks;        /* of memory (SONDE_LEAK, ...): text has so many stacks, the largest; 0: all */
	/* SONDE_LEAK, SONDE_ALLOC of processes that run: called before anything is probed. Not 0: nothing is; the run fails. NULL: nothing
	 * is counted beforehand. */
	int (*expected)(void *arg, const struct sonde_expected *expected);
	/* So many lines of source before and after: with `lines`, in text of memory, of the line of each frame; in HTML of those with
	 * samples of the hottest functions, and their instructions. Only of files that everybody may read, or ours unless we are root. */
	uint32_t source_lines;
	/* With `every_ns`: called with each window's profile in the format `profile_format` (sonde_format_name), beside the outputs. Called
	 * from another thread, one call at a time; the recording goes on meanwhile. Bytes and window are borrowed for the call. A negative
	 * errno counts as a window that was not written. */
	const char *profile_format;
	int (*profile)(void *arg, const struct sonde_window *window, const void *bytes, size_t size);
	/* Give each sample labels that say what its process belongs to, by OpenTelemetry's names: service.name, process.executable.name,
	 * container.id, k8s.pod.uid, process.linux.cgroup (docs/formats.md). For SONDE_ON_CPU, SONDE_OFF_CPU,
	 * SONDE_WALL and SONDE_TRACE_STACKS. A process that has ended before it was read has none, nor have waits of one that has run two
	 * programs in a window; the account counts both. */
	bool process_labels;
	/* With process_labels: names of environment variables, at most 16, NULL behind the last: a process that has them gets the labels
	 * process.environment_variable.NAME, of 255 bytes at most. No other variable of a process is kept. NULL: none. */
	const char *const *environment;
	/* The languages whose frames are walked: "python,java", by sonde_runtime_name; "none"; "all" or NULL. Of others the frames of their
	 * interpreters are recorded, as of any program. */
	const char *runtimes;
	/* With `profile` and `timestamps`: called as `profile`, before it, with the same profile. This one has the times of samples, that
	 * one has not, so that it is small. NULL: `profile` gets them. */
	int (*timed_profile)(void *arg, const struct sonde_window *window, const void *bytes, size_t size);
	/* While it measures, have the processes `tgids` write perf maps, /tmp/perf-PID.map, if their runtime can be asked for that: .NET 8
	 * and newer. Their functions have names then. The file stays. For modes with stacks. */
	bool perf_map;
};

/* Untrusted files are read in a worker, a process without rights: the program that uses the library, started once more. So the program's
 * main must call this function first. True: this process was a worker and has done its work; main returns *ret_code. If the program does
 * not make this call, functions that need a worker fail with -ELOOP. */
bool sonde_is_worker(int argc, char **argv, int *ret_code);

struct sonde_session;
struct sonde_counters;

/* Checks the options, loads the BPF programs and prepares everything; nothing is measured yet. On failure *ret_session is still set, so
 * that the reason can be read (after -ENOMEM it is NULL). */
__attribute__((warn_unused_result)) int sonde_session_new(const struct sonde_session_options *options, struct sonde_session **ret_session);
void sonde_session_free(struct sonde_session *session); /* kills only what it started */
const char *sonde_session_error(const struct sonde_session *session);
int sonde_session_exit_code(const struct sonde_session *session); /* enum sonde_exit for the last failure or the run so far */

/* Measures until the duration is over, the targets have ended, or the session is stopped; then resolves symbols. While it measures stacks,
 * the nice value of the calling thread is ten lower, where that is permitted. May be called once; -EINVAL for a session that has run
 * already or could not be made. */
__attribute__((warn_unused_result)) int sonde_session_run(struct sonde_session *session);
/* Stops the run. Async-signal-safe; any thread may call it, at any time after _new. After a second call, symbol resolution has one more
 * second; then unresolved frames are written as addresses, and the account says so. */
void sonde_session_stop(struct sonde_session *session);
/* SONDE_ON_CPU and SONDE_WALL with windows, a clock and a rate: when the window is closed the rate becomes this one. For callbacks of
 * the session's own thread: `started`, `progress`, `window`. -EINVAL: it has no rate or no windows. */
__attribute__((warn_unused_result)) int sonde_session_set_rate(struct sonde_session *session, uint64_t freq_hz);
/* With windows: when the window is closed, unwind tables and mappings take at most so many bytes, at most what the options said, and names
 * that are kept for later windows an eighth of it: what is beyond is evicted, the least recently used first. For the same callbacks.
 * -EINVAL: it has no windows, or the number is below one chunk of tables (256 KiB) or above the options'. */
__attribute__((warn_unused_result)) int sonde_session_set_memory(struct sonde_session *session, uint64_t unwind_bytes);
/* True: the command has ended, and *ret_status is its wait status as of waitpid(2). */
bool sonde_session_command_status(const struct sonde_session *session, int *ret_status);
/* True after the run: the command was told to end and did not within a second. A warning has its process id. */
bool sonde_session_command_goes_on(const struct sonde_session *session);
/* SONDE_COUNT: the session's set of counters; NULL: none. It also exists when the session could not be made, as some events may be open. It
 * lives as long as the session. Only read it: the session starts and stops it. */
struct sonde_counters *sonde_session_counters(struct sonde_session *session);

/* Adds an output: "-" is stdout. `format` is "text", "folded", ...; NULL: by the path's suffix. -EINVAL: unknown format. A path that cannot
 * be written is refused here where that can be known, before anything starts. */
__attribute__((warn_unused_result)) int sonde_session_add_output(struct sonde_session *session, const char *path, const char *format);
/* Writes all outputs, each whole or not at all. Tries all of them and returns the first failure. */
__attribute__((warn_unused_result)) int sonde_session_write(struct sonde_session *session);

/* One line on what was recorded in all windows, newline-terminated; "" without windows. */
const char *sonde_session_total(struct sonde_session *session);
/* The account in words for stderr: lines, each newline-terminated. If no output is stdout, it begins with the hottest functions. */
const char *sonde_session_account(struct sonde_session *session);
/* The next warning that was not returned yet (the event fell back, ...); NULL ends. The account leaves out warnings that were returned
 * here. */
const char *sonde_session_warning(struct sonde_session *session);

/* The i-th language whose frames are walked; NULL ends. */
const char *sonde_runtime_name(uint32_t i);
/* Another name by which it is known in `runtimes`: that of the OpenTelemetry eBPF profiler's flag -tracers; NULL: there is none. */
const char *sonde_runtime_alias(uint32_t i);

/* Passes on what can be traced, a line each: "syscall:openat". `pattern`: of the name, or of "type:name", with *, ? and []. `verbose`: with
 * arguments. 0; -ENOENT: nothing; what `text` returned; or a negative errno. */
__attribute__((warn_unused_result)) int sonde_trace_list(const char *pattern, bool verbose, int (*text)(void *arg, const char *lines),
							 void *arg);

struct sonde_examine_options {
	size_t size;                /* sizeof(struct sonde_examine_options) */
	uint32_t tgid;
	uint64_t stacks_ns;         /* how long to take its threads' stacks; 0: not at all */
	bool json;                  /* an object for programs (docs/formats.md), instead of lines for people */
	bool colour;                /* with terminal escape sequences */
	int (*text)(void *arg, const char *report); /* called once; a value other than 0 is returned */
	void *arg;
};

/* Looks at a process: its runtimes, its files with their unwind tables and names, code in no file, and what is missing in its stacks.
 * Passes on the report. 0; -ESRCH: there is no such process; -EACCES: not permitted; or another negative errno. */
__attribute__((warn_unused_result)) int sonde_examine_process(const struct sonde_examine_options *options);

/* The source of the BPF programs that these options would load. Needs no rights. Borrowed for ever. */
const char *sonde_profile_source(const struct sonde_session_options *options);

/* A profile, read from a file in any input format and written to files in any output format. Functions that can fail return 0 or a negative
 * errno and leave the reason in the profile as one line (sonde_profile_error). Returned texts are borrowed until the next call with the
 * profile. A profile belongs to one thread. */
struct sonde_profile;

struct sonde_read_options { /* zero means default */
	size_t size;            /* sizeof(struct sonde_read_options) */
	const char *format;     /* as in sonde_read_format_name; NULL: by the file's content */
	uint64_t max_bytes;     /* limit for the file and its unpacked content; 0: 4 GiB. For perf.data only when it is gzipped */
	bool no_lines;          /* perf.data: do not look up source lines and inlined functions */
	bool timestamps;        /* perf.data: keep each sample apart, with its time */
	/* Called before the file's bytes are parsed, if no other file of this machine is needed from then on (not for perf.data): the
	 * program may enter a sandbox. NULL: none. */
	void (*on_bytes)(void *arg);
	void *on_bytes_arg;
};

struct sonde_write_options { /* zero means default */
	size_t size;            /* sizeof(struct sonde_write_options) */
	const char *format;     /* as in sonde_format_name; NULL: by the path's suffix, and text for stdout */
	/* For formats with room for one value: the type of the value to write: "alloc_space", or "count" or "time"; NULL: the file's
	 * default. */
	const char *value;
	bool delimited, annotate, offsets, threads; /* as in struct sonde_session_options */
	/* OTLP: the profile's id, 16 bytes, so that a receiver can tell a repeat; in a message of several profiles their number is added to
	 * the last bytes. NULL: none. */
	const void *profile_id;
	uint32_t source_lines;  /* HTML: as in struct sonde_session_options; which files are read, the profile says */
};

struct sonde_profile *sonde_profile_new(void); /* empty; NULL: no memory */
void sonde_profile_free(struct sonde_profile *profile);
const char *sonde_profile_error(const struct sonde_profile *profile);
int sonde_profile_exit_code(const struct sonde_profile *profile); /* enum sonde_exit for the last failure */
/* Reads a file; replaces what the profile held. "-" is stdin; gzip is unpacked; `options` may be NULL. The file may be untrusted: -EBADMSG:
 * it is damaged (the error has the position); -EFBIG: over a limit; -EINVAL: unknown format. After a failure the profile is empty. */
__attribute__((warn_unused_result)) int sonde_profile_read(struct sonde_profile *profile, const char *path,
							   const struct sonde_read_options *options);
/* The same from memory; `name` stands for the path in messages. */
__attribute__((warn_unused_result)) int sonde_profile_read_bytes(struct sonde_profile *profile, const char *name, const void *bytes,
								 size_t size, const struct sonde_read_options *options);
/* Adds samples, histograms and account of `more` to a profile made by sonde_profile_new and only by this function since. -EINVAL: they hold
 * other values. After a failure `profile` is empty. */
__attribute__((warn_unused_result)) int sonde_profile_merge(struct sonde_profile *profile, const struct sonde_profile *more);
/* Adds a part of `whole` likewise: number `part`, from 0, of `nr_parts`, and the account of all. Each sample and histogram is in one part.
 * Parts 2n and 2n + 1 of twice as many are the halves of part n. */
__attribute__((warn_unused_result)) int sonde_profile_merge_part(struct sonde_profile *profile, const struct sonde_profile *whole,
								 uint32_t part, uint32_t nr_parts);
/* Adds a remark to what is kept with the profile, beside its warnings: of 255 bytes at most. -EINVAL: nothing was read. */
__attribute__((warn_unused_result)) int sonde_profile_note(struct sonde_profile *profile, const char *text);
/* The next remark, in words, on data of the file that a profile cannot hold; NULL ends. */
const char *sonde_profile_warning(struct sonde_profile *profile);
uint64_t sonde_profile_nr_samples(const struct sonde_profile *profile); /* equal samples count once */
uint64_t sonde_profile_nr_histograms(const struct sonde_profile *profile); /* a profile may have histograms and no samples */
/* Checks whether this output could be written. Leaves nothing behind and needs no profile read: for an early error before a long read. */
__attribute__((warn_unused_result)) int sonde_profile_check_output(struct sonde_profile *profile, const char *path, const char *format);
/* Writes the file whole or not at all; "-" is stdout; `options` may be NULL. */
__attribute__((warn_unused_result)) int sonde_profile_write(struct sonde_profile *profile, const char *path,
							    const struct sonde_write_options *options);
/* Passes the file's bytes on, piece by piece, instead of writing them; text without `options->format`. A negative errno of
 * `take` ends it. */
__attribute__((warn_unused_result)) int sonde_profile_write_bytes(struct sonde_profile *profile, const struct sonde_write_options *options,
								  int (*take)(void *arg, const void *bytes, size_t size), void *arg);
/* A profile as text for a terminal. */
enum sonde_view {
	SONDE_VIEW_SUMMARY,  /* what was recorded and lost, processes, hottest functions; histograms */
	SONDE_VIEW_TOP,      /* functions, sorted by self */
	SONDE_VIEW_TREE,     /* call tree, root first */
	SONDE_VIEW_CALLERS,  /* of the function `what` */
	SONDE_VIEW_CALLEES,  /* of the function `what` */
	SONDE_VIEW_BY,       /* a table by `what`: "comm", "process", "thread", "cpu", "file", "language", "state", "label" */
	SONDE_VIEW_CODE,     /* source and instructions of the function `what`, from files of this machine */
	SONDE_VIEW_CHANGES,  /* of a profile made by sonde_profile_diff: the change per function; histograms side by side */
	SONDE_VIEW_PEEK,     /* both trees of the function `what`: its callers, and what it calls */
};

struct sonde_show_options { /* zero means default */
	size_t size;         /* sizeof(struct sonde_show_options) */
	enum sonde_view view;
	const char *what;
	const char *value;   /* as in struct sonde_write_options */
	uint32_t max_lines;  /* of a table */
	uint32_t width;      /* columns, names are cut to fit; 0: they are not cut */
	double min_percent;  /* leave out branches of a tree below this share; 0: none */
	bool colour;         /* with terminal escape sequences */
	bool sort_total;     /* functions, files and languages by total, not by self */
	/* Only samples with a frame whose name matches `focus`, and with none that matches `ignore` (regex(7), extended); NULL: all. It
	 * lasts: the profile loses the values of the others. */
	const char *focus, *ignore;
};

/* *ret_text: lines, borrowed until the next call with the profile. -EINVAL: bad options; -ENOENT: no such function. */
__attribute__((warn_unused_result)) int sonde_profile_show(struct sonde_profile *profile, const struct sonde_show_options *options,
							   const char **ret_text);
/* Turns `after` into the difference of both: stacks are matched by the names in them; the values are "before" and "after", scaled to the
 * same total. `value`: the value to compare; NULL: the one that `after` shows. -ENODATA: nothing to compare; -EINVAL: the units differ.
 * After a failure `after` is unchanged. */
__attribute__((warn_unused_result)) int sonde_profile_diff(struct sonde_profile *after, const struct sonde_profile *before,
							   const char *value);

/* Input formats: name and description of the i-th; NULL ends. */
const char *sonde_read_format_name(uint32_t i, const char **ret_text);

/* Output formats: name, suffixes and description of the i-th; NULL ends. */
const char *sonde_format_name(uint32_t i, const char **ret_suffixes, const char **ret_text);
const char *sonde_format_by_path(const char *path); /* the format with the longest suffix that matches the path; NULL: none */
const char *sonde_version(void);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
