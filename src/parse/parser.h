/* SPDX-License-Identifier: Apache-2.0 */
/* parser: asks a worker without rights (worker/worker.h) what stands in strangers' files: their unwind tables and names. What reading costs
 * is charged to their owners (parse/file_budget.h). One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "elf/elf_file.h"
#include "runtime/file_runtimes.h"
#include "symbolize/code_listing.h"
#include "unwind/rule_table.h"
#include "unwind/unwind_table.h"
#include "worker/worker.h"

struct parser;
MUST_CHECK int parser_new(struct diag *diag, struct parser **ret_parser); /* starts the worker: this program once more */
MUST_CHECK int parser_new_for_code(struct diag *diag, struct parser **ret_parser); /* one that parser_code is asked of, too */
/* Waits until the worker has started. 0; -ELOOP: this program's main does not ask sonde_is_worker, so nothing will ever be read. Other
 * failures may pass. */
MUST_CHECK int parser_ready(struct parser *parser, struct diag *diag);
/* From now on nobody waits for the tables and runtimes of files that are neither root's nor of who called us: parser_table and
 * parser_runtimes give -EINPROGRESS, and the answer when they are asked again. 0 or -ENOMEM. */
MUST_CHECK int parser_use_background(struct parser *parser);
bool parser_may_wait(struct parser *parser); /* has waiting for such files not taken too much of the run? */
void parser_forget(struct parser *parser, uint32_t object); /* its number may be another file's */
/* Questions that are waited for are given up from then on (clock_is_past), with -ECANCELED. Borrowed for the parser's life. */
void parser_cancel_by(struct parser *parser, const uint64_t *cancel_ns);
void parser_set_nice(struct parser *parser, int nice); /* of the worker */
void parser_free(struct parser *parser); /* takes NULL */
static inline void parser_freep(struct parser **parser)
{
	parser_free(*parser);
}

/* As unwind_table_build, which the worker calls. `object`: the file's number. Further: -ECHILD, -ETIMEDOUT, -ENOBUFS when it crashed, took
 * too long or too much memory; -ETIME: its file system hangs; `diag` tells. -EDQUOT: its owner's files have cost too much; `diag` tells the
 * first time. -EINPROGRESS: see above. */
MUST_CHECK int parser_table(struct parser *parser, uint32_t object, const struct elf_file *elf, struct rule_table *rules, struct diag *diag,
			    struct unwind_table **ret_table);

/* What languages' interpreters, or which C library, a file holds. 0 or as parser_table. */
MUST_CHECK int parser_runtimes(struct parser *parser, uint32_t object, const struct elf_file *elf, struct diag *diag,
			       struct file_runtimes *ret_runtimes);

struct parser_names {
	const struct elf_file *elf;
	const char *path;            /* where a separate debug file is looked for; may be NULL */
	const uint64_t *elf_vaddrs;  /* best in ascending order */
	uint32_t nr;
	bool lines;                  /* also source lines and inlined functions */
	worker_open_fn open;         /* opens debug files */
	void *open_arg;
	bool has_fetched; /* a debug file from elsewhere: it is used when its build id is this file's, else refused (name_answers.nr_refused
			     is 1) */
	int fetched_fd;              /* stays the caller's */
};
/* Appends the answers to these addresses (symbolize/name_answers.h). 0; -ENODATA: the file has no names; or as parser_table. */
MUST_CHECK int parser_names(struct parser *parser, const struct parser_names *request, struct diag *diag, struct buffer *answers);
/* Would a debug file from elsewhere tell more (symbolizer_wants_debug)? No addresses are looked at. 0 or as parser_table. */
MUST_CHECK int parser_wants_debug(struct parser *parser, const struct parser_names *file, bool *ret_wants);
/* The same as parser_names for code that a JIT compiler made, by the files in which it names it (symbolize/jit_names.h). The descriptors
 * stay the caller's. */
MUST_CHECK int parser_jit(struct parser *parser, const int *fds, uint32_t nr_fds, const uint64_t *pcs, uint32_t nr, struct diag *diag,
			  struct buffer *answers);
/* Appends the instructions of the function that has an address (symbolize/code_listing.h). `open` as of parser_names. 0 or as
 * code_listing_write, further as parser_table. */
MUST_CHECK int parser_code(struct parser *parser, const struct elf_file *elf, const char *path, const struct code_request *code,
			   worker_open_fn open, void *open_arg, struct diag *diag, struct buffer *answer);
