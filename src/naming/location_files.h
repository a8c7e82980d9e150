/* SPDX-License-Identifier: Apache-2.0 */
/* location_files: the files of the locations, and the files in which processes list the names of their JIT code, as they are when a window
 * ends. With these the locations can be resolved while the recording goes on. Created by the thread that follows the processes; then any
 * one thread may own it. */
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
	struct proxy *proxy;                   /* opens paths given by untrusted processes */
	struct debug_files *debug_files;       /* fetched debug files */
	struct jit_file_cache *jit_file_cache;
	const struct runtime_loader *runtimes;
	uint32_t own_tgid;                     /* the process that we started; 0: none */
};

struct location_file {
	struct object object;                  /* the list owns its path and elf */
	uint32_t asker;                        /* the process in whose root its debug files are looked for; 0: no living process maps it */
	uint32_t asker_rank;                   /* the asker's credentials_rank */
	int fetched_fd;                        /* of the fetched debug file; -1: none */
	bool is_refused;                       /* the fetched file is of no use; set by the reader */
	struct runtime_image *images;          /* the interpreters in the file */
	uint32_t nr_images;
};

struct location_files;
/* NULL: no memory. */
struct location_files *location_files_new(const struct location_files_parts *parts, const struct location_table *locations);
void location_files_free(struct location_files *files); /* takes NULL */
struct location_file *location_files_file(const struct location_files *files, uint32_t object); /* NULL: it has no location */
/* The runtime of the process that is only recognised; NULL: none, or the process has no location outside of ELF files. */
const struct recognised *location_files_recognised(const struct location_files *files, uint32_t tgid);
struct jit_files *location_files_jit(const struct location_files *files, uint32_t tgid); /* NULL: it has no location outside of ELF files */
/* Reports to `debug_files` which fetched files were refused. */
void location_files_refuse(const struct location_files *files, struct debug_files *debug_files);
