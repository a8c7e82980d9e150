// SPDX-License-Identifier: Apache-2.0
#include "cfi_proof.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "dwarf_value.h"
#include "pclntab/go_pclntab.h"
#include "unwind/unwind_table.h"

#define WINDOW_PIECES 64
#define GAP_STEP      16 /* compilers align functions */

struct prover {
	const struct cfi_proof_options *options;
	const struct dwarf_columns *columns;
	struct elf_file *elf;
	struct rule_table *rules;
	struct unwind_table *table;
	uint64_t *starts;          /* of the table's rows */
	Elf *dw_elf;
	Dwarf *dw;
	Dwarf_CFI *cfis[2];        /* of .eh_frame and of .debug_frame: the first one that knows an address is used */
	bool is_go;
	struct cfi_proof proof;
};

static struct dwarf_caller caller_by_libdw(struct prover *p, uint64_t pc)
{
	struct dwarf_caller caller = { .state = DWARF_NO_RULE };

	for (size_t i = 0; i < ARRAY_SIZE(p->cfis) && caller.state == DWARF_NO_RULE; i++) {
		if (p->cfis[i])
			caller = dwarf_caller_at(p->cfis[i], p->columns, pc);
	}
	return caller;
}

static uint64_t cfa_of_rule(const struct dwarf_columns *columns, const struct sonde_rule *rule, const uint64_t *registers, uint64_t pc)
{
	int64_t off = rule->cfa_off, add = rule->cfa_add;

	switch (rule->cfa_kind) {
	case SONDE_CFA_SP:
		return registers[columns->sp] + off;
	case SONDE_CFA_BP:
		return registers[columns->bp] + off;
	case SONDE_CFA_REG:
		return registers[rule->cfa_reg] + off;
	case SONDE_CFA_DEREF_SP:
		return dwarf_memory_at(registers[columns->sp] + off) + add;
	case SONDE_CFA_DEREF_BP:
		return dwarf_memory_at(registers[columns->bp] + off) + add;
	case SONDE_CFA_DEREF_TWICE:
		return dwarf_memory_at(dwarf_memory_at(registers[columns->sp] + off) + rule->cfa_reg) + add;
	case SONDE_CFA_PLT:
		return registers[columns->sp] + off + ((pc & 15) >= rule->cfa_reg ? 8 : 0);
	}
	return 0;
}

static struct dwarf_caller caller_by_rule(const struct dwarf_columns *columns, const struct sonde_rule *rule, uint64_t pc)
{
	struct dwarf_caller caller = { .state = DWARF_KNOWN, .has_bp = true, .has_bx = columns->bx != NO_COLUMN };
	uint64_t registers[DWARF_NR_REGISTERS];

	dwarf_make_registers(columns, pc, registers);
	caller.cfa = caller.sp = cfa_of_rule(columns, rule, registers, pc);
	caller.pc = rule->ra_kind == SONDE_RA_REG ? registers[rule->ra_off] : dwarf_memory_at(caller.cfa + rule->ra_off);
	switch (rule->bp_kind) {
	case SONDE_BP_SAME:
		caller.bp = registers[columns->bp];
		break;
	case SONDE_BP_CFA:
		caller.bp = dwarf_memory_at(caller.cfa + rule->bp_off);
		break;
	case SONDE_BP_BP:
		caller.bp = dwarf_memory_at(registers[columns->bp] + rule->bp_off);
		break;
	default:
		caller.has_bp = false;
	}
	if (caller.has_bx)
		caller.is_bx_same = !rule->rbx_off;
	if (caller.has_bx)
		caller.bx = rule->rbx_off ? dwarf_memory_at(caller.cfa + rule->rbx_off) : registers[columns->bx];
	return caller;
}

/* Compares rbx only where the rule claims to know it. libdw calls it undefined if it was not mentioned (its table of callee-saved
 * registers has 0, which is rax, where it means rbx: backends/x86_64_cfi.c up to 0.188 at least). The psABI says that it is unchanged. */
