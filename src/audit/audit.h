/* SPDX-License-Identifier: Apache-2.0 */
/* audit: unwinds a stack that the kernel side walked once more, with elfutils' libdw, which shares nothing with it, from the thread's
 * registers and a copy of the top of its stack; and compares the two. libdw parses untrusted files, so the audit is off unless enabled.
 * Opened files, and libdw's data of a few processes, are kept within bounds. One thread. */
#pragma once
#include <stdint.h>

#include "abi/record.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "elf/elf_file.h"
#include "model/audit_reason.h"

/* An executable mapping of the process. */
struct audit_module {
	uint64_t start_pc, end_pc;
	uint64_t load_bias;         /* elf_vaddr = pc - load_bias */
	const struct elf_file *elf; /* NULL: anonymous memory, or a file we do not have; borrowed for the call */
	uint32_t object;            /* the file's number: unique within a generation of the process */
};

struct audit_process {
	uint32_t tgid, generation;
	const struct audit_module *modules; /* sorted by start_pc, not overlapping */
	uint32_t nr_modules;
};

enum audit_end {
	AUDIT_END_ROOT,    /* the return address is undefined by rule, or 0: there is no caller */
	AUDIT_END_COPY,    /* the caller's frame is in memory that was not copied */
	AUDIT_END_NO_CFI,  /* libdw has no usable call frame information at the last frame's pc */
	AUDIT_END_LIBDW,   /* libdw has it, but could not apply it */
	AUDIT_END_NO_CODE, /* the caller is not in executable memory (Go's start code), and not among the frames */
	AUDIT_END_FRAMES,  /* AUDIT_MAX_FRAMES */
	AUDIT_END_COMPAT,  /* 32-bit code: not unwound */
};

#define AUDIT_MAX_FRAMES SONDE_LEAF_FRAMES /* a deeper stack leaves out frames behind these */

struct audit_stack {
	uint64_t frames[AUDIT_MAX_FRAMES]; /* as in abi/record.h, leaf first */
	uint32_t nr_frames;
	enum audit_end end;
};

enum audit_verdict { AUDIT_AGREES, AUDIT_DIFFERS, AUDIT_NOT_COMPARABLE };

struct audit_finding {
	enum audit_verdict verdict;
	enum audit_reason reason; /* of AUDIT_NOT_COMPARABLE */
	uint32_t frame;           /* of AUDIT_DIFFERS: the first frame with different pcs, or that only one has */
};

struct audit;
MUST_CHECK int audit_new(struct diag *diag, struct audit **ret_audit); /* 0, -ENOMEM, -ENOTSUP */
void audit_free(struct audit *audit);                                  /* takes NULL */
static inline void audit_freep(struct audit **audit)
{
	audit_free(*audit);
}

/* Unwinds with libdw, without its frame pointer fallback: the stack ends where call frame information does. The caller has checked that
 * stack_bytes follow the record. 0; -EINVAL: more stack than a record can have; -ENOMEM. */
MUST_CHECK int audit_unwind(struct audit *audit, const struct sonde_deferred_record *record, const struct audit_process *process,
			    struct audit_stack *ret_stack);

/* Compares the stack that the kernel side walked with libdw's. What only one of them could see is no difference: where libdw cannot go on
 * (end of the copy, a file without call frame information), the frames up to there count, if there are at least two. */
struct audit_finding audit_compare(const uint64_t *walked, uint32_t nr_walked, enum sonde_stop stop, const struct audit_stack *by_libdw);
