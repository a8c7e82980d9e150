/* SPDX-License-Identifier: Apache-2.0 */
/* sonde: the library's public interface. One session configures a measurement, takes it, and writes it. Functions that can fail return 0
 * or a negative errno and leave the reason as one line in the session (sonde_session_error). Texts that are returned are
 * borrowed from the session until sonde_session_free. A session belongs to one thread, but sonde_session_stop may be called from
 * any thread and from signal handlers.
 *
 * NULL for an object (a session, a profile, ...), as -ENOMEM leaves it, is taken by all functions: _error says that there was no memory,
 * _exit_code is SONDE_EXIT_FAILED, what can fail returns -EINVAL, other texts are empty or at their end, numbers 0, answers false.
 *
 * Option structs begin with `size`, the caller's sizeof; zeroed memory means defaults (with C++, `struct sonde_session_options options =
 * {};`). A struct of an older version does as well; one of a newer version does as long as what this version does not know is zero, else it
 * is refused: -E2BIG. Without a size: -EINVAL. */
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

#define SONDE_DEFAULT_FREQ_HZ 49
#define SONDE_DEFAULT_STACK_STORAGE 16384
#define SONDE_DEFAULT_UNWIND_BYTES (64u << 20)
#define SONDE_DEFAULT_DEBUGINFOD_TIMEOUT_NS INT64_C(5000000000)

/* Exit codes of all verbs; sonde_session_exit_code() gives them for a failure. */
enum sonde_exit {
	SONDE_EXIT_REPORT = 0,
	SONDE_EXIT_FAILED = 1,
	SONDE_EXIT_USAGE = 2,
	SONDE_EXIT_NOT_PERMITTED = 3,
	SONDE_EXIT_KERNEL_CANNOT = 4,
	SONDE_EXIT_NO_SAMPLES = 5,
	SONDE_EXIT_NOT_EXECUTABLE = 126, /* the command; as a shell says it */
	SONDE_EXIT_NO_COMMAND = 127,
};

/* What a session measures. */
enum sonde_mode {
	SONDE_ON_CPU,    /* where threads use a CPU: by ticks of an event */
	SONDE_OFF_CPU,   /* where they wait, and for how long: by the scheduler's events */
	SONDE_WALL,      /* both: all of their time, running, runnable and blocked */
	SONDE_RUN_QUEUE, /* how long they wait for a CPU, how long they stay on it, how many of them wait */
	SONDE_COUNT,     /* events, by counters: no stacks, no profile */
};

/* A window that was named, and written to the outputs. */
struct sonde_window {
	size_t size;                /* sizeof(struct sonde_window) */
	uint32_t number;            /* from 1 on */
	uint64_t start_unix_ns, duration_ns;
	uint64_t nr_samples;        /* or waits */
	int err;                    /* negative errno: it could not be made, or not written to all outputs */
};

/* --- what a measurement is asked for: each mode has a struct of its own; zero means default, NULL for the struct: zeros --------------- */

struct sonde_sampling_options { /* SONDE_ON_CPU, SONDE_WALL */
	size_t size;                /* sizeof(struct sonde_sampling_options) */
	const char *event;          /* perf's name, as "cycles:u"; NULL: cpu-clock */
	bool no_fallback;           /* refuse instead of falling back to cpu-clock */
	uint64_t freq_hz, period;   /* per second and CPU; or one of so many events; not both; neither: SONDE_DEFAULT_FREQ_HZ */
	const uint32_t *cpu;        /* on this one; NULL: on all */
	bool idle;                  /* also idle CPUs */
};

#define SONDE_STATE_PREEMPTED (-1)

struct sonde_wait_options { /* SONDE_OFF_CPU, SONDE_WALL */
	size_t size;                /* sizeof(struct sonde_wait_options) */
	uint64_t min_ns, max_ns;    /* shorter and longer waits are left out; max 0: no limit */
	int32_t state;              /* 0: any; SONDE_STATE_PREEMPTED; else one of the kernel's bits of a thread's state: 1, 2, ... */
	bool user_threads_only, kernel_threads_only;
	bool wake;                  /* who ended the wait, too */
	bool count_waits;           /* formats with room for one value write the number of waits, not their time */
	bool histograms;            /* of the waits' durations, whole and per stack */
	uint32_t max_overhead_percent; /* of the machine's time that the programs may take: then min_ns is raised; 0: no limit. Not of
					  SONDE_WALL */
	const char *events;         /* a file for each switch and wake-up (docs/formats.md); NULL: none */
};

#define SONDE_DEFAULT_SLOWER_NS UINT64_C(10000000)
#define SONDE_RUNQ_LENGTH_HZ 99