static bool is_equal(const struct dwarf_caller *want, const struct dwarf_caller *got, bool has_bx)
{
	return want->cfa == got->cfa && want->sp == got->sp && want->pc == got->pc && want->has_bp == got->has_bp &&
	       (!want->has_bp || want->bp == got->bp) && (!has_bx || (want->has_bx ? want->bx == got->bx : got->is_bx_same));
}

static bool agrees(struct prover *p, const struct sonde_rule *rule, const struct dwarf_caller *want, uint64_t pc)
{
	struct dwarf_caller got;
	bool has_bx;

	/* derived from the code: test_code_frames */
	if (want->state == DWARF_NO_RULE && (rule->kind == SONDE_RULE_KIND_STEP || rule->kind == SONDE_RULE_KIND_END)) {
		p->proof.nr_none++;
		return elf_file_machine(p->elf) == EM_X86_64;
	}
	switch (rule->kind) {
	case SONDE_RULE_KIND_NONE:
	case SONDE_RULE_KIND_WIDE:
		p->proof.nr_none++;
		return want->state == DWARF_NO_RULE;
	case SONDE_RULE_KIND_END:
		p->proof.nr_end++;
		return want->state == DWARF_OUTERMOST;
	case SONDE_RULE_KIND_SIGNAL:
		p->proof.nr_signal++;
		return want->state == DWARF_KNOWN && want->is_signal;
	case SONDE_RULE_KIND_UNSUPPORTED: /* struct sonde_rule has no form for the rule, or libdw rejects it as well */
		p->proof.nr_unsupported++;
		return want->state == DWARF_KNOWN || want->state == DWARF_FAILED;
	case SONDE_RULE_KIND_STEP:
		p->proof.nr_step++;
		has_bx = p->columns->bx != NO_COLUMN && rule->rbx_off != SONDE_RBX_LOST;
		p->proof.nr_bx_lost += rule->rbx_off == SONDE_RBX_LOST;
		if (want->state == DWARF_FAILED) { /* half a CFA definition after an expression: gcc's unwinder accepts it */
			p->proof.nr_refused++;
			return true;
		}
		got = caller_by_rule(p->columns, rule, pc);
		return want->state == DWARF_KNOWN && want->is_signal == rule->is_signal && is_equal(want, &got, has_bx);
	default:
		return false;
	}
}

/* Where .gopclntab has data, it knows more than Go's .debug_frame: stacks' ends and changes, functions without an FDE, and where rbp is
 * saved. CFA and return address must be equal. */
static bool is_of_go(const struct prover *p, const struct sonde_rule *rule, const struct dwarf_caller *want, uint64_t pc)
{
	struct dwarf_caller got;

	if (!p->is_go)
		return false;
	if (rule->kind == SONDE_RULE_KIND_SWITCH || rule->kind == SONDE_RULE_KIND_END || want->state == DWARF_NO_RULE)
		return true;
	got = caller_by_rule(p->columns, rule, pc);
	return rule->kind == SONDE_RULE_KIND_STEP && rule->bp_kind == SONDE_BP_CFA && want->cfa == got.cfa && want->sp == got.sp &&
	       want->pc == got.pc;
}

static void tell(struct prover *p, uint64_t pc, uint16_t number, const struct sonde_rule *rule, const struct dwarf_caller *want)
{
	char text[320];

	if (p->proof.nr_differ > p->options->max_told || !p->options->tell)
		return;
	snprintf(text, sizeof(text),
		 "differs at %#" PRIx64
		 ": rule %u (kind %u, CFA kind %u %+d, bp kind %u %+d, ra kind %u %+d, rbx %+d), libdw state %d, CFA %#" PRIx64
		 " pc %#" PRIx64 " bp %d %#" PRIx64 " rbx %d %#" PRIx64,
		 pc, number, rule->kind, rule->cfa_kind, rule->cfa_off, rule->bp_kind, rule->bp_off, rule->ra_kind, rule->ra_off,
		 rule->rbx_off, (int)want->state, want->cfa, want->pc, want->has_bp, want->bp, want->has_bx, want->bx);
	p->options->tell(p->options->arg, text);
}

