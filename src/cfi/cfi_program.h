/* SPDX-License-Identifier: Apache-2.0 */
/* cfi_program: shared by the files of the CFI interpreter: the state of a DW_CFA_* program and its parts. Private to cfi*.c. Opcode numbers
 * and operands: DWARF 5 section 6.4.2 and 7.24, GNU ones: LSB core "DWARF Extensions". */
#pragma once
#include "base/reader.h"
#include "cfi/cfi.h"

/* The columns that an unwinder of sp, bp and pc needs; all others are ignored. */
enum cfi_part {
	CFI_PART_NONE,
	CFI_PART_BP, /* the frame pointer */
	CFI_PART_SP,
	CFI_PART_RA,
	CFI_PART_BX, /* x86-64: the one other register in which glibc keeps a CFA (_dl_runtime_resolve_xsavec) */
};

#define CFI_NR_COLUMNS 64 /* an operand inside an opcode has six bits */
#define CFI_NO_COLUMN  UINT64_MAX

struct cfi_machine {
	uint8_t parts[CFI_NR_COLUMNS]; /* enum cfi_part by DWARF register number */
	uint64_t ra_column;
	uint64_t pc_column;   /* the pc itself, in expressions; CFI_NO_COLUMN: it has no number */
	uint64_t nr_regs;     /* a CFA can be in one of these */
	bool is_ra_register;  /* the return address is in a register at the start (a link register) */
};

/* NULL: an unknown machine. */
const struct cfi_machine *cfi_machine_of(uint16_t elf_machine);

static inline enum cfi_part cfi_part_of(const struct cfi_machine *machine, uint64_t reg)
{
	return reg < CFI_NR_COLUMNS ? (enum cfi_part)machine->parts[reg] : CFI_PART_NONE;
}

enum cfi_where_kind {
	CFI_SAME,
	CFI_UNDEFINED,
	CFI_AT_CFA,    /* in memory at CFA + off */
	CFI_AT_BP,     /* in memory at bp + off */
	CFI_AT_SP,     /* at sp + off */
	CFI_IS_CFA,    /* the value is the CFA itself */
	CFI_IN_REG,    /* in the register with number off */
	CFI_ELSEWHERE, /* a rule that struct sonde_rule cannot express */
};

struct cfi_where {
	int64_t off;
	enum cfi_where_kind kind;
};

enum cfi_cfa_form { CFI_CFA_REGISTER, CFI_CFA_DEREF, CFI_CFA_DEREF_TWICE, CFI_CFA_PLT, CFI_CFA_OTHER };

struct cfi_cfa {
	/* REGISTER: reg + off; DEREF: *(reg + off) + add; DEREF_TWICE: *(*(sp + off) + reg) + add; PLT: sp + off, `reg` is the threshold */
	int64_t off, add;
	uint64_t reg;
	enum cfi_cfa_form form;
};

/* The parts of a state that struct sonde_rule cannot express. */
enum { CFI_UNFIT_CFA = 1, CFI_UNFIT_BP = 2, CFI_UNFIT_SP = 4, CFI_UNFIT_RA = 8 };

/* The state is kept as a rule: it changes about as often as it is used. */
struct cfi_state {
	struct sonde_rule rule; /* kind STEP; unfit parts have no meaning */
	uint64_t cfa_reg;	/* changed by DW_CFA_def_cfa_register and _offset; survives an expression */
	int64_t cfa_off;
	bool cfa_is_register;
	bool ra_is_undefined;
	int64_t ra_sp_off;	/* the return address is at sp + this; 0: not relative to sp */
	uint8_t unfit;
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
	bool is_usable;		    /* and its program can be run */
	/* The return address is in another column than the machine's: a function for one callee (arm64's libc has one). */
	bool is_foreign;
};

/* A program being run: a CIE's (no `row`) or an FDE's. */
struct cfi_run {
	const struct cfi_section *section;
	const struct cfi_machine *machine;
	const struct cfi_cie *cie;
	struct reader program;
	struct cfi_state state;
	uint64_t loc, end;
	cfi_row_fn row;
	void *arg;
	struct cfi_stats *stats;
	bool has_changed; /* since the last row */
	int err;	  /* the error of `row` */
	uint32_t nr_remembered;
	struct cfi_state remembered[CFI_MAX_REMEMBERED];
};

/* The state before a CIE's program, by the psABI alone: the CFA is the caller's sp. rbp and rbx (x29; x30 is the return address) are
 * callee-saved: if not mentioned, they are unchanged (x86-64: section 3.2.1). */
struct cfi_state cfi_state_at_start(const struct cfi_machine *machine);
void cfi_state_set_cfa(struct cfi_state *state, const struct cfi_machine *machine, const struct cfi_cfa *cfa);
/* False: nothing has changed yet, the offset waits for a register. DWARF requires that a register and an offset exist before one half is
 * redefined. gcc's unwinder keeps both through an expression, and hand-written code relies on it (libgcrypt). */
MUST_CHECK bool cfi_state_set_cfa_off(struct cfi_state *state, const struct cfi_machine *machine, int64_t off);
/* True if the part is one of interest. `off` is 0 for kinds without an offset. */
MUST_CHECK bool cfi_state_set_where(struct cfi_state *state, const struct cfi_machine *machine, enum cfi_part part,
				    enum cfi_where_kind kind, int64_t off);
MUST_CHECK bool cfi_state_restore(struct cfi_state *state, const struct cfi_state *initial, enum cfi_part part);
struct sonde_rule cfi_state_rule(const struct cfi_state *state);

/* Runs the program to its end and gives its rows. 0; -EBADMSG: it is damaged; or the error of `row`. */
MUST_CHECK int cfi_program_run(struct cfi_run *run);

/* Reads a DW_EH_PE_* pointer; fails the reader on an encoding that a linked file's CFI cannot have. */
uint64_t cfi_read_pointer(const struct cfi_section *section, struct reader *r, uint8_t encoding);

struct cfi_cfa cfi_cfa_of_expression(const struct cfi_machine *machine, struct reader expression);
/* For DW_CFA_expression: the register is saved at the address that the expression gives. */
struct cfi_where cfi_where_of_expression(const struct cfi_machine *machine, struct reader expression);

/* Nearly all LEB128 numbers of CFI have one byte. */
static inline uint64_t cfi_uleb(struct reader *r)
{
	return r->pos < r->end && *r->pos < 0x80 ? *r->pos++ : reader_uleb(r);
}
