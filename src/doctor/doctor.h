/* SPDX-License-Identifier: Apache-2.0 */
/* doctor: what this kernel and this process allow. Every check tries the thing itself (loads that program, makes that map, opens that
 * event) instead of looking at versions. The verdicts for the verbs follow from the findings. One thread. */
#pragma once
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

enum doctor_state {
	DOCTOR_YES,
	DOCTOR_NO,     /* the kernel or machine does not have it */
	DOCTOR_DENIED, /* it may exist, but this process may not use it */
	DOCTOR_INFO,   /* neither good nor bad: see the detail */
};

struct doctor_finding {
	enum doctor_state state;
	char detail[240];
};

struct doctor_check {
	const char *id;           /* stable, for programs: "map.ringbuf" */
	const char *group, *title;
	void (*probe)(const struct doctor_check *check, struct doctor_finding *finding);
	uint32_t number;          /* the object of the probe: a map type, a helper, a capability */
	const char *path;         /* the same, as text */
};

const struct doctor_check *doctor_check_at(size_t i); /* NULL ends */
#define DOCTOR_MAX_CHECKS 64

/* All findings, by the index of their check. */
struct doctor {
	struct doctor_finding findings[DOCTOR_MAX_CHECKS];
};
void doctor_examine(struct doctor *doctor);
const struct doctor_finding *doctor_find(const struct doctor *doctor, const char *id); /* NULL: no such check */

__attribute__((format(printf, 3, 4))) void doctor_say(struct doctor_finding *finding, enum doctor_state state, const char *fmt, ...);

/* doctor_bpf.c */
void doctor_map(const struct doctor_check *check, struct doctor_finding *finding);
void doctor_large_map(const struct doctor_check *check, struct doctor_finding *finding); /* of check->number MiB */
void doctor_perf_program(const struct doctor_check *check, struct doctor_finding *finding);
void doctor_tracing_program(const struct doctor_check *check, struct doctor_finding *finding);
void doctor_fentry_program(const struct doctor_check *check, struct doctor_finding *finding);
void doctor_raw_program(const struct doctor_check *check, struct doctor_finding *finding);
void doctor_helper(const struct doctor_check *check, struct doctor_finding *finding);
/* Loads a perf_event program that does nothing. Returns its file descriptor or a negative errno. */
int doctor_load_perf_program(void);
bool doctor_may_use_bpf(void); /* also true when memory is short */

/* doctor_sched.c */
void doctor_task_storage(const struct doctor_check *check, struct doctor_finding *finding);
void doctor_uprobe(const struct doctor_check *check, struct doctor_finding *finding); /* check->path: there if the kernel has uprobes */
void doctor_iterator(const struct doctor_check *check,
		     struct doctor_finding *finding); /* check->path: the kernel's name for the objects it iterates over */
void doctor_task_field(const struct doctor_check *check, struct doctor_finding *finding);

/* doctor_event.c */
void doctor_event(const struct doctor_check *check, struct doctor_finding *finding);
void doctor_sideband(const struct doctor_check *check, struct doctor_finding *finding);
void doctor_attach(const struct doctor_check *check, struct doctor_finding *finding);

/* doctor_system.c */
void doctor_release(const struct doctor_check *check, struct doctor_finding *finding);
void doctor_btf(const struct doctor_check *check, struct doctor_finding *finding);
void doctor_setting(const struct doctor_check *check, struct doctor_finding *finding); /* a file with a value */
void doctor_present(const struct doctor_check *check, struct doctor_finding *finding); /* a file that exists or not */
void doctor_tracefs(const struct doctor_check *check, struct doctor_finding *finding); /* a file that exists or not */
void doctor_cgroups(const struct doctor_check *check, struct doctor_finding *finding);
void doctor_pid_namespace(const struct doctor_check *check, struct doctor_finding *finding);
void doctor_limit(const struct doctor_check *check, struct doctor_finding *finding);

/* doctor_access.c */
void doctor_capability(const struct doctor_check *check, struct doctor_finding *finding);
void doctor_kallsyms(const struct doctor_check *check, struct doctor_finding *finding);
void doctor_other_processes(const struct doctor_check *check, struct doctor_finding *finding);
void doctor_map_files(const struct doctor_check *check, struct doctor_finding *finding);
enum doctor_grant { DOCTOR_GRANT_NONE, DOCTOR_GRANT_BOUND, DOCTOR_GRANT_EFFECTIVE };
/* Whether this process has the capability, or could at least get it (bounding set). */
enum doctor_grant doctor_grant(uint32_t capability);
bool doctor_no_new_privs(void);

/* doctor_verdict.c */
enum doctor_verdict { DOCTOR_WORKS, DOCTOR_LESS, DOCTOR_NOT_PERMITTED, DOCTOR_KERNEL_CANNOT };
#define DOCTOR_MAX_MISSING 32
struct doctor_opinion {
	const char *verb;
	enum doctor_verdict verdict;
	struct {
		const char *check; /* its id */
		const char *effect;
		bool fatal, note;  /* fatal: the verb cannot work without it; note: only some option does not work */
	} missing[DOCTOR_MAX_MISSING];
	uint32_t nr_missing;
	char fix[512];             /* a command, or other advice; "" when nothing is missing or nothing helps */
};
/* Returns false when there is no i-th verb. */
bool doctor_opinion(const struct doctor *doctor, size_t i, struct doctor_opinion *ret_opinion);
const char *doctor_verdict_name(enum doctor_verdict verdict); /* stable, for programs: "works-with-less" */

/* doctor_report.c, doctor_json.c */
void doctor_report(const struct doctor *doctor, bool colour, struct buffer *buffer);
void doctor_json(const struct doctor *doctor, struct buffer *buffer);
const char *doctor_state_name(enum doctor_state state);
