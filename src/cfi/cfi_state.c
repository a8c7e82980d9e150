// SPDX-License-Identifier: Apache-2.0
#include "cfi/cfi_program.h"

#include <elf.h>

static const struct cfi_machine x86_64 = { /* psABI figure 3.36 */
	.parts = { [3] = CFI_PART_BX, [6] = CFI_PART_BP, [7] = CFI_PART_SP, [16] = CFI_PART_RA },
	.ra_column = 16,
	.pc_column = 16,
	.nr_regs = 16,
};

static const struct cfi_machine aarch64 = { /* "DWARF for the Arm 64-bit Architecture", section 4.1 */
	.parts = { [29] = CFI_PART_BP, [30] = CFI_PART_RA, [31] = CFI_PART_SP },
	.ra_column = 30,
	.pc_column = CFI_NO_COLUMN,
	.nr_regs = 32,
	.is_ra_register = true,
};

const struct cfi_machine *cfi_machine_of(uint16_t elf_machine)
{
	switch (elf_machine) {
	case EM_X86_64:
		return &x86_64;
	case EM_AARCH64:
		return &aarch64;
	default:
		return NULL;
	}
}

struct cfi_state cfi_state_at_start(const struct cfi_machine *machine)
{
	return (struct cfi_state){
		.rule = { .kind = SONDE_RULE_KIND_STEP,
			  .bp_kind = SONDE_BP_SAME,
			  .ra_kind = machine->is_ra_register ? SONDE_RA_REG : SONDE_RA_CFA,
			  .ra_off = (int16_t)(machine->is_ra_register ? machine->ra_column : 0) },
		.unfit = CFI_UNFIT_CFA | (machine->is_ra_register ? 0 : CFI_UNFIT_RA),
	};
}

static bool fits_s16(int64_t value)
{
	return value == (int16_t)value;
}

static bool fits_s32(int64_t value)
{
	return value == (int32_t)value;
}

static void set_unfit(struct cfi_state *state, uint8_t part, bool is_unfit)
{
	state->unfit = (uint8_t)(is_unfit ? state->unfit | part : state->unfit & ~part);
}

void cfi_state_set_cfa(struct cfi_state *state, const struct cfi_machine *machine, const struct cfi_cfa *cfa)
{
	bool fits = fits_s32(cfa->off) && fits_s16(cfa->add);
	enum cfi_part part = cfi_part_of(machine, cfa->reg);

	state->cfa_is_register = cfa->form == CFI_CFA_REGISTER;
	state->rule.cfa_off = (int32_t)cfa->off;
	state->rule.cfa_add = (int16_t)cfa->add;
	state->rule.cfa_reg = 0;
	switch (cfa->form) {
	case CFI_CFA_REGISTER:
		state->cfa_reg = cfa->reg;
		state->cfa_off = cfa->off;
		fits &= cfa->reg < machine->nr_regs;
		if (part == CFI_PART_SP) {
			state->rule.cfa_kind = SONDE_CFA_SP;
		} else if (part == CFI_PART_BP) {
			state->rule.cfa_kind = SONDE_CFA_BP;
		} else {
			state->rule.cfa_kind = SONDE_CFA_REG;
			state->rule.cfa_reg = (uint8_t)cfa->reg;
		}
		break;
	case CFI_CFA_DEREF:
		state->rule.cfa_kind = part == CFI_PART_SP ? SONDE_CFA_DEREF_SP : SONDE_CFA_DEREF_BP;
		break;
	case CFI_CFA_DEREF_TWICE:
		state->rule.cfa_kind = SONDE_CFA_DEREF_TWICE;
		state->rule.cfa_reg = (uint8_t)cfa->reg;
		break;
	case CFI_CFA_PLT:
		state->rule.cfa_kind = SONDE_CFA_PLT;
		state->rule.cfa_reg = (uint8_t)cfa->reg;
		break;
	case CFI_CFA_OTHER:
		fits = false;
	}
	set_unfit(state, CFI_UNFIT_CFA, !fits);
}

bool cfi_state_set_cfa_off(struct cfi_state *state, const struct cfi_machine *machine, int64_t off)
{
	state->cfa_off = off;
	if (!state->cfa_is_register)
		return false;
	state->rule.cfa_off = (int32_t)off;
	set_unfit(state, CFI_UNFIT_CFA, !fits_s32(off) || state->cfa_reg >= machine->nr_regs);
	return true;
}

static void set_bp(struct cfi_state *state, enum cfi_where_kind kind, int64_t off)
{
	bool fits = fits_s32(off);

	state->rule.bp_off = (int32_t)off;
	switch (kind) {
	case CFI_SAME:
		state->rule.bp_kind = SONDE_BP_SAME;
		break;
	case CFI_UNDEFINED:
		state->rule.bp_kind = SONDE_BP_UNDEFINED;
		break;
	case CFI_AT_CFA:
		state->rule.bp_kind = SONDE_BP_CFA;
		break;
	case CFI_AT_BP:
		state->rule.bp_kind = SONDE_BP_BP;
		break;
	case CFI_AT_SP:
	case CFI_IS_CFA:
	case CFI_IN_REG:
	case CFI_ELSEWHERE:
		fits = false;
	}
	set_unfit(state, CFI_UNFIT_BP, !fits);
}

