/* SPDX-License-Identifier: Apache-2.0 */
/* cfi_proof: compares the unwind table of a file with libdw, by value: CFA, return address, frame pointer, stack pointer and rbx. The
 * address range is cut where a row of ours or of libdw's begins. In each piece both are constant, and its first and last address are
 * compared. So a proof without `max_pieces` covers every address in our rows. Between our rows libdw is queried every 16 bytes. Random
 * addresses are looked up in addition. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"

#define CFI_PROOF_SHAPES 24

struct cfi_proof_options {
	uint32_t max_pieces;    /* for larger files: that many, in windows spread over the file. 0: all */
	uint32_t nr_random;
	uint32_t max_told;      /* how many differences are described */
	void (*tell)(void *arg, const char *text);
	void *arg;
	bool wants_shapes;
};

/* An expression in the file, and the number of pieces that use it. */
struct cfi_shape {
	char text[96]; /* "CFA: breg6 deref" */
	uint32_t nr_pieces, nr_unsupported;
};

struct cfi_proof {
	uint32_t nr_rows, nr_rules, nr_pieces, nr_pcs;
	uint32_t nr_step, nr_none, nr_end, nr_signal, nr_unsupported; /* pcs, by our rule's kind */
	uint32_t nr_bx_lost;    /* pcs whose rule does not tell where rbx is */
	uint32_t nr_go;         /* pcs where Go's own table, not CFI, rightly differs */
	uint32_t nr_refused;    /* pcs with a rule where libdw refuses the file's rule */
	uint32_t nr_differ;
	uint32_t nr_bad_fdes;
	struct cfi_shape shapes[CFI_PROOF_SHAPES];
	uint32_t nr_shapes;
};

/* Returns 0, -ENODATA when the file has no CFI, or the error of opening it or building its table. */
MUST_CHECK int cfi_prove(const char *path, const struct cfi_proof_options *options, struct diag *diag, struct cfi_proof *ret_proof);