static uint64_t compare_at(struct prover *p, uint64_t pc, bool *ret_is_unsupported)
{
	uint32_t nr_rules;
	uint16_t number = unwind_table_find(p->table, pc);
	const struct sonde_rule *rule = &rule_table_rules(p->rules, &nr_rules)[number];
	struct dwarf_caller want = caller_by_libdw(p, pc);

	p->proof.nr_pcs++;
	if (number >= nr_rules) {
		p->proof.nr_differ++;
	} else if (!agrees(p, rule, &want, pc)) {
		if (is_of_go(p, rule, &want, pc)) {
			p->proof.nr_go++;
		} else {
			p->proof.nr_differ++;
			tell(p, pc, number, rule, &want);
		}
	}
	*ret_is_unsupported = rule->kind == SONDE_RULE_KIND_UNSUPPORTED;
	return want.row_end;
}

static void count_shape(struct prover *p, const char *what, const char *text, bool is_unsupported)
{
	char whole[sizeof(p->proof.shapes[0].text)];
	uint32_t i = 0;

	if (!*text)
		return;
	snprintf(whole, sizeof(whole), "%s: %s", what, text);
	while (i < p->proof.nr_shapes && strcmp(p->proof.shapes[i].text, whole) != 0)
		i++;
	if (i == CFI_PROOF_SHAPES)
		return;
	if (i == p->proof.nr_shapes)
		memcpy(p->proof.shapes[p->proof.nr_shapes++].text, whole, sizeof(whole));
	p->proof.shapes[i].nr_pieces++;
	p->proof.shapes[i].nr_unsupported += is_unsupported;
}

static void count_shapes(struct prover *p, uint64_t pc, bool is_unsupported)
{
	const struct {
		const char *name;
		int reg;
	} parts[] = { { "CFA", NO_COLUMN },
		      { "bp", p->columns->bp },
		      { "ra", p->columns->ra },
		      { "sp", p->columns->sp },
		      { "rbx", p->columns->bx } };
	char text[80];

	for (size_t part = 0; part < ARRAY_SIZE(parts); part++) {
		text[0] = '\0';
		if (part && parts[part].reg == NO_COLUMN)
			continue;
		for (size_t i = 0; i < ARRAY_SIZE(p->cfis) && !text[0]; i++) {
			if (p->cfis[i])
				dwarf_shape_at(p->cfis[i], pc, parts[part].reg, text, sizeof(text));
		}
		if (strcmp(text, "cfa value") != 0) /* the ABI's rule for sp */
			count_shape(p, parts[part].name, text, is_unsupported);
	}
}

/* Looks for an FDE that we lack between rows that we have, at addresses where functions may begin. */
static void prove_gap(struct prover *p, uint64_t start, uint64_t end)
{
	bool is_unsupported;

	for (uint64_t pc = (start | (GAP_STEP - 1)) + 1; pc < end && unwind_table_find(p->table, pc) == SONDE_RULE_NONE; pc += GAP_STEP)
		compare_at(p, pc, &is_unsupported);
}

/* Proves one row of ours, in as many pieces as libdw has rows there. */
static void prove_row(struct prover *p, uint64_t start, uint64_t end)
{
	prove_gap(p, start, end);
	while (start < end) {
		bool is_unsupported;
		uint64_t row_end = compare_at(p, start, &is_unsupported);

		if (p->options->wants_shapes)
			count_shapes(p, start, is_unsupported);
		if (row_end <= start || row_end > end)
			row_end = end;
		if (row_end - start > 1)
			compare_at(p, row_end - 1, &is_unsupported);
		p->proof.nr_pieces++;
		start = row_end;
	}
}

