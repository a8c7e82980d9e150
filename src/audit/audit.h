/* SPDX-License-Identifier: Apache-2.0 */
/* audit: a stack that the kernel side walked, unwound once more by an implementation that shares nothing with it: elfutils' libdw, from the
 * thread's registers and a copy of the top of its stack; and what a comparison of the two says. libdw parses files of strangers here, so
 * this is off unless asked for. Files are opened with their own descriptors and kept, and so is what libdw knows of a few processes, all
 * within bounds. One thread. */
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
	const struct elf_file *elf; /* NULL: anonymous memory, or no file of ours; borrowed for the call */
	uint32_t object;            /* the file's number: no other file has it while the process's generation stays the same */
};

struct audit_process {
	uint32_t tgid, generation;
	const struct audit_module *modules; /* sorted by start_pc, not overlapping */
	uint32_t nr_modules;
};

enum audit_end {
	AUDIT_END_ROOT,    /* the return address is undefined by rule, or 0: there is no caller */
	AUDIT_END_COPY,    /* the caller stands in memory that was not copied */
	AUDIT_END_NO_CFI,  /* libdw has no call frame information at the last frame's pc that it can follow */
	AUDIT_END_LIBDW,   /* it has, and could not apply it */
	AUDIT_END_NO_CODE, /* what it gives for the caller is no executable memory (Go's start code): not among the frames */
	AUDIT_END_FRAMES,  /* AUDIT_MAX_FRAMES */
	AUDIT_END_COMPAT,  /* 32-bit code: not unwound */
};

#define AUDIT_MAX_FRAMES SONDE_LEAF_FRAMES /* behind these a deep stack leaves frames out */

struct audit_stack {
	uint64_t frames[AUDIT_MAX_FRAMES]; /* as in abi/record.h, leaf first */
	uint32_t nr_frames;
	enum audit_end end;
};

enum audit_verdict { AUDIT_AGREES, AUDIT_DIFFERS, AUDIT_NOT_COMPARABLE };

struct audit_finding {
	enum audit_verdict verdict;
	enum audit_reason reason; /* of AUDIT_NOT_COMPARABLE */
	uint32_t frame;           /* of AUDIT_DIFFERS: the first frame that one has and the other has not, or has another pc in */
};

struct audit;
MUST_CHECK int audit_new(struct diag *diag, struct audit **ret_audit); /* 0, -ENOMEM, -ENOTSUP */
void audit_free(struct audit *audit);                                  /* takes NULL */
static inline void audit_freep(struct audit **audit)
{
	audit_free(*audit);
}

/* Unwinds by libdw; its frame pointer fallback does not count, so the stack ends where call frame information does. 0; -EINVAL: more stack
 * than a record can have; -ENOMEM. The caller has checked that the record is followed by stack_bytes. */
MUST_CHECK int audit_unwind(struct audit *audit, const struct sonde_deferred_record *record, const struct audit_process *process,
			    struct audit_stack *ret_stack);

/* The stack that the kernel side walked, beside that of libdw. What only one of the two could see is no disagreement: where libdw's
 * sight ends (the copy, a file without call frame information), the frames up to there count, if they are two at least. */
struct audit_finding audit_compare(const uint64_t *walked, uint32_t nr_walked, enum sonde_stop stop, const struct audit_stack *by_libdw);
