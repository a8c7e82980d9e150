/* SPDX-License-Identifier: Apache-2.0 */
/* runq: the run queue: how long threads wait for a CPU from wake-up or preemption on, how long they stay on it, how many of them wait. Functions that can fail return 0 or a
 * negative errno and leave the reason as one line (sonde_runq_error). Belongs to one thread, but sonde_runq_stop may be called from any thread and from signal handlers.
 * NULL for an object is taken as is said in <sonde/sonde.h>. */
#pragma once
#include <sonde/sonde.h>

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default) /* all else in the library is hidden */
#endif

#define SONDE_DEFAULT_SLOWER_NS UINT64_C(10000000)
#define SONDE_RUNQ_LENGTH_HZ 99

enum sonde_runq_question {
	SONDE_RUNQ_LATENCY, /* from wake-up or preemption to running, by the scheduler's own account: /proc/PID/schedstat has its sum */
	SONDE_RUNQ_ON_CPU,  /* how long threads stay on the CPU at a time */
	SONDE_RUNQ_LENGTH,  /* how many threads wait beside the one that runs, of each CPU SONDE_RUNQ_LENGTH_HZ times a second */
};

/* A histogram for each: */
enum sonde_runq_by { SONDE_RUNQ_WHOLE, SONDE_RUNQ_BY_PID, SONDE_RUNQ_BY_TID, SONDE_RUNQ_BY_CPU, SONDE_RUNQ_BY_CGROUP, SONDE_RUNQ_BY_COMM };

/* Zero means default. Lists and texts are borrowed until sonde_runq_new returns. */
struct sonde_runq_options {
	size_t size;                /* sizeof(struct sonde_runq_options) */
	const char *command_line;   /* for the report */
	enum sonde_runq_question question;
	enum sonde_runq_by by;
	bool milliseconds;          /* instead of microseconds */
	/* whose */
	const uint32_t *tgids, *tids; /* not both */
	uint32_t nr_tgids, nr_tids;
	const char *comm;           /* thread's or its process's name */
	const char *cgroup;         /* as of struct sonde_profile_options */
	/* when */
	uint64_t interval_ns;       /* a report each; 0: one at the end */
	uint64_t nr_intervals;      /* 0: until stopped or until the targets have ended */
	bool timestamps;            /* the time before each report */
	bool quiet;                 /* no reports as text: the profile is what is wanted */
	/* Each wait longer than slower_ns (0: SONDE_DEFAULT_SLOWER_NS) as a line, as it ends: of SONDE_RUNQ_LATENCY, instead of histograms. */
	bool slower;
	uint64_t slower_ns;
	bool histogram;             /* with slower: the histogram, too, at the end */
	/* Called from sonde_runq_run: `started` (may be NULL) when counting has begun, `text` with lines as they come; not 0 ends the run, which gives it back. */
	void (*started)(void *arg);
	int (*text)(void *arg, const char *lines);
	void *arg;
	bool stacks;                /* with slower: below each line the stacks of the thread that had the CPU, leaf first */
};

struct sonde_runq;
/* Checks the options and loads the kernel side; nothing is counted yet. On failure *ret_runq is still set (unless
 * -ENOMEM: then it is NULL) so that the reason can be asked for. */
__attribute__((warn_unused_result)) int sonde_runq_new(const struct sonde_runq_options *options, struct sonde_runq **ret_runq);
void sonde_runq_free(struct sonde_runq *runq);
const char *sonde_runq_error(const struct sonde_runq *runq);
int sonde_runq_exit_code(const struct sonde_runq *runq); /* enum sonde_exit for the last failure or the run so far */
/* Counts until the last interval, the targets' end, or a stop. -EINVAL: a second time, or after a failed _new. */
__attribute__((warn_unused_result)) int sonde_runq_run(struct sonde_runq *runq);
void sonde_runq_stop(struct sonde_runq *runq); /* async-signal-safe, any thread, at any time after _new */
/* The histograms of the whole run, to be written; borrowed until sonde_runq_free. NULL after a failed _new. */
struct sonde_profile *sonde_runq_profile(struct sonde_runq *runq);
/* What was counted and what was not, in words for stderr: one line each, newline-terminated. Borrowed likewise. */
const char *sonde_runq_account(struct sonde_runq *runq);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