static void set_ra(struct cfi_state *state, const struct cfi_machine *machine, enum cfi_where_kind kind, int64_t off)
{
	bool is_untouched = kind == CFI_SAME && machine->is_ra_register,
	     is_register = is_untouched || (kind == CFI_IN_REG && off < (int64_t)machine->nr_regs);

	state->ra_is_undefined = kind == CFI_UNDEFINED;
	state->ra_sp_off = kind == CFI_AT_SP ? off : 0;
	state->rule.ra_kind = is_register ? SONDE_RA_REG : SONDE_RA_CFA;
	state->rule.ra_off = (int16_t)(is_untouched ? (int64_t)machine->ra_column : off);
	set_unfit(state, CFI_UNFIT_RA, !is_register && (kind != CFI_AT_CFA || !fits_s16(off)));
}

/* A form that a rule cannot express costs only frames that need rbx from their callee: hardly any. */
static void set_bx(struct cfi_state *state, enum cfi_where_kind kind, int64_t off)
{
	if (kind == CFI_SAME)
		state->rule.rbx_off = 0;
	else if (kind == CFI_AT_CFA && off && fits_s16(off))
		state->rule.rbx_off = (int16_t)off;
	else
		state->rule.rbx_off = SONDE_RBX_LOST;
}

bool cfi_state_set_where(struct cfi_state *state, const struct cfi_machine *machine, enum cfi_part part, enum cfi_where_kind kind,
			 int64_t off)
{
	switch (part) {
	case CFI_PART_BP:
		set_bp(state, kind, off);
		break;
	case CFI_PART_SP: /* its own rule for sp (glibc's setcontext) contradicts "the caller's sp is the CFA" */
		set_unfit(state, CFI_UNFIT_SP, kind != CFI_IS_CFA);
		break;
	case CFI_PART_RA:
		set_ra(state, machine, kind, off);
		break;
	case CFI_PART_BX:
		set_bx(state, kind, off);
		break;
	case CFI_PART_NONE:
		return false;
	}
	return true;
}

bool cfi_state_restore(struct cfi_state *state, const struct cfi_state *initial, enum cfi_part part)
{
	switch (part) {
	case CFI_PART_BP:
		state->rule.bp_kind = initial->rule.bp_kind;
		state->rule.bp_off = initial->rule.bp_off;
		set_unfit(state, CFI_UNFIT_BP, initial->unfit & CFI_UNFIT_BP);
		break;
	case CFI_PART_SP:
		set_unfit(state, CFI_UNFIT_SP, initial->unfit & CFI_UNFIT_SP);
		break;
	case CFI_PART_RA:
		state->ra_is_undefined = initial->ra_is_undefined;
		state->ra_sp_off = initial->ra_sp_off;
		state->rule.ra_kind = initial->rule.ra_kind;
		state->rule.ra_off = initial->rule.ra_off;
		set_unfit(state, CFI_UNFIT_RA, initial->unfit & CFI_UNFIT_RA);
		break;
	case CFI_PART_BX:
		state->rule.rbx_off = initial->rule.rbx_off;
		break;
	case CFI_PART_NONE:
		return false;
	}
	return true;
}

/* Is it the kernel's rt_sigframe? x86-64: struct ucontext at sp, its registers at 40, rsp the 15th and rip the 16th
 * (arch/x86/include/asm/sigframe.h). arm64, as in the vdso: x29 leads to a frame record, and the CFA is that record itself. The mark of a
 * signal frame alone is not enough: OCaml's own frames have it, too. */
static bool is_sigframe(const struct cfi_state *state)
{
	const struct sonde_rule *rule = &state->rule;

	if (!rule->is_signal)
		return false;
	if (rule->cfa_kind == SONDE_CFA_DEREF_SP)
		return rule->cfa_off == 40 + 15 * 8 && !rule->cfa_add && state->ra_sp_off == 40 + 16 * 8;
	return rule->cfa_kind == SONDE_CFA_BP && !rule->cfa_off && rule->bp_kind == SONDE_BP_CFA && !rule->bp_off &&
	       rule->ra_kind == SONDE_RA_CFA && rule->ra_off == 8;
}

struct sonde_rule cfi_state_rule(const struct cfi_state *state)
{
	if (is_sigframe(state))
		return (struct sonde_rule){ .kind = SONDE_RULE_KIND_SIGNAL };
	if (state->ra_is_undefined)
		return (struct sonde_rule){ .kind = SONDE_RULE_KIND_END };
	if (state->unfit)
		return (struct sonde_rule){ .kind = SONDE_RULE_KIND_UNSUPPORTED };
	return state->rule;
}
