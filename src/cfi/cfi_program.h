/* SPDX-License-Identifier: Apache-2.0 */
/* cfi_program: what the files of the CFI interpreter share: the state of a DW_CFA_* program and its pieces. Private to
 * cfi*.c. Opcode numbers and operands: DWARF 5 section 6.4.2 and 7.24, GNU ones: LSB core "DWARF Extensions". */
#pragma once
#include "base/reader.h"
#include "cfi/cfi.h"

/* The columns of a frame that an unwinder of sp, bp and pc needs; all others are read over. */
enum cfi_part {
	CFI_PART_NONE,
	CFI_PART_BP, /* the frame pointer */
	CFI_PART_SP,
	CFI_PART_RA,
	CFI_PART_BX, /* x86-64: the one other register that glibc keeps a CFA in (_dl_runtime_resolve_xsavec) */
};

#define CFI_NR_COLUMNS 64 /* an operand in an opcode has six bits */
#define CFI_NO_COLUMN  UINT64_MAX

struct cfi_machine {
	uint8_t parts[CFI_NR_COLUMNS]; /* enum cfi_part by DWARF register number */
	uint64_t ra_column;
	uint64_t pc_column;   /* the pc itself, in expressions; CFI_NO_COLUMN: has no number */
	uint64_t nr_regs;     /* that a CFA can be in */
	bool is_ra_register;  /* the return address is in a register at first (a link register) */
};

/* NULL: not one that we know. */
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
	CFI_IN_REG,    /* in the register of number off */
	CFI_ELSEWHERE, /* a rule that struct sonde_rule has no form for */
};

struct cfi_where {
	int64_t off;
	enum cfi_where_kind kind;
};

enum cfi_cfa_form { CFI_CFA_REGISTER, CFI_CFA_DEREF, CFI_CFA_DEREF_TWICE, CFI_CFA_PLT, CFI_CFA_OTHER };

struct cfi_cfa {
	int64_t off, add; /* REGISTER: reg + off; DEREF: *(reg + off) + add; DEREF_TWICE: *(*(sp + off) + reg) + add; PLT: sp + off, `reg`
			     is the threshold */
	uint64_t reg;
	enum cfi_cfa_form form;
};

/* What of a state keeps it from being a struct sonde_rule. */
enum { CFI_UNFIT_CFA = 1, CFI_UNFIT_BP = 2, CFI_UNFIT_SP = 4, CFI_UNFIT_RA = 8 };

/* The state is kept as the rule that it will be: it changes about as often as it is asked for. */
struct cfi_state {
	struct sonde_rule rule; /* kind STEP; the parts that are unfit have no meaning */
	uint64_t cfa_reg;	/* what DW_CFA_def_cfa_register and _offset change; outlives an expression */
	int64_t cfa_off;
	bool cfa_is_register;
	bool ra_is_undefined;
	int64_t ra_sp_off;	/* the return address is at sp + this; 0: it is not */
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
	bool is_usable;		    /* and its program be run */
	bool is_foreign; /* its return address stands in another column than the machine's: a function for one callee (arm64's libc has one)
			  */
};

/* One program under way: a CIE's (no `row`) or an FDE's. */
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
	int err;	  /* what `row` gave */
	uint32_t nr_remembered;
	struct cfi_state remembered[CFI_MAX_REMEMBERED];
};

/* A CIE's program starts from nothing but what the psABI says: the CFA is the caller's sp, and rbp and rbx (x29; x30 is the return address)
 * are callee-saved, so that unmentioned means untouched (x86-64: section 3.2.1). */
struct cfi_state cfi_state_at_start(const struct cfi_machine *machine);
void cfi_state_set_cfa(struct cfi_state *state, const struct cfi_machine *machine, const struct cfi_cfa *cfa);
/* False: nothing changed yet, the offset waits for a register. DWARF wants a register and an offset to be there before half of
 * them is defined anew; gcc's unwinder keeps them through an expression, and hand-written code relies on it (libgcrypt). */
MUST_CHECK bool cfi_state_set_cfa_off(struct cfi_state *state, const struct cfi_machine *machine, int64_t off);
/* These are true when the part is one that matters; `off` is 0 where the kind has none. */
MUST_CHECK bool cfi_state_set_where(struct cfi_state *state, const struct cfi_machine *machine, enum cfi_part part,
				    enum cfi_where_kind kind, int64_t off);
MUST_CHECK bool cfi_state_restore(struct cfi_state *state, const struct cfi_state *initial, enum cfi_part part);
struct sonde_rule cfi_state_rule(const struct cfi_state *state);

/* Runs the program to its end and gives its rows. 0; -EBADMSG when it is damaged; or what `row` gave. */
MUST_CHECK int cfi_program_run(struct cfi_run *run);

/* Reads a DW_EH_PE_* pointer; fails the reader when the encoding is none that a linked file's CFI can have. */
uint64_t cfi_read_pointer(const struct cfi_section *section, struct reader *r, uint8_t encoding);

struct cfi_cfa cfi_cfa_of_expression(const struct cfi_machine *machine, struct reader expression);
/* Of DW_CFA_expression: the register stands at the address that the expression gives. */
struct cfi_where cfi_where_of_expression(const struct cfi_machine *machine, struct reader expression);

/* Nearly all LEB128 numbers of CFI have one byte. */
static inline uint64_t cfi_uleb(struct reader *r)
{
	return r->pos < r->end && *r->pos < 0x80 ? *r->pos++ : reader_uleb(r);
}
