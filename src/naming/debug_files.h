/* SPDX-License-Identifier: Apache-2.0 */
/* debug_files: which files of the samples want a debug file from a debuginfod server, asked for while sampling goes on. Nothing of it is
 * there unless $DEBUGINFOD_URLS is set. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "model/account.h"
#include "naming/location.h"
#include "parse/parser.h"

struct debug_files;
/* Borrows `parser` for its life. *ret_files stays NULL without $DEBUGINFOD_URLS. 0, -ENOMEM, or: there is no cache; `diag` tells. */
MUST_CHECK int debug_files_new(struct parser *parser, struct proxy *proxy, struct diag *diag, struct debug_files **ret_files);
void debug_files_free(struct debug_files *files); /* takes NULL; so do the others */
/* Are source lines wanted, too? To be told before the first step. */
void debug_files_want_lines(struct debug_files *files, bool lines);
/* Looks at some of the places that are new, asks for what their files want, takes what has come. Takes some milliseconds. */
void debug_files_step(struct debug_files *files, const struct location_table *locations, const struct process_table *processes);
/* The next places are those of another table, as a window has ended. */
void debug_files_end_window(struct debug_files *files);
/* As debug_files_step for the rest, and waits for the answers until `end_ns`, or until is_stopped says so. Notes what is not there. */
typedef bool (*debug_files_stopped_fn)(void *arg);
void debug_files_wait(struct debug_files *files, const struct location_table *locations, const struct process_table *processes,
		      uint64_t end_ns, debug_files_stopped_fn is_stopped, void *arg, struct account *account);
/* A descriptor of the debug file that was fetched for this one, borrowed; -1: none. */
int debug_files_fd(const struct debug_files *files, const struct elf_file *elf);
/* It is of no use to this file, nor to anybody when the file is root's or the caller's: others' files may have taken its build id, to have
 * it refused. */
void debug_files_refuse(struct debug_files *files, const struct elf_file *elf);