enum sonde_runq_what {
	SONDE_RUNQ_LATENCY, /* from wake-up or preemption to running, by the scheduler's own account: /proc/PID/schedstat has its sum */
	SONDE_RUNQ_ON_CPU,  /* how long threads stay on the CPU at a time */
	SONDE_RUNQ_LENGTH,  /* how many threads wait beside the one that runs, of each CPU SONDE_RUNQ_LENGTH_HZ times a second */
};

/* A histogram for each: */
enum sonde_runq_by { SONDE_RUNQ_WHOLE, SONDE_RUNQ_BY_PID, SONDE_RUNQ_BY_TID, SONDE_RUNQ_BY_CPU, SONDE_RUNQ_BY_CGROUP, SONDE_RUNQ_BY_COMM };

/* With `every_ns` a report after each interval comes as text; the profile has the histograms of the whole run. */
struct sonde_runq_options { /* SONDE_RUN_QUEUE */
	size_t size;                /* sizeof(struct sonde_runq_options) */
	enum sonde_runq_what what;
	enum sonde_runq_by by;
	bool milliseconds;          /* instead of microseconds */
	bool timestamps;            /* the time before each report */
	bool quiet;                 /* no reports as text: the profile is what is wanted */
	/* Each wait longer than slower_ns (0: SONDE_DEFAULT_SLOWER_NS) as a line, as it ends: of SONDE_RUNQ_LATENCY, instead of histograms.
	 */
	bool slower;
	uint64_t slower_ns;
	bool histogram;             /* with slower: the histogram, too, at the end */
	bool stacks;                /* with slower: below each line the stacks of the thread that had the CPU, leaf first */
};

struct sonde_counter_options;

/* Zero means default. Lists and texts are borrowed until sonde_session_new returns. */
struct sonde_session_options {
	size_t size;                /* sizeof(struct sonde_session_options) */
	const char *command_line;   /* for the report */
	enum sonde_mode mode;
	const struct sonde_sampling_options *sampling; /* those that are not of the mode are left alone */
	const struct sonde_wait_options *waits;
	const struct sonde_runq_options *runq;
	const struct sonde_counter_options *counters; /* SONDE_COUNT; <sonde/counter.h>. Whose events they are is said below: nobody is all
							 that runs, and with a command and no CPUs the command, from its execve(2) on */
	uint64_t duration_ns;       /* 0: until stopped or until the targets have ended */
	/* whose */
	const uint32_t *tgids, *tids; /* not both */
	uint32_t nr_tgids, nr_tids;
	const char *comm;           /* thread's or its process's name: up to 15 bytes, as the kernel keeps it */
	const char
	    *cgroup; /* only what runs in this cgroup v2 or below it: its path, with or without the mount point, or its id in digits */
	char *const *command; /* NULL, or argv to start when measuring has begun; its children are followed. Not of SONDE_RUN_QUEUE; of
				 SONDE_COUNT also beside processes, threads or a cgroup: it says how long */
	/* of stacks */
	bool user_only, kernel_only;
	uint64_t stack_storage;	    /* of different stacks no more than so many; 0: as many as come, up to 256 MiB of them,
				       SONDE_DEFAULT_STACK_STORAGE within a tenth of a second */
	uint64_t unwind_bytes;      /* of kernel memory for unwind tables and mappings; 256 KiB at least; 0: SONDE_DEFAULT_UNWIND_BYTES */
	bool no_unwind_cache;       /* neither read nor write compiled unwind tables on disk */
	uint32_t audit_every;       /* unwind one of so many user stacks once more by libdw, and count what differs; 0: none */
	bool timestamps; /* keep the time of each sample, for the formats that can carry it: a sample each, and 80 bytes of memory */
	bool lines, no_lines;       /* look up source lines and inlined functions, or not; neither: for the formats that show them */
	const char *vmlinux;        /* with lines: the running kernel's file with debug info; NULL: is looked for */
	int64_t debuginfod_timeout_ns; /* how long the report may wait for debug files from $DEBUGINFOD_URLS, from the end of sampling; 0:
					* SONDE_DEFAULT_DEBUGINFOD_TIMEOUT_NS; -1: not at all */
	/* how they are written */
	bool delimited, annotate;   /* a line (of folded stacks: a frame) between kernel and user frames; _[k] behind the kernel's */
	bool offsets, threads;      /* function+offset, and a stack for each address; the threads of a process apart */
	/* windows: a profile after each `every_ns`, named and written to the outputs while the next one is recorded; 0: one for all. Paths
	 * of outputs have %n, the window's number, or %t, the time (UTC) at which it began, in their files' names (20261123T164128Z; the
	 * number is behind it, 20261123T164128Z-7, when an earlier window has that second, or a later one); %% is a percent sign */
	uint64_t every_ns;
	uint32_t keep;              /* so many files of each output stay, older ones are removed; 0: all */
	/* Called from sonde_session_run, each may be NULL. `started`: measuring has begun. `progress`: at most five times a second.
	 * `window`: for each window that was written; sonde_session_warning and _account tell of that one until the next. With SONDE_COUNT
	 * for each interval, the last or only one, too, when its counts are to be read. `text`: lines, as they come, of what is told at
	 * once (SONDE_RUN_QUEUE needs it); from any thread, one at a time; not 0 ends the run, which gives it back. */
	void (*started)(void *arg);
	void (*progress)(void *arg, uint64_t elapsed_ns, uint64_t nr_samples);
	void (*window)(void *arg, const struct sonde_window *window);
	int (*text)(void *arg, const char *lines);
	void *arg;
};

