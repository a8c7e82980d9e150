/* SPDX-License-Identifier: Apache-2.0 */
/* process_look: what sonde can see of one process: its files with their unwind tables and names, its runtimes, its code without a file, and
 * the stacks of its threads for a while. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include <sonde/sonde.h>

#include "base/diag.h"
#include "model/account.h"
#include "model/profile.h"
#include "runtime/file_runtimes.h"

enum look_names {
	LOOK_NAMES_NONE,
	LOOK_NAMES_EXPORTED, /* .dynsym alone */
	LOOK_NAMES_MINI,     /* .gnu_debugdata as well: functions without lines */
	LOOK_NAMES_OWN,      /* .symtab */
	LOOK_NAMES_GO,       /* .gopclntab */
	LOOK_NAMES_DEBUG_FILE,
};
const char *look_names_text(enum look_names names); /* stable, for programs too: "dynsym" */

struct looked_file {
	char *path;                       /* owned */
	char build_id[2 * BUILD_ID_MAX + 1];
	uint32_t nr_rows;                 /* of its unwind table */
	uint64_t table_bytes;
	char no_table[512];               /* why it has none; "": it has one */
	enum look_names names;
	bool has_lines;                   /* source lines and inlined functions, here or in a debug file of this machine */
	struct file_runtimes runtimes;
};

/* Marks of its stacks: why frames are missing. */
struct looked_mark {
	const char *name;                 /* borrowed from the session */
	uint64_t ns;
};

#define LOOK_MAX_MARKS 16

struct process_look {
	uint32_t tgid, nr_threads;
	char comm[32];
	struct looked_file *files;        /* owned */
	uint32_t nr_files, max_files;
	uint32_t nr_made;                 /* executable mappings without a file */
	uint64_t made_bytes;
	uint32_t nr_name_files, nr_name_files_refused; /* perf maps and jitdumps */
	const struct recognised *recognised; /* NULL: none */
	struct account account;           /* its runtimes; notes say which are not walked, and why */
	/* Stacks. */
	struct sonde_session *session;    /* owned; NULL: none were taken */
	char no_stacks[240];              /* why; "": they were taken */
	uint64_t all_ns, whole_ns;        /* of its threads' time: in all, and with user stacks without a mark */
	struct looked_mark marks[LOOK_MAX_MARKS]; /* the most frequent one first */
	uint32_t nr_marks;
};

/* Looks at files, runtimes and memory, then so long at the threads' stacks (0: not). 0; -ESRCH: there is no such process; -EACCES, -ENOMEM
 * or another negative errno, with a line. Call process_look_done after a failure, too. */
MUST_CHECK int process_look_take(struct process_look *look, uint32_t tgid, uint64_t stacks_ns, struct diag *diag);
void process_look_done(struct process_look *look);

/* process_stacks.c: the stacks, or no_stacks. */
void process_look_stacks(struct process_look *look, uint64_t duration_ns);

/* process_report.c, process_json.c. The report for people changes names and paths so that they can be printed. */
void process_report(struct process_look *look, bool colour, struct buffer *buffer);
void process_json(const struct process_look *look, struct buffer *buffer);
