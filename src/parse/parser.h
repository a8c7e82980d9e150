/* SPDX-License-Identifier: Apache-2.0 */
/* parser: has a worker without privileges (worker/worker.h) read untrusted files: their unwind tables and names. The cost is charged to the
 * files' owners (parse/file_budget.h). One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "elf/elf_file.h"
#include "probe/allocators.h"
#include "runtime/file_runtimes.h"
#include "symbolize/code_listing.h"
#include "unwind/rule_table.h"
#include "unwind/unwind_table.h"
#include "worker/worker.h"

struct parser;
MUST_CHECK int parser_new(struct diag *diag, struct parser **ret_parser); /* starts the worker: this executable again */
MUST_CHECK int parser_new_for_code(struct diag *diag, struct parser **ret_parser); /* for parser_code as well */
/* Waits until the worker has started. 0; -ELOOP: this program's main does not call sonde_is_worker, so nothing can be read. Other failures
 * may be temporary. */
MUST_CHECK int parser_ready(struct parser *parser, struct diag *diag);
/* From now on the tables and runtimes of untrusted files are read in the background: parser_table and parser_runtimes return -EINPROGRESS
 * until the answer has arrived. 0 or -ENOMEM. */
MUST_CHECK int parser_use_background(struct parser *parser);
bool parser_may_wait(struct parser *parser); /* has waiting for such files not taken too much of the run? */
void parser_forget(struct parser *parser, uint32_t object); /* the number may become another file's */
/* Requests that are waited for end at that time (clock_is_past), with -ECANCELED. Borrowed for the parser's life. */
void parser_cancel_by(struct parser *parser, const uint64_t *cancel_ns);
void parser_set_nice(struct parser *parser, int nice); /* of the workers */
void parser_free(struct parser *parser); /* takes NULL */
static inline void parser_freep(struct parser **parser)
{
	parser_free(*parser);
}

/* As unwind_table_build, which the worker calls. `object`: the file's number. Also: -ECHILD, -ETIMEDOUT, -ENOBUFS: the worker crashed, took
 * too long or too much memory; -ETIME: the file system hangs; `diag` is set. -EDQUOT: the owner's files have cost too much; `diag` is set
 * the first time. -EINPROGRESS: see above. */
MUST_CHECK int parser_table(struct parser *parser, uint32_t object, const struct elf_file *elf, struct rule_table *rules, struct diag *diag,
			    struct unwind_table **ret_table);

/* The interpreters, or the C library, in a file. 0 or as parser_table. */
MUST_CHECK int parser_runtimes(struct parser *parser, uint32_t object, const struct elf_file *elf, struct diag *diag,
			       struct file_runtimes *ret_runtimes);

/* The functions of an allocator in a file, with the places for their probes. 0 or as parser_table. */
MUST_CHECK int parser_allocators(struct parser *parser, uint32_t object, const struct elf_file *elf, struct diag *diag,
				 struct allocators *ret_allocators);

struct parser_names {
	const struct elf_file *elf;
	const char *path;            /* where to look for a separate debug file; may be NULL */
	const uint64_t *elf_vaddrs;  /* preferably in ascending order */
	uint32_t nr;
	bool lines;                  /* also source lines and inlined functions */
	worker_open_fn open;         /* opens debug files */
	void *open_arg;
	/* fetched_fd is a debug file from elsewhere: used if its build id is this file's, otherwise refused (name_answers.nr_refused is
	 * 1) */
	bool has_fetched;
	int fetched_fd;              /* stays the caller's */
};
/* Appends the answers to these addresses (symbolize/name_answers.h). 0; -ENODATA: the file has no names; or as parser_table. */
MUST_CHECK int parser_names(struct parser *parser, const struct parser_names *request, struct diag *diag, struct buffer *answers);
/* Would a debug file from elsewhere add information (symbolizer_wants_debug)? Ignores the addresses. 0 or as parser_table. */
MUST_CHECK int parser_wants_debug(struct parser *parser, const struct parser_names *file, bool *ret_wants);
/* As parser_names, for code of a JIT compiler, from the files in which that lists its code (symbolize/jit_names.h). The descriptors stay
 * the caller's. */
MUST_CHECK int parser_jit(struct parser *parser, const int *fds, uint32_t nr_fds, const uint64_t *pcs, uint32_t nr, struct diag *diag,
			  struct buffer *answers);
/* Appends the instructions of the function at an address (symbolize/code_listing.h). `open` as in parser_names. 0 or as code_listing_write,
 * or as parser_table. */
MUST_CHECK int parser_code(struct parser *parser, const struct elf_file *elf, const char *path, const struct code_request *code,
			   worker_open_fn open, void *open_arg, struct diag *diag, struct buffer *answer);