/* Files of strangers are read by a process without rights: the program that uses the library, started once more. So a program's main begins
 * with this question: when the answer is true, the process has done its work and returns *ret_code. A program that does not ask gets -ELOOP
 * from what needs such a process. */
bool sonde_is_worker(int argc, char **argv, int *ret_code);

struct sonde_session;
struct sonde_counters;

/* Checks the options, loads the kernel side and gets everything ready; nothing is measured yet. On failure *ret_session is still set
 * (unless -ENOMEM: then it is NULL) so that the reason can be asked for. */
__attribute__((warn_unused_result)) int sonde_session_new(const struct sonde_session_options *options, struct sonde_session **ret_session);
void sonde_session_free(struct sonde_session *session); /* kills nothing that it did not start */
const char *sonde_session_error(const struct sonde_session *session);
int sonde_session_exit_code(const struct sonde_session *session); /* enum sonde_exit for the last failure or the run so far */

/* Measures until the duration, the targets' end, or a stop; then resolves names. While it measures stacks, the calling thread has ten nice
 * steps before others, where it may. Once; -EINVAL for a session that ran already, or could not be made. */
__attribute__((warn_unused_result)) int sonde_session_run(struct sonde_session *session);
/* Async-signal-safe, any thread, at any time after _new. Once more: names get a second more, then the report has addresses where there are
 * none, and the account says so. */
void sonde_session_stop(struct sonde_session *session);
/* The command's wait status when it has ended: true and *ret_status as of waitpid(2). */
bool sonde_session_command_status(const struct sonde_session *session, int *ret_status);
bool sonde_session_command_goes_on(const struct sonde_session *session); /* when the run had ended: it was asked to end, and did not within
									    a second; a warning has its process id */
/* SONDE_COUNT: the set, also of a session that could not be made, as some of it may be there; NULL: none. It lives as long as the session;
 * to be read and asked, the session starts and stops it. */
struct sonde_counters *sonde_session_counters(struct sonde_session *session);

/* Remembers an output: "-" is stdout. Its format comes from `format` ("text", "folded", ...) or, when NULL, the path's suffix. -EINVAL for
 * an unknown one; what can be known of a path that cannot be written is refused here, before anything starts. */
__attribute__((warn_unused_result)) int sonde_session_add_output(struct sonde_session *session, const char *path, const char *format);
/* Writes all outputs, each whole or not at all. The first failure is returned, the others are tried. */
__attribute__((warn_unused_result)) int sonde_session_write(struct sonde_session *session);

/* What was recorded in all windows, as one line, newline-terminated; "" without windows. */
const char *sonde_session_total(struct sonde_session *session);
/* The account in words for stderr: one line each, newline-terminated. Where no output is stdout, the hottest functions come first. */
const char *sonde_session_account(struct sonde_session *session);
/* The next warning that has not been told (the event fell back, ...); NULL ends. The account leaves out those that were told. */
const char *sonde_session_warning(struct sonde_session *session);

/* The BPF programs' source that these options would load. Needs no rights. Borrowed for ever. */
const char *sonde_profile_source(const struct sonde_session_options *options);

/* A profile from a file of any format that is read, to files of any format that is written. Functions that can fail return 0 or a negative
 * errno and leave the reason as one line in the profile (sonde_profile_error). Texts that are returned are borrowed until the next call
 * with the profile. A profile belongs to one thread. */
struct sonde_profile;

struct sonde_read_options { /* zero means default */
	size_t size;            /* sizeof(struct sonde_read_options) */
	const char *format;     /* by sonde_read_format_name; NULL: by what stands in the file */
	uint64_t max_bytes;     /* of the file, and of what it unpacks to; 4 GiB. Of perf.data only when it is gzipped */
	bool no_lines;          /* perf.data: source lines and inlined functions are not looked up */
	bool timestamps;        /* perf.data: each sample for itself, with its time */
	void (*on_bytes)(void *arg); /* is called before bytes are parsed for which nothing else of this machine is read (not perf.data's):
					a program may shut itself in. NULL: none */
	void *on_bytes_arg;
};

