// SPDX-License-Identifier: Apache-2.0
#include "elf/cfi_program.h"

struct cfi_state cfi_state_at_start(void)
{
	return (struct cfi_state){
		.rule = { .kind = SONDE_RULE_KIND_STEP, .bp_kind = SONDE_BP_SAME },
		.unfit = CFI_UNFIT_CFA | CFI_UNFIT_RA,
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

void cfi_state_set_cfa(struct cfi_state *state, const struct cfi_cfa *cfa)
{
	bool fits = fits_s32(cfa->off) && fits_s16(cfa->add);

	state->cfa_is_register = cfa->form == CFI_CFA_REGISTER;
	state->rule.cfa_off = (int32_t)cfa->off;
	state->rule.cfa_add = (int16_t)cfa->add;
	state->rule.cfa_reg = 0;
	switch (cfa->form) {
	case CFI_CFA_REGISTER:
		state->cfa_reg = cfa->reg;
		state->cfa_off = cfa->off;
		fits &= cfa->reg < CFI_REG_RA;
		if (cfa->reg == CFI_REG_SP) {
			state->rule.cfa_kind = SONDE_CFA_SP;
		} else if (cfa->reg == CFI_REG_BP) {
			state->rule.cfa_kind = SONDE_CFA_BP;
		} else {
			state->rule.cfa_kind = SONDE_CFA_REG;
			state->rule.cfa_reg = (uint8_t)cfa->reg;
		}
		break;
	case CFI_CFA_DEREF:
		state->rule.cfa_kind = cfa->reg == CFI_REG_SP ? SONDE_CFA_DEREF_SP : SONDE_CFA_DEREF_BP;
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

bool cfi_state_set_cfa_off(struct cfi_state *state, int64_t off)
{
	state->cfa_off = off;
	if (!state->cfa_is_register)
		return false;
	state->rule.cfa_off = (int32_t)off;
	set_unfit(state, CFI_UNFIT_CFA, !fits_s32(off) || state->cfa_reg >= CFI_REG_RA);
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
	case CFI_IS_CFA:
	case CFI_ELSEWHERE:
		fits = false;
	}
	set_unfit(state, CFI_UNFIT_BP, !fits);
}

bool cfi_state_set_where(struct cfi_state *state, uint64_t reg, enum cfi_where_kind kind, int64_t off)
{
	switch (reg) {
	case CFI_REG_BP:
		set_bp(state, kind, off);
		break;
	case CFI_REG_SP: /* one of its own (glibc's setcontext) contradicts "the caller's sp is the CFA" */
		set_unfit(state, CFI_UNFIT_SP, kind != CFI_IS_CFA);
		break;
	case CFI_REG_RA:
		state->ra_is_undefined = kind == CFI_UNDEFINED;
		state->rule.ra_off = (int16_t)off;
		set_unfit(state, CFI_UNFIT_RA, kind != CFI_AT_CFA || !fits_s16(off));
		break;
	default:
		return false;
	}
	return true;
}

bool cfi_state_restore(struct cfi_state *state, const struct cfi_state *initial, uint64_t reg)
{
	uint8_t part;

	switch (reg) {
	case CFI_REG_BP:
		part = CFI_UNFIT_BP;
		state->rule.bp_kind = initial->rule.bp_kind;
		state->rule.bp_off = initial->rule.bp_off;
		break;
	case CFI_REG_SP:
		part = CFI_UNFIT_SP;
		break;
	case CFI_REG_RA:
		part = CFI_UNFIT_RA;
		state->ra_is_undefined = initial->ra_is_undefined;
		state->rule.ra_off = initial->rule.ra_off;
		break;
	default:
		return false;
	}
	set_unfit(state, part, initial->unfit & part);
	return true;
}

struct sonde_rule cfi_state_rule(const struct cfi_state *state)
{
	if (state->ra_is_undefined)
		return (struct sonde_rule){ .kind = SONDE_RULE_KIND_END };
	if (state->unfit)
		return (struct sonde_rule){ .kind = SONDE_RULE_KIND_UNSUPPORTED };
	return state->rule;
}
