/* SPDX-License-Identifier: Apache-2.0 */
/* cfi_program: what the files of the CFI interpreter share: the state of a DW_CFA_* program and its pieces. Private to
 * cfi*.c. Opcode numbers and operands: DWARF 5 section 6.4.2 and 7.24, GNU ones: LSB core "DWARF Extensions". */
#pragma once
#include "base/reader.h"
#include "elf/cfi.h"

/* DWARF register numbers of x86-64 (psABI figure 3.36). */
enum { CFI_REG_BP = 6, CFI_REG_SP = 7, CFI_REG_RA = 16 };

/* The columns that an unwinder of sp, bp and pc needs; all others are read over. */
enum cfi_column { CFI_COLUMN_BP, CFI_COLUMN_SP, CFI_COLUMN_RA, CFI_NR_COLUMNS };

enum cfi_where_kind {
	CFI_UNSET, /* never mentioned */
	CFI_SAME,
	CFI_UNDEFINED,
	CFI_AT_CFA,    /* in memory at CFA + off */
	CFI_AT_BP,     /* in memory at bp + off */
	CFI_IS_CFA,    /* the value is the CFA itself */
	CFI_ELSEWHERE, /* a rule that struct sonde_rule has no form for */
};

struct cfi_where {
	int64_t off;
	enum cfi_where_kind kind;
};

enum cfi_cfa_form { CFI_CFA_UNSET, CFI_CFA_REGISTER, CFI_CFA_DEREF, CFI_CFA_PLT, CFI_CFA_OTHER };

struct cfi_cfa {
	int64_t off, add; /* REGISTER: reg + off; DEREF: *(reg + off) + add; PLT: sp + off, `reg` is the threshold */
	uint64_t reg;
	enum cfi_cfa_form form;
};

struct cfi_state {
	struct cfi_cfa cfa;
	struct cfi_where where[CFI_NR_COLUMNS];
};

#define CFI_MAX_REMEMBERED 32 /* nested DW_CFA_remember_state; compilers nest one or two */

struct cfi_cie {
	uint64_t code_align;
	int64_t data_align;
	struct cfi_state initial;
	uint8_t pointer_encoding;
	bool has_augmentation_size; /* 'z' */
	bool is_signal;		    /* 'S' */
	bool is_readable;	    /* an FDE's range can be read */
	bool is_usable;		    /* and its program be run */
};

/* One program under way: a CIE's (no `row`) or an FDE's. */
struct cfi_run {
	const struct cfi_section *section;
	const struct cfi_cie *cie;
	struct reader program;
	struct cfi_state state;
	uint64_t loc, end;
	cfi_row_fn row;
	void *arg;
	struct cfi_stats *stats;
	bool has_changed; /* since the last row */
	int err;	  /* what `row` gave */
	uint32_t nr_remembered;
	struct cfi_state remembered[CFI_MAX_REMEMBERED];
};

/* Runs the program to its end and gives its rows. 0; -EBADMSG when it is damaged; or what `row` gave. */
MUST_CHECK int cfi_program_run(struct cfi_run *run);
struct sonde_rule cfi_rule_of(const struct cfi_state *state);

/* Reads a DW_EH_PE_* pointer; fails the reader when the encoding is none that a linked file's CFI can have. */
uint64_t cfi_read_pointer(const struct cfi_section *section, struct reader *r, uint8_t encoding);

struct cfi_cfa cfi_cfa_of_expression(struct reader expression);
/* Of DW_CFA_expression: the register stands at the address that the expression gives. */
struct cfi_where cfi_where_of_expression(struct reader expression);

/* Nearly all LEB128 numbers of CFI have one byte. */
static inline uint64_t cfi_uleb(struct reader *r)
{
	return r->pos < r->end && *r->pos < 0x80 ? *r->pos++ : reader_uleb(r);
}