struct sonde_write_options { /* zero means default */
	size_t size;            /* sizeof(struct sonde_write_options) */
	const char *format;     /* by sonde_format_name; NULL: by the path's suffix, and text for stdout */
	const char *value; /* the type of the values that formats with room for one write: "alloc_space", or "count" or "time"; NULL: the
			      one that the file says */
	bool delimited, annotate, offsets, threads; /* as of struct sonde_session_options */
};

struct sonde_profile *sonde_profile_new(void); /* empty; NULL: no memory */
void sonde_profile_free(struct sonde_profile *profile);
const char *sonde_profile_error(const struct sonde_profile *profile);
int sonde_profile_exit_code(const struct sonde_profile *profile); /* enum sonde_exit for the last failure */
/* Takes the place of what was read before. "-" is stdin; gzip is unpacked; `options` may be NULL. The file is not trusted: -EBADMSG for one
 * that is damaged, with the place, -EFBIG past a limit, -EINVAL for a format that is not known. After a failure the profile is empty. */
__attribute__((warn_unused_result)) int sonde_profile_read(struct sonde_profile *profile, const char *path,
							   const struct sonde_read_options *options);
/* The next remark on what the file holds and a profile cannot (in words); NULL ends. */
const char *sonde_profile_warning(struct sonde_profile *profile);
uint64_t sonde_profile_nr_samples(const struct sonde_profile *profile); /* different ones: equal ones are one */
uint64_t sonde_profile_nr_histograms(const struct sonde_profile *profile); /* a profile may have these alone */
/* Could this output be written? Leaves nothing behind, and needs nothing read: for refusing before a long read. */
__attribute__((warn_unused_result)) int sonde_profile_check_output(struct sonde_profile *profile, const char *path, const char *format);
/* Writes the file whole or not at all; "-" is stdout; `options` may be NULL. */
__attribute__((warn_unused_result)) int sonde_profile_write(struct sonde_profile *profile, const char *path,
							    const struct sonde_write_options *options);
/* A profile as text for a terminal. */
enum sonde_view {
	SONDE_VIEW_SUMMARY,  /* what was recorded, what was lost, by process, the hottest functions; histograms */
	SONDE_VIEW_TOP,      /* functions by self */
	SONDE_VIEW_TREE,     /* call tree, root first */
	SONDE_VIEW_CALLERS,  /* of the function `what` */
	SONDE_VIEW_CALLEES,  /* of the function `what` */
	SONDE_VIEW_BY,       /* a table by `what`: "process", "thread", "cpu", "file", "language" */
	SONDE_VIEW_CODE,     /* source and instructions of the function `what`, from files of this machine */
	SONDE_VIEW_CHANGES,  /* of a profile made by sonde_profile_diff: the change per function; histograms side by side */
};

struct sonde_show_options { /* zero means default */
	size_t size;         /* sizeof(struct sonde_show_options) */
	enum sonde_view view;
	const char *what;
	const char *value;   /* as of sonde_write_options */
	uint32_t max_lines;  /* of a table */
	uint32_t width;      /* columns, where names are cut; 0: they are not */
	double min_percent;  /* branches of a tree below this share are left out; 0: none */
	bool colour;         /* with escapes of terminals */
};

/* *ret_text: lines, borrowed until the next call with the profile. -EINVAL: options; -ENOENT: no such function. */
__attribute__((warn_unused_result)) int sonde_profile_show(struct sonde_profile *profile, const struct sonde_show_options *options,
							   const char **ret_text);
/* `after` becomes the difference of both: stacks by the names in them, values "before" and "after", stretched to the same total. `value`:
 * what is compared, NULL: what `after` shows. -ENODATA: nothing to compare; -EINVAL: the units differ. After a failure `after` is as it
 * was. */
__attribute__((warn_unused_result)) int sonde_profile_diff(struct sonde_profile *after, const struct sonde_profile *before,
							   const char *value);

/* Formats that are read: name and text of the i-th; NULL ends. */
const char *sonde_read_format_name(uint32_t i, const char **ret_text);

/* Formats that are written: name, suffixes and text of the i-th; NULL ends. */
const char *sonde_format_name(uint32_t i, const char **ret_suffixes, const char **ret_text);
const char *sonde_format_by_path(const char *path); /* the one that goes with the path's suffix, the longest that fits; NULL: none does */
const char *sonde_version(void);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