static void prove_rows(struct prover *p)
{
	uint32_t nr = p->table->nr_rows, max = p->options->max_pieces, stride = 1;

	if (max && nr > max)
		stride = (nr + max - 1) / max;
	for (uint32_t row = 0; row < nr; row++) {
		if (row / WINDOW_PIECES % stride)
			continue;
		prove_row(p, p->starts[row], row + 1 < nr ? p->starts[row + 1] : p->starts[row] + 1);
	}
}

static void prove_random(struct prover *p)
{
	uint64_t size = (uint64_t)p->table->nr_blocks << p->table->block_shift, seed = 1;
	bool is_unsupported;

	for (uint32_t i = 0; i < p->options->nr_random; i++) {
		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		compare_at(p, p->table->base_vaddr + (seed >> 24) % size, &is_unsupported);
	}
}

static int list_rows(struct prover *p)
{
	const struct unwind_table *table = p->table;

	p->starts = calloc(table->nr_rows, sizeof(*p->starts));
	if (!p->starts)
		return -ENOMEM;
	for (uint32_t block = 0; block < table->nr_blocks; block++) {
		for (uint32_t row = table->blocks[block]; row < table->blocks[block + 1]; row++)
			p->starts[row] = table->base_vaddr + ((uint64_t)block << table->block_shift) + table->rows[row].low;
	}
	return 0;
}

static int open_ours(struct prover *p, const char *path, struct diag *diag)
{
	CLEANUP(go_pclntab_freep) struct go_pclntab *go = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), err;

	if (fd < 0)
		return diag_errno(diag, errno, "%s cannot be opened", path);
	err = elf_file_open_fd(fd, diag, &p->elf);
	if (err) {
		close(fd);
		return err;
	}
	p->columns = dwarf_columns_of(elf_file_machine(p->elf));
	if (!p->columns)
		return diag_errno(diag, ENODATA, "another machine's");
	p->is_go = !go_pclntab_read(p->elf, NULL, &go);
	p->rules = rule_table_new(SONDE_MAX_RULES);
	err = p->rules ? unwind_table_build_for(elf_file_machine(p->elf), p->elf, p->rules, diag, &p->table) : -ENOMEM;
	return err ? err : list_rows(p);
}

static int open_libdw(struct prover *p, struct diag *diag)
{
	elf_version(EV_CURRENT);
	p->dw_elf = elf_begin(elf_file_fd(p->elf), ELF_C_READ_MMAP, NULL);
	if (!p->dw_elf)
		return diag_errno(diag, ENOEXEC, "libelf: %s", elf_errmsg(-1));
	p->cfis[0] = dwarf_getcfi_elf(p->dw_elf);
	p->dw = dwarf_begin_elf(p->dw_elf, DWARF_C_READ, NULL);
	p->cfis[1] = p->dw ? dwarf_getcfi(p->dw) : NULL;
	return p->cfis[0] || p->cfis[1] ? 0 : diag_errno(diag, ENODATA, "libdw finds no call frame information");
}

static void prover_done(struct prover *p)
{
	if (p->cfis[0])
		dwarf_cfi_end(p->cfis[0]);
	if (p->dw)
		dwarf_end(p->dw);
	if (p->dw_elf)
		elf_end(p->dw_elf);
	unwind_table_free(p->table);
	rule_table_free(p->rules);
	elf_file_free(p->elf);
	free(p->starts);
}

int cfi_prove(const char *path, const struct cfi_proof_options *options, struct diag *diag, struct cfi_proof *ret_proof)
{
	CLEANUP(prover_done) struct prover p = { .options = options };
	int err = open_ours(&p, path, diag);

	if (!err)
		err = open_libdw(&p, diag);
	if (err)
		return err;
	prove_rows(&p);
	prove_random(&p);
	p.proof.nr_rows = p.table->nr_rows;
	p.proof.nr_bad_fdes = p.table->nr_bad_fdes;
	rule_table_rules(p.rules, &p.proof.nr_rules);
	*ret_proof = p.proof;
	return 0;
}
