/* SPDX-License-Identifier: Apache-2.0 */
/* process_table: which file stands at which pc of which process, at which time. Fed by /proc at the start and by the kernel's
 * side-band from then on; asked by the unwinder (what is mapped now) and by the report (what was mapped then). One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "process/mapping.h"
#include "process/object_table.h"

struct process_table;

struct process_table *
process_table_new(struct proxy *proxy); /* which asks the processes and their file servers, borrowed; NULL: none. NULL: no memory */
void process_table_free(struct process_table *table);

/* Reads the executable mappings from /proc/TGID. 0; -ENOENT when it is gone; -EACCES. Kernel threads have no mappings. */
MUST_CHECK int process_table_scan(struct process_table *table, uint32_t tgid, uint64_t time_ns, struct diag *diag);

/* Side-band events. Each returns 0 or -ENOMEM. */
MUST_CHECK int process_table_mmap(struct process_table *table, const struct mapping_event *event);
MUST_CHECK int process_table_exec(struct process_table *table, uint32_t tgid, uint64_t time_ns);
MUST_CHECK int process_table_fork(struct process_table *table, uint32_t parent_tgid, uint32_t child_tgid, uint64_t time_ns);
void process_table_exit(struct process_table *table, uint32_t tgid, uint64_t time_ns);

/* Makes a living process count as changed. */
void process_table_renew(struct process_table *table, uint32_t tgid);
/* Those whose live mappings changed since the last call, for the unwinder: calls `fn` with the live mappings sorted by start_pc (nr 0: it
 * has exited or has none). */
typedef int (*process_changed_fn)(void *arg, uint32_t tgid, uint32_t generation, const struct process_mapping *mappings,
				  uint32_t nr_mappings);
MUST_CHECK int process_table_changes(struct process_table *table, process_changed_fn fn, void *arg);

/* Calls `fn` with the live mappings of each process that lives, until it does not give 0. */
MUST_CHECK int process_table_living(const struct process_table *table, process_changed_fn fn, void *arg);

/* What stood at `pc` of `tgid` at `time_ns`; NULL when nothing known did. What came by a fork may have the parent's times and generation.
 * Borrowed until the table's next change. */
const struct process_mapping *process_table_find(const struct process_table *table, uint32_t tgid, uint64_t time_ns, uint64_t pc);
/* All that was mapped at a time, sorted by start_pc. */
struct mappings_at {
	struct process_mapping *list; /* for the caller to free */
	uint32_t nr;
	uint32_t generation;          /* of then; 0: nothing was */
	uint64_t from_ns, until_ns;   /* the same was mapped at all times between, as far as is known until the table changes */
};
/* 0; -ENOENT: nothing is known of it; -ENOMEM. */
MUST_CHECK int process_table_at(const struct process_table *table, uint32_t tgid, uint64_t time_ns, struct mappings_at *ret_mappings);
/* When a pc of `tgid` first meant another file than with that generation, CLOCK_MONOTONIC; UINT64_MAX: it has not, or the process has
 * ended. */
uint64_t process_table_generation_end(const struct process_table *table, uint32_t tgid, uint32_t generation);
const struct object_table *process_table_objects(const struct process_table *table); /* borrowed, grows with the process table */
/* Keeps a file known for somebody who names it by its number. */
void process_table_hold_object(const struct process_table *table, uint32_t object);
/* And back. */
void process_table_release_object(const struct process_table *table, uint32_t object);
/* The file that has this path in our root, kept known for the table's life before any process maps it. OBJECT_NONE: there is none, or no
 * memory. */
uint32_t process_table_expect_object(struct process_table *table, const char *path);
/* As object_table_sweep. */
MUST_CHECK int process_table_sweep(struct process_table *table, object_forgotten_fn fn, void *arg);
/* Makes all living processes count as changed that map one of these files. */
void process_table_renew_objects(struct process_table *table, bool (*is_one)(void *arg, uint32_t object), void *arg);
/* Forgets mappings that ended before `time_ns`. */
void process_table_prune(struct process_table *table, uint64_t time_ns);
/* The jitdump that the process had mapped when it ended; NULL: none is known, or it lives. Borrowed until the table's next change. */
const char *process_table_ended_dump(const struct process_table *table, uint32_t tgid);
uint32_t process_table_nr_processes(const struct process_table *table); /* that live */
