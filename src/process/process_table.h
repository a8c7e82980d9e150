/* SPDX-License-Identifier: Apache-2.0 */
/* process_table: which file is mapped at which pc of which process, and when. Filled from /proc at the start, then from the kernel's
 * side-band. The unwinder looks up what is mapped now, the report what was mapped then. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "process/mapping.h"
#include "process/object_table.h"

struct process_table;

/* `proxy` reads from the processes and their file servers; borrowed; NULL: none. Returns NULL: no memory. */
struct process_table *process_table_new(struct proxy *proxy);
void process_table_free(struct process_table *table);

/* Reads the executable mappings from /proc/TGID. 0; -ENOENT: the process has ended; -EACCES. Kernel threads have no mappings. */
MUST_CHECK int process_table_scan(struct process_table *table, uint32_t tgid, uint64_t time_ns, struct diag *diag);

/* Side-band events. Each returns 0 or -ENOMEM. */
MUST_CHECK int process_table_mmap(struct process_table *table, const struct mapping_event *event);
MUST_CHECK int process_table_exec(struct process_table *table, uint32_t tgid, uint64_t time_ns);
MUST_CHECK int process_table_fork(struct process_table *table, uint32_t parent_tgid, uint32_t child_tgid, uint64_t time_ns);
void process_table_exit(struct process_table *table, uint32_t tgid, uint64_t time_ns);
/* A further thread began or ended. */
void process_table_thread(struct process_table *table, uint32_t tgid, bool has_begun);
/* Events may have been lost: no count of threads is known any more. */
void process_table_lost(struct process_table *table);
/* Surely: all threads since its start are known. */
bool process_table_has_one_thread(const struct process_table *table, uint32_t tgid);

/* Marks a living process as changed. */
void process_table_renew(struct process_table *table, uint32_t tgid);
/* For the unwinder: calls `fn` for each process whose live mappings changed since the last call. They are sorted by start_pc; nr 0: the
 * process has exited or has none. */
typedef int (*process_changed_fn)(void *arg, uint32_t tgid, uint32_t generation, const struct process_mapping *mappings,
				  uint32_t nr_mappings);
MUST_CHECK int process_table_changes(struct process_table *table, process_changed_fn fn, void *arg);

/* Calls `fn` with the live mappings of each living process, until it returns non-zero. */
MUST_CHECK int process_table_living(const struct process_table *table, process_changed_fn fn, void *arg);

/* Returns what was mapped at `pc` of `tgid` at `time_ns`; NULL: nothing known. A mapping inherited by fork may have the parent's times and
 * generation. Borrowed until the table's next change. */
const struct process_mapping *process_table_find(const struct process_table *table, uint32_t tgid, uint64_t time_ns, uint64_t pc);
/* All that was mapped at one time, sorted by start_pc. */
struct mappings_at {
	struct process_mapping *list; /* owned by the caller */
	uint32_t nr;
	uint32_t generation;          /* at that time; 0: nothing was mapped */
	uint64_t from_ns, until_ns;   /* the list holds for all times between, as far as is known until the table changes */
};
/* 0; -ENOENT: nothing is known of the process; -ENOMEM. */
MUST_CHECK int process_table_at(const struct process_table *table, uint32_t tgid, uint64_t time_ns, struct mappings_at *ret_mappings);
/* Is it the generation of the process as it lives now, by the events so far? */
bool process_table_is_current(const struct process_table *table, uint32_t tgid, uint32_t generation);
/* Returns when a pc of `tgid` first meant another file than in that generation, CLOCK_MONOTONIC; UINT64_MAX: not yet, or the process has
 * ended. */
uint64_t process_table_generation_end(const struct process_table *table, uint32_t tgid, uint32_t generation);
const struct object_table *process_table_objects(const struct process_table *table); /* borrowed, grows with the process table */
/* Keeps a file known to somebody who refers to it by its number. */
void process_table_hold_object(const struct process_table *table, uint32_t object);
/* Releases it. */
void process_table_release_object(const struct process_table *table, uint32_t object);
/* Returns the file that has this path in our root, and keeps it known for the table's life, before any process maps it. OBJECT_NONE: there
 * is none, or no memory. */
uint32_t process_table_expect_object(struct process_table *table, const char *path);
/* As object_table_sweep. */
MUST_CHECK int process_table_sweep(struct process_table *table, object_forgotten_fn fn, void *arg);
/* Marks all living processes as changed that map one of these files. */
void process_table_renew_objects(struct process_table *table, bool (*is_one)(void *arg, uint32_t object), void *arg);
/* Forgets mappings that ended before `time_ns`. */
void process_table_prune(struct process_table *table, uint64_t time_ns);
/* Fills in the paths of the jitdumps jit-NUMBER.dump that the process maps, each once; of one that has ended, that of jit-TGID.dump that it
 * had mapped then. Returns how many, at most `max`, which is not 0. Borrowed until the table's next change. */
uint32_t process_table_dumps(const struct process_table *table, uint32_t tgid, uint32_t number, const char **ret_paths, uint32_t max);
uint32_t process_table_nr_processes(const struct process_table *table); /* living ones */
