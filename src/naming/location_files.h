/* SPDX-License-Identifier: Apache-2.0 */
/* location_files: the files that places stand in, and those in which processes name their JIT code, as they are when a window ends: what it
 * takes to name the places while the recording goes on. Made by the thread that follows the processes; then any one thread may have it. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "naming/debug_files.h"
#include "naming/jit_file_cache.h"
#include "naming/location.h"
#include "process/jit_files.h"
#include "process/process_table.h"
#include "track/runtime_loader.h"

struct location_files_parts { /* borrowed for the call; all but `processes` may be NULL */
	const struct process_table *processes;
	struct proxy *proxy;                   /* opens what strangers name */
	struct debug_files *debug_files;       /* that were fetched */
	struct jit_file_cache *jit_file_cache;
	const struct runtime_loader *runtimes;
	uint32_t own_tgid;                     /* of the process that we started; 0: none */
};

struct location_file {
	struct object object;                  /* path and elf are the list's */
	uint32_t asker;                        /* the process in whose root its debug files are looked for; 0: nobody that lives has it */
	uint32_t asker_rank;                   /* how good its word is: credentials_rank */
	int fetched_fd;                        /* of the debug file that was fetched; -1: none */
	bool is_refused;                       /* that is of no use: set by who reads it */
	struct runtime_image *images;          /* of the interpreters in it */
	uint32_t nr_images;
};

struct location_files;
/* NULL: no memory. */
struct location_files *location_files_new(const struct location_files_parts *parts, const struct location_table *locations);
void location_files_free(struct location_files *files); /* takes NULL */
struct location_file *location_files_file(const struct location_files *files, uint32_t object); /* NULL: no place stands in it */
struct jit_files *location_files_jit(const struct location_files *files, uint32_t tgid); /* NULL: it has no code outside of files */
/* Tells `debug_files` which of its files were refused. */
void location_files_refuse(const struct location_files *files, struct debug_files *debug_files);
