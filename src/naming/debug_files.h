/* SPDX-License-Identifier: Apache-2.0 */
/* debug_files: requests debug files from debuginfod servers for the files in samples, while sampling goes on. Exists only if
 * $DEBUGINFOD_URLS is set. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "model/account.h"
#include "naming/location.h"
#include "parse/parser.h"

struct debug_files;
/* Borrows `parser` for its life. *ret_files stays NULL without $DEBUGINFOD_URLS. 0; -ENOMEM; or as fetcher_new, with `diag` set. */
MUST_CHECK int debug_files_new(struct parser *parser, struct proxy *proxy, struct diag *diag, struct debug_files **ret_files);
void debug_files_free(struct debug_files *files); /* takes NULL; so do the others */
/* Are source lines wanted, too? Call it before the first step. */
void debug_files_want_lines(struct debug_files *files, bool lines);
/* Looks at some of the new locations, requests debug files for their files, takes answers that have arrived. Takes some milliseconds. */
void debug_files_step(struct debug_files *files, const struct location_table *locations, const struct process_table *processes);
/* A window has ended: the next call passes another table of locations. */
void debug_files_end_window(struct debug_files *files);
/* As debug_files_step, for all remaining locations. Waits for the answers until `end_ns`, or until is_stopped returns true. Notes in
 * `account` what is missing. */
typedef bool (*debug_files_stopped_fn)(void *arg);
void debug_files_wait(struct debug_files *files, const struct location_table *locations, const struct process_table *processes,
		      uint64_t end_ns, debug_files_stopped_fn is_stopped, void *arg, struct account *account);
/* Returns a borrowed descriptor of the debug file that was fetched for this file; -1: none. */
int debug_files_fd(const struct debug_files *files, const struct elf_file *elf);
/* The fetched debug file is of no use to this file. Drops it, for all files with this build id, if the file is root's or the caller's.
 * Otherwise does nothing: another user's file may carry a foreign build id to have its debug file refused. */
void debug_files_refuse(struct debug_files *files, const struct elf_file *elf);
