// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "cfi/cfi.h"
#include "elf_image.h"

#define SECTION_VADDR 0x9000u
#define FDE_VADDR     0x1000u
#define FDE_SIZE      0x40u

static struct bytes section_bytes;
static uint16_t section_machine = EM_X86_64;
static struct diag walk_diag; /* of the last walk */

/* The rows of a walk as text: "0:sp+8 1:sp+16,bp=cfa-16 40:." with addresses relative to the first FDE. */
struct given {
	char text[4096];
	size_t size, fde_at; /* fde_at: where the text of the current FDE starts */
	bool is_open;
	uint64_t fde_start;
	int result;
};

static void say(struct given *given, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(struct given *given, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	given->size += (size_t)vsnprintf(given->text + given->size, sizeof(given->text) - given->size, fmt, args);
	va_end(args);
	assert_true(given->size < sizeof(given->text));
}

static void say_step(struct given *given, const struct sonde_rule *rule)
{
	switch (rule->cfa_kind) {
	case SONDE_CFA_SP:
		say(given, "sp%+d", rule->cfa_off);
		break;
	case SONDE_CFA_BP:
		say(given, "bp%+d", rule->cfa_off);
		break;
	case SONDE_CFA_REG:
		say(given, "r%u%+d", rule->cfa_reg, rule->cfa_off);
		break;
	case SONDE_CFA_DEREF_SP:
		say(given, "*(sp%+d)%+d", rule->cfa_off, rule->cfa_add);
		break;
	case SONDE_CFA_DEREF_BP:
		say(given, "*(bp%+d)%+d", rule->cfa_off, rule->cfa_add);
		break;
	case SONDE_CFA_DEREF_TWICE:
		say(given, "*(*(sp%+d)%+d)%+d", rule->cfa_off, rule->cfa_reg, rule->cfa_add);
		break;
	case SONDE_CFA_PLT:
		say(given, "plt(sp%+d,%u)", rule->cfa_off, rule->cfa_reg);
		break;
	default:
		fail_msg("CFA kind %u", rule->cfa_kind);
	}
	if (rule->ra_kind == SONDE_RA_REG)
		say(given, ",ra=r%d", rule->ra_off);
	else if (rule->ra_off != -8)
		say(given, ",ra=cfa%+d", rule->ra_off);
	if (rule->rbx_off == SONDE_RBX_LOST)
		say(given, ",bx=lost");
	else if (rule->rbx_off)
		say(given, ",bx=cfa%+d", rule->rbx_off);
	switch (rule->bp_kind) {
	case SONDE_BP_SAME:
		break;
	case SONDE_BP_CFA:
		say(given, ",bp=cfa%+d", rule->bp_off);
		break;
	case SONDE_BP_BP:
		say(given, ",bp=bp%+d", rule->bp_off);
		break;
	case SONDE_BP_UNDEFINED:
		say(given, ",bp=undefined");
		break;
	default:
		fail_msg("bp kind %u", rule->bp_kind);
	}
	if (rule->is_signal)
		say(given, ",signal");
}

static int take_row(void *arg, uint64_t start_vaddr, const struct sonde_rule *rule)
{
	struct given *given = arg;

	if (!given->is_open) {
		given->is_open = true;
		given->fde_at = given->size;
		given->fde_start = start_vaddr;
	} else if (start_vaddr == given->fde_start) { /* drops the rows */
		given->size = given->fde_at;
	}
	say(given, "%llx:", (unsigned long long)start_vaddr - FDE_VADDR);
	if (!rule) {
		given->is_open = false;
		say(given, ". ");
	} else if (rule->kind == SONDE_RULE_KIND_STEP) {
		say_step(given, rule);
		say(given, " ");
	} else {
		static const struct sonde_rule zero;
		struct sonde_rule rest = *rule;

		rest.kind = 0;
		assert_memory_equal(&rest, &zero, sizeof(zero));
		say(given, "%s ",
		    rule->kind == SONDE_RULE_KIND_END		? "end"
		    : rule->kind == SONDE_RULE_KIND_SIGNAL	? "signal"
		    : rule->kind == SONDE_RULE_KIND_UNSUPPORTED ? "unsupported"
								: "?");
	}
	return given->result;
}

static int walk(const void *bytes, size_t size, enum cfi_format format, struct given *given, struct cfi_stats *stats)
{
	struct cfi_section section = {
		.bytes = bytes,
		.size = size,
		.vaddr = SECTION_VADDR,
		.text_vaddr = 0x400,
		.data_vaddr = 0x800,
		.format = format,
		.machine = section_machine,
	};

	*given = (struct given){ 0 };
	*stats = (struct cfi_stats){ 0 };
	walk_diag = (struct diag){ 0 };
	return cfi_walk(&section, take_row, given, stats, &walk_diag);
}

#define PROGRAM(...) (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ })

struct program_case {
	const char *name;
	const uint8_t *program;
	size_t size;
	const char *want; /* NULL: damaged */
};

static void check_program(const struct program_case *test)
{
	struct given given;
	struct cfi_stats stats;

	section_bytes.size = 0;
	put_gcc_fde(&section_bytes, SECTION_VADDR, put_gcc_cie(&section_bytes), FDE_VADDR, FDE_SIZE, test->program, test->size);
	assert_int_equal(walk(section_bytes.data, section_bytes.size, CFI_EH_FRAME, &given, &stats), 0);
	if (strcmp(given.text, test->want ? test->want : "0:unsupported 40:. ") != 0)
		fail_msg("%s: got %s, want %s", test->name, given.text, test->want ? test->want : "damage");
	assert_int_equal(stats.nr_bad_fdes, !test->want);
	assert_int_equal(stats.nr_fdes, 1);
}

static const struct program_case opcode_cases[] = {
	{ "nothing", PROGRAM(0), "0:sp+8 40:. " },
	{ "frame pointer", PROGRAM(0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6), "0:sp+8 1:sp+16,bp=cfa-16 4:bp+16,bp=cfa-16 40:. " },
	{ "other registers are no news", PROGRAM(0x41, 0x8c, 3, 0x41, 0x0e, 16), "0:sp+8 2:sp+16 40:. " },
	{ "rbx", PROGRAM(0x41, 0x83, 3, 0x41, 0x0e, 16, 0x41, 0xc3), "0:sp+8 1:sp+8,bx=cfa-24 2:sp+16,bx=cfa-24 3:sp+16 40:. " },
	{ "rbx by the long forms", PROGRAM(0x05, 3, 2, 0x41, 0x06, 3, 0x41, 0x11, 3, 0x7f, 0x41, 0x08, 3),
	  "0:sp+8,bx=cfa-16 1:sp+8 2:sp+8,bx=cfa+8 3:sp+8 40:. " },
	{ "rbx where no rule can say it",
	  PROGRAM(0x07, 3, 0x41, 0x09, 3, 12, 0x41, 0x14, 3, 2, 0x41, 0x83, 0, 0x41, 0x10, 3, 2, 0x76, 0x68, 0x41, 0x83, 2, 0x41, 0x83,
		  0x80, 0x20),
	  "0:sp+8,bx=lost 1:sp+8,bx=lost 2:sp+8,bx=lost 3:sp+8,bx=lost 4:sp+8,bx=lost 5:sp+8,bx=cfa-16 6:sp+8,bx=lost 40:. " },
	{ "advance_loc1", PROGRAM(0x02, 3, 0x0e, 16), "0:sp+8 3:sp+16 40:. " },
	{ "advance_loc2", PROGRAM(0x03, 3, 0, 0x0e, 16), "0:sp+8 3:sp+16 40:. " },
	{ "advance_loc4", PROGRAM(0x04, 3, 0, 0, 0, 0x0e, 16), "0:sp+8 3:sp+16 40:. " },
	{ "MIPS_advance_loc8", PROGRAM(0x1d, 3, 0, 0, 0, 0, 0, 0, 0, 0x0e, 16), "0:sp+8 3:sp+16 40:. " },
	{ "advance by nothing", PROGRAM(0x40, 0x0e, 16, 0x02, 0, 0x0e, 24), "0:sp+24 40:. " },
	{ "advance past the end", PROGRAM(0x02, 0x40, 0x0e, 16), "0:sp+8 40:. " },
	{ "remember, restore", PROGRAM(0x0a, 0x41, 0x0e, 16, 0x86, 2, 0x0a, 0x41, 0x0d, 6, 0x41, 0x0b, 0x41, 0x0b),
	  "0:sp+8 1:sp+16,bp=cfa-16 2:bp+16,bp=cfa-16 3:sp+16,bp=cfa-16 4:sp+8 40:. " },
	{ "remembered three deep, with everything in it",
	  PROGRAM(0x0a, 0x41, 0x0e, 16, 0x86, 2, 0x0a, 0x41, 0x83, 3, 0x0f, 3, 0x76, 0x78, 0x06, 0x0a, 0x41, 0x07, 16, 0x41, 0x0b, 0x41,
		  0x0b, 0x41, 0x0b),
	  "0:sp+8 1:sp+16,bp=cfa-16 2:*(bp-8)+0,bx=cfa-24,bp=cfa-16 3:end 4:*(bp-8)+0,bx=cfa-24,bp=cfa-16 5:sp+16,bp=cfa-16 6:sp+8 40:. " },
	{ "restore rbp", PROGRAM(0x41, 0x86, 2, 0x41, 0xc6), "0:sp+8 1:sp+8,bp=cfa-16 2:sp+8 40:. " },
	{ "restore ra", PROGRAM(0x07, 16, 0x41, 0xd0), "0:end 1:sp+8 40:. " },
	{ "restore_extended", PROGRAM(0x86, 2, 0x41, 0x06, 6), "0:sp+8,bp=cfa-16 1:sp+8 40:. " },
	{ "restore rsp", PROGRAM(0x87, 2, 0x41, 0xc7), "0:unsupported 1:sp+8 40:. " },
	{ "def_cfa", PROGRAM(0x0c, 6, 32), "0:bp+32 40:. " },
	{ "def_cfa_sf", PROGRAM(0x12, 7, 0x7e), "0:sp+16 40:. " },
	{ "def_cfa_offset_sf", PROGRAM(0x13, 0x7d), "0:sp+24 40:. " },
	{ "def_cfa_register", PROGRAM(0x0d, 10), "0:r10+8 40:. " },
	{ "offset_extended", PROGRAM(0x05, 6, 2), "0:sp+8,bp=cfa-16 40:. " },
	{ "offset_extended_sf", PROGRAM(0x11, 6, 0x7f), "0:sp+8,bp=cfa+8 40:. " },
	{ "GNU_negative_offset_extended", PROGRAM(0x2f, 6, 2), "0:sp+8,bp=cfa+16 40:. " },
	{ "ra elsewhere", PROGRAM(0x90, 3), "0:sp+8,ra=cfa-24 40:. " },
	{ "undefined rbp", PROGRAM(0x07, 6), "0:sp+8,bp=undefined 40:. " },
	{ "undefined ra", PROGRAM(0x07, 16), "0:end 40:. " },
	{ "same_value", PROGRAM(0x86, 2, 0x41, 0x08, 6), "0:sp+8,bp=cfa-16 1:sp+8 40:. " },
	{ "GNU_args_size", PROGRAM(0x2e, 0x90, 1, 0x41, 0x0e, 16), "0:sp+8 1:sp+16 40:. " },
	{ "val_offset of rsp is the CFA", PROGRAM(0x14, 7, 0), "0:sp+8 40:. " },
	{ "val_offset_sf of rsp is the CFA", PROGRAM(0x15, 7, 0), "0:sp+8 40:. " },
	{ "LEB128 of several bytes", PROGRAM(0x0e, 0x80, 0x80, 1), "0:sp+16384 40:. " },
};

static void every_opcode_means_what_it_says(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(opcode_cases); i++)
		check_program(&opcode_cases[i]);
}

static const struct program_case expression_cases[] = {
	{ "PLT of ld", PROGRAM(0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22), "0:plt(sp+8,11) 40:. " },
	{ "PLT with IBT", PROGRAM(0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x39, 0x2a, 0x33, 0x24, 0x22), "0:plt(sp+8,9) 40:. " },
	{ "PLT, shifted by 2", PROGRAM(0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x32, 0x24, 0x22), "0:unsupported 40:. " },
	{ "PLT, of rax", PROGRAM(0x0f, 11, 0x77, 8, 0x70, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22), "0:unsupported 40:. " },
	{ "PLT and more", PROGRAM(0x0f, 12, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22, 0x22), "0:unsupported 40:. " },
	{ "DRAP", PROGRAM(0x0f, 3, 0x76, 0x78, 0x06), "0:*(bp-8)+0 40:. " },
	{ "rsp, added to", PROGRAM(0x0f, 6, 0x77, 0xc0, 0, 0x06, 0x23, 8), "0:*(sp+64)+8 40:. " },
	{ "rbx, dereferenced", PROGRAM(0x0f, 3, 0x73, 0x78, 0x06), "0:unsupported 40:. " },
	{ "a plain register", PROGRAM(0x0f, 2, 0x7a, 16), "0:r10+16 40:. " },
	{ "bregx", PROGRAM(0x0f, 3, 0x92, 6, 16), "0:bp+16 40:. " },
	{ "an add that does not fit", PROGRAM(0x0f, 7, 0x77, 8, 0x06, 0x23, 0x80, 0x80, 2), "0:unsupported 40:. " },
	{ "empty", PROGRAM(0x0f, 0), "0:unsupported 40:. " },
	{ "cut off", PROGRAM(0x0f, 1, 0x77), "0:unsupported 40:. " },
	{ "the offset outlives an expression", PROGRAM(0x0e, 56, 0x41, 0x0f, 3, 0x76, 0x78, 0x06, 0x41, 0x0d, 7),
	  "0:sp+56 1:*(bp-8)+0 2:sp+56 40:. " },
	{ "an offset waits for its register", PROGRAM(0x0f, 3, 0x76, 0x78, 0x06, 0x41, 0x0e, 24, 0x41, 0x0d, 7),
	  "0:*(bp-8)+0 2:sp+24 40:. " },
	{ "a register again", PROGRAM(0x0f, 0, 0x41, 0x0c, 7, 8), "0:unsupported 1:sp+8 40:. " },
	{ "rbp by rbp", PROGRAM(0x10, 6, 2, 0x76, 0), "0:sp+8,bp=bp+0 40:. " },
	{ "rbp by rsp", PROGRAM(0x10, 6, 2, 0x77, 0), "0:unsupported 40:. " },
	{ "rbx by rbp", PROGRAM(0x10, 3, 2, 0x76, 0), "0:sp+8,bx=lost 40:. " },
	{ "r12 by rbp", PROGRAM(0x10, 12, 2, 0x76, 0), "0:sp+8 40:. " },
	{ "ra by rbp", PROGRAM(0x10, 16, 2, 0x76, 0), "0:unsupported 40:. " },
};

static void expressions_are_told_by_shape(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(expression_cases); i++)
		check_program(&expression_cases[i]);
}

static const struct program_case unsupported_cases[] = {
	{ "register", PROGRAM(0x09, 6, 3), "0:unsupported 40:. " },
	{ "ra in a register", PROGRAM(0x0e, 0, 0x09, 16, 5, 0x41, 0x0e, 8, 0x90, 1), "0:sp+0,ra=r5 1:sp+8 40:. " },
	{ "ra in no register", PROGRAM(0x09, 16, 16), "0:unsupported 40:. " },
	{ "val_offset", PROGRAM(0x14, 6, 2), "0:unsupported 40:. " },
	{ "val_offset_sf", PROGRAM(0x15, 16, 2), "0:unsupported 40:. " },
	{ "val_expression", PROGRAM(0x16, 6, 1, 0x30), "0:unsupported 40:. " },
	{ "same ra", PROGRAM(0x08, 16), "0:unsupported 40:. " },
	{ "a caller's rsp that is not the CFA", PROGRAM(0x87, 2), "0:unsupported 40:. " },
	{ "the CFA by rip", PROGRAM(0x0d, 16), "0:unsupported 40:. " },
	{ "the CFA by xmm0", PROGRAM(0x0d, 17, 0x41, 0x0d, 7), "0:unsupported 1:sp+8 40:. " },
	{ "an offset of 2^31", PROGRAM(0x0e, 0x80, 0x80, 0x80, 0x80, 8, 0x41, 0x0e, 16), "0:unsupported 1:sp+16 40:. " },
	{ "an offset of 2^63", PROGRAM(0x0e, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1), "0:unsupported 40:. " },
	{ "rbp at CFA - 2^60 * 8", PROGRAM(0x86, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10), "0:unsupported 40:. " },
	{ "ra at CFA - 40000", PROGRAM(0x90, 0x88, 0x27), "0:unsupported 40:. " },
	{ "ra undefined under an unknown CFA", PROGRAM(0x0f, 0, 0x07, 16), "0:end 40:. " },
};

static void what_has_no_form_is_unsupported(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(unsupported_cases); i++)
		check_program(&unsupported_cases[i]);
}

static const struct program_case damaged_cases[] = {
	{ "unknown opcode", PROGRAM(0x41, 0x0e, 16, 0x41, 0x3f), NULL },
	{ "restore_state of nothing", PROGRAM(0x41, 0x0e, 16, 0x41, 0x0b), NULL },
	{ "cut off operand", PROGRAM(0x41, 0x0e), NULL },
	{ "signed return addresses, of x86", PROGRAM(0x41, 0x2d), NULL },
	{ "cut off advance", PROGRAM(0x41, 0x0e, 16, 0x04, 1, 0), NULL },
	{ "cut off block", PROGRAM(0x41, 0x0f, 9, 0x77), NULL },
	{ "advance around the address space", PROGRAM(0x1d, 255, 255, 255, 255, 255, 255, 255, 255), NULL },
};

static void damaged_programs_take_their_rows_back(void **state)
{
	uint8_t deep[33];
	struct program_case too_deep = { "remembered 33 times", deep, sizeof(deep), NULL };

	for (size_t i = 0; i < ARRAY_SIZE(damaged_cases); i++)
		check_program(&damaged_cases[i]);
	memset(deep, 0x0a, sizeof(deep));
	check_program(&too_deep);
	too_deep.size--;
	too_deep.want = "0:sp+8 40:. ";
	check_program(&too_deep);
}

/* Appends an entry of any kind: `id` and then the body. */
static size_t put_entry(struct bytes *to, uint32_t id, const void *body, size_t size)
{
	size_t start = to->size;

	put_u32(to, 0);
	put_u32(to, id);
	put(to, body, size);
	close_entry(to, start);
	return start;
}

/* Each CIE's body, and the bytes of start and size for an FDE of 0x1000 to 0x1040. The FDE's start field is 8 bytes into the FDE. want
 * NULL: not even the range can be read. */
static const struct {
	const char *name;
	const uint8_t *cie;
	size_t cie_size;
	const uint8_t *fde;
	size_t fde_size;
	const char *want;
} cie_cases[] = {
	{ "absptr, no augmentation", PROGRAM(1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1),
	  PROGRAM(0, 0x10, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 0, 0), "0:sp+8 40:. " },
	{ "version 3", PROGRAM(3, 0, 1, 0x78, 0x90, 0, 0x0c, 7, 8, 0x90, 1), PROGRAM(0, 0x10, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 0, 0),
	  "0:sp+8 40:. " },
	{ "version 4", PROGRAM(4, 0, 8, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1), PROGRAM(0, 0x10, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 0, 0),
	  "0:sp+8 40:. " },
	{ "version 4 with addresses of 4", PROGRAM(4, 0, 4, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1),
	  PROGRAM(0, 0x10, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 0, 0), NULL },
	{ "version 2", PROGRAM(2, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1), PROGRAM(0, 0x10, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 0, 0),
	  NULL },
	{ "udata4", PROGRAM(1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x03, 0x0c, 7, 8, 0x90, 1), PROGRAM(0, 0x10, 0, 0, 0x40, 0, 0, 0, 0),
	  "0:sp+8 40:. " },
	{ "udata2", PROGRAM(1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x02, 0x0c, 7, 8, 0x90, 1), PROGRAM(0, 0x10, 0x40, 0, 0), "0:sp+8 40:. " },
	{ "textrel sdata2", PROGRAM(1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x2a, 0x0c, 7, 8, 0x90, 1), PROGRAM(0, 0x0c, 0x40, 0, 0),
	  "0:sp+8 40:. " },
	{ "datarel sdata4", PROGRAM(1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x3b, 0x0c, 7, 8, 0x90, 1), PROGRAM(0, 8, 0, 0, 0x40, 0, 0, 0, 0),
	  "0:sp+8 40:. " },
	{ "uleb128", PROGRAM(1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x01, 0x0c, 7, 8, 0x90, 1), PROGRAM(0x80, 0x20, 0x40, 0), "0:sp+8 40:. " },
	{ "sleb128", PROGRAM(1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x09, 0x0c, 7, 8, 0x90, 1), PROGRAM(0x80, 0x20, 0xc0, 0, 0), "0:sp+8 40:. " },
	{ "sdata8", PROGRAM(1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x0c, 0x0c, 7, 8, 0x90, 1),
	  PROGRAM(0, 0x10, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 0, 0, 0), "0:sp+8 40:. " },
	{ "indirect", PROGRAM(1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x9b, 0x0c, 7, 8, 0x90, 1), PROGRAM(0, 0x10, 0, 0, 0x40, 0, 0, 0, 0), NULL },
	{ "funcrel", PROGRAM(1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x4b, 0x0c, 7, 8, 0x90, 1), PROGRAM(0, 0x10, 0, 0, 0x40, 0, 0, 0, 0), NULL },
	{ "zPLR", PROGRAM(1, 'z', 'P', 'L', 'R', 0, 1, 0x78, 16, 7, 0x9b, 1, 2, 3, 4, 0x1b, 0x03, 0x0c, 7, 8, 0x90, 1),
	  PROGRAM(0, 0x10, 0, 0, 0x40, 0, 0, 0, 4, 9, 9, 9, 9), "0:sp+8 40:. " },
	{ "zRS", PROGRAM(1, 'z', 'R', 'S', 0, 1, 0x78, 16, 1, 0x03, 0x0c, 7, 8, 0x90, 1), PROGRAM(0, 0x10, 0, 0, 0x40, 0, 0, 0, 0),
	  "0:sp+8,signal 40:. " },
	{ "OCaml's caml_c_call", PROGRAM(1, 'z', 'R', 'S', 0, 1, 0x78, 16, 1, 0x03, 0x0c, 7, 8, 0x90, 1),
	  PROGRAM(0, 0x10, 0, 0, 0x40, 0, 0, 0, 0, 0x41, 0x0f, 5, 0x77, 0x10, 0x06, 0x23, 8), "0:sp+8,signal 1:*(sp+16)+8,signal 40:. " },
	{ "OCaml's caml_runstack", PROGRAM(1, 'z', 'R', 'S', 0, 1, 0x78, 16, 1, 0x03, 0x0c, 7, 8, 0x90, 1),
	  PROGRAM(0, 0x10, 0, 0, 0x40, 0, 0, 0, 0, 0x41, 0x0f, 8, 0x77, 0x38, 0x06, 0x23, 0, 0x06, 0x23, 8, 0x41, 0x0f, 6, 0x77, 0x38, 0x06,
		  0x23, 24, 0x06),
	  "0:sp+8,signal 1:*(*(sp+56)+0)+8,signal 2:*(*(sp+56)+24)+0,signal 40:. " },
	{ "the kernel's rt_sigframe", PROGRAM(1, 'z', 'R', 'S', 0, 1, 0x78, 16, 1, 0x03),
	  PROGRAM(0, 0x10, 0, 0, 0x40, 0, 0, 0, 0, 0x0f, 4, 0x77, 0xa0, 1, 0x06, 0x10, 6, 3, 0x77, 0xf8, 0, 0x10, 7, 3, 0x77, 0xa0, 1, 0x10,
		  16, 3, 0x77, 0xa8, 1),
	  "0:signal 40:. " },
	{ "a return address elsewhere, but not in an rt_sigframe", PROGRAM(1, 'z', 'R', 'S', 0, 1, 0x78, 16, 1, 0x03),
	  PROGRAM(0, 0x10, 0, 0, 0x40, 0, 0, 0, 0, 0x0f, 4, 0x77, 0xa0, 1, 0x06, 0x10, 16, 3, 0x77, 0xb0, 1), "0:unsupported 40:. " },
	{ "zRB", PROGRAM(1, 'z', 'R', 'B', 0, 1, 0x78, 16, 1, 0x03, 0x0c, 7, 8, 0x90, 1), PROGRAM(0, 0x10, 0, 0, 0x40, 0, 0, 0, 0),
	  "0:sp+8 40:. " },
	{ "zRX, X unknown", PROGRAM(1, 'z', 'R', 'X', 0, 1, 0x78, 16, 4, 0x03, 1, 2, 3, 0x0c, 7, 8, 0x90, 1),
	  PROGRAM(0, 0x10, 0, 0, 0x40, 0, 0, 0, 0), "0:sp+8 40:. " },
	{ "an augmentation without z", PROGRAM(1, 'R', 0, 1, 0x78, 16, 0x03, 0x0c, 7, 8, 0x90, 1), PROGRAM(0, 0x10, 0, 0, 0x40, 0, 0, 0, 0),
	  NULL },
	{ "a lone S, as in .debug_frame", PROGRAM(1, 'S', 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1),
	  PROGRAM(0, 0x10, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 0, 0), "0:sp+8,signal 40:. " },
	{ "augmentation data too short", PROGRAM(1, 'z', 'P', 'R', 0, 1, 0x78, 16, 2, 0x03, 0x03, 0x0c, 7, 8, 0x90, 1),
	  PROGRAM(0, 0x10, 0, 0, 0x40, 0, 0, 0, 0), NULL },
	{ "return address in column 30", PROGRAM(1, 'z', 'R', 0, 1, 0x78, 30, 1, 0x03, 0x0c, 7, 8, 0x90, 1),
	  PROGRAM(0, 0x10, 0, 0, 0x40, 0, 0, 0, 0), "0:unsupported 40:. " },
	{ "damaged initial program", PROGRAM(1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x03, 0x3f), PROGRAM(0, 0x10, 0, 0, 0x40, 0, 0, 0, 0),
	  "0:unsupported 40:. " },
	{ "an initial program that advances", PROGRAM(1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x03, 0x0c, 7, 8, 0x90, 1, 0x41),
	  PROGRAM(0, 0x10, 0, 0, 0x40, 0, 0, 0, 0), "0:unsupported 40:. " },
	{ "an initial program that restores", PROGRAM(1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x03, 0x0c, 7, 8, 0x90, 1, 0xc6),
	  PROGRAM(0, 0x10, 0, 0, 0x40, 0, 0, 0, 0), "0:unsupported 40:. " },
	{ "no CFA at all", PROGRAM(1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x03, 0x90, 1), PROGRAM(0, 0x10, 0, 0, 0x40, 0, 0, 0, 0),
	  "0:unsupported 40:. " },
	{ "restore to what the CIE said", PROGRAM(1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x03, 0x0c, 7, 16, 0x90, 2, 0x86, 1),
	  PROGRAM(0, 0x10, 0, 0, 0x40, 0, 0, 0, 0, 0x08, 6, 0x90, 3, 0x41, 0xc6, 0x41, 0xd0),
	  "0:sp+16,ra=cfa-24 1:sp+16,ra=cfa-24,bp=cfa-8 2:sp+16,ra=cfa-16,bp=cfa-8 40:. " },
	{ "code alignment 4", PROGRAM(1, 'z', 'R', 0, 4, 0x78, 16, 1, 0x03, 0x0c, 7, 8, 0x90, 1),
	  PROGRAM(0, 0x10, 0, 0, 0x40, 0, 0, 0, 0, 0x42, 0x0e, 16), "0:sp+8 8:sp+16 40:. " },
	{ "set_loc", PROGRAM(1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x03, 0x0c, 7, 8, 0x90, 1),
	  PROGRAM(0, 0x10, 0, 0, 0x40, 0, 0, 0, 0, 0x01, 4, 0x10, 0, 0, 0x0e, 16), "0:sp+8 4:sp+16 40:. " },
	{ "set_loc backwards", PROGRAM(1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x03, 0x0c, 7, 8, 0x90, 1),
	  PROGRAM(0, 0x10, 0, 0, 0x40, 0, 0, 0, 0, 0x01, 0, 0x0f, 0, 0, 0x0e, 16), "0:unsupported 40:. " },
	{ "the linker dropped it", PROGRAM(1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x03, 0x0c, 7, 8, 0x90, 1),
	  PROGRAM(0, 0, 0, 0, 0x40, 0, 0, 0, 0), "" },
	{ "no size", PROGRAM(1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x03, 0x0c, 7, 8, 0x90, 1), PROGRAM(0, 0x10, 0, 0, 0, 0, 0, 0, 0), "" },
};

static void every_cie_form_is_read(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(cie_cases); i++) {
		struct given given;
		struct cfi_stats stats;

		section_bytes.size = 0;
		put_entry(&section_bytes, 0, cie_cases[i].cie, cie_cases[i].cie_size);
		put_entry(&section_bytes, (uint32_t)section_bytes.size + 4, cie_cases[i].fde, cie_cases[i].fde_size);
		assert_int_equal(walk(section_bytes.data, section_bytes.size, CFI_EH_FRAME, &given, &stats), 0);
		if (strcmp(given.text, cie_cases[i].want ? cie_cases[i].want : "") != 0)
			fail_msg("%s: got %s, want %s", cie_cases[i].name, given.text, cie_cases[i].want);
		assert_int_equal(stats.nr_bad_fdes,
				 !cie_cases[i].want ||
				     (strstr(cie_cases[i].want, "unsupported") && strcmp(cie_cases[i].name, "no CFA at all") &&
				      strcmp(cie_cases[i].name, "a return address elsewhere, but not in an rt_sigframe") &&
				      strcmp(cie_cases[i].name, "return address in column 30")));
	}
}

static const struct program_case arm64_cases[] = {
	{ "nothing", PROGRAM(0), "0:sp+0,ra=r30 40:. " },
	{ "a frame record", PROGRAM(0x41, 0x0e, 32, 0x9d, 4, 0x9e, 3, 0x41, 0xde, 0xdd, 0x0e, 0),
	  "0:sp+0,ra=r30 4:sp+32,ra=cfa-24,bp=cfa-32 8:sp+0,ra=r30 40:. " },
	{ "by x29", PROGRAM(0x41, 0x0c, 29, 16, 0x9e, 1, 0x9d, 2), "0:sp+0,ra=r30 4:bp+16,bp=cfa-16 40:. " },
	{ "signed return addresses", PROGRAM(0x41, 0x2d, 0x41, 0x0e, 16, 0x9e, 1, 0x41, 0x2d, 0x2c), "0:sp+0,ra=r30 8:sp+16 40:. " },
	{ "remembered", PROGRAM(0x9e, 1, 0x0a, 0x41, 0xde, 0x41, 0x0b), "0:sp+0 4:sp+0,ra=r30 8:sp+0 40:. " },
	{ "x30 again, by name", PROGRAM(0x9e, 1, 0x41, 0x08, 30), "0:sp+0 4:sp+0,ra=r30 40:. " },
	{ "the end", PROGRAM(0x07, 30), "0:end 40:. " },
	{ "in another register", PROGRAM(0x09, 30, 15), "0:sp+0,ra=r15 40:. " },
	{ "CFA by another register", PROGRAM(0x0d, 9), "0:r9+0,ra=r30 40:. " },
	{ "rbx's and x86's columns mean nothing", PROGRAM(0x83, 2, 0x86, 2, 0x87, 2, 0x90, 2), "0:sp+0,ra=r30 40:. " },
	{ "x86's PLT is none", PROGRAM(0x0f, 11, 0x8f, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22), "0:unsupported 40:. " },
};

static void arm64_has_its_own_columns(void **state)
{
	static const uint8_t cie[] = { 1, 'z', 'R', 0, 4, 0x78, 30, 1, 0x03, 0x0c, 31, 0 };
	struct given given;
	struct cfi_stats stats;

	section_machine = EM_AARCH64;
	for (size_t i = 0; i < ARRAY_SIZE(arm64_cases); i++) {
		uint8_t fde[64] = { 0, 0x10, 0, 0, 0x40, 0, 0, 0, 0 };

		section_bytes.size = 0;
		put_entry(&section_bytes, 0, cie, sizeof(cie));
		memcpy(fde + 9, arm64_cases[i].program, arm64_cases[i].size);
		put_entry(&section_bytes, (uint32_t)section_bytes.size + 4, fde, 9 + arm64_cases[i].size);
		assert_int_equal(walk(section_bytes.data, section_bytes.size, CFI_EH_FRAME, &given, &stats), 0);
		if (strcmp(given.text, arm64_cases[i].want) != 0)
			fail_msg("%s: got %s, want %s", arm64_cases[i].name, given.text, arm64_cases[i].want);
		assert_int_equal(stats.nr_bad_fdes, 0);
	}
	section_machine = EM_386;
	assert_int_equal(walk(section_bytes.data, section_bytes.size, CFI_EH_FRAME, &given, &stats), -ENODATA);
	section_machine = EM_X86_64;
}

static void the_64_bit_form_and_debug_frame_are_read(void **state)
{
	static const uint8_t cie[] = { 3, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1 };
	struct given given;
	struct cfi_stats stats;

	section_bytes.size = 0; /* .debug_frame, both forms; padding between them is legal there */
	put_entry(&section_bytes, UINT32_MAX, cie, sizeof(cie));
	put_u32(&section_bytes, 24);
	put_u32(&section_bytes, 0);
	put_u64(&section_bytes, FDE_VADDR);
	put_u64(&section_bytes, FDE_SIZE);
	put(&section_bytes, "\x41\x0e\x10\0", 4);
	put_u32(&section_bytes, 0);
	put_u32(&section_bytes, UINT32_MAX);
	put_u64(&section_bytes, 24);
	put_u64(&section_bytes, 0);
	put_u64(&section_bytes, FDE_VADDR + 0x100);
	put_u64(&section_bytes, FDE_SIZE);
	assert_int_equal(walk(section_bytes.data, section_bytes.size, CFI_DEBUG_FRAME, &given, &stats), 0);
	assert_string_equal(given.text, "0:sp+8 1:sp+16 40:. 100:sp+8 140:. ");

	section_bytes.size = 0; /* .eh_frame: the id keeps four bytes */
	put_u32(&section_bytes, UINT32_MAX);
	put_u64(&section_bytes, 4 + sizeof(cie));
	put_u32(&section_bytes, 0);
	put(&section_bytes, cie, sizeof(cie));
	put_u32(&section_bytes, UINT32_MAX);
	put_u64(&section_bytes, 20);
	put_u32(&section_bytes, (uint32_t)section_bytes.size);
	put_u64(&section_bytes, FDE_VADDR);
	put_u64(&section_bytes, FDE_SIZE);
	assert_int_equal(walk(section_bytes.data, section_bytes.size, CFI_EH_FRAME, &given, &stats), 0);
	assert_string_equal(given.text, "0:sp+8 40:. ");
}

static void put_three_fdes(void)
{
	size_t cie;

	section_bytes.size = 0;
	cie = put_gcc_cie(&section_bytes);
	put_gcc_fde(&section_bytes, SECTION_VADDR, cie, FDE_VADDR, FDE_SIZE, PROGRAM(0x41, 0x0e, 16));
	put_gcc_fde(&section_bytes, SECTION_VADDR, cie, FDE_VADDR + 0x100, FDE_SIZE, PROGRAM(0x3f));
	put_gcc_fde(&section_bytes, SECTION_VADDR, cie, FDE_VADDR + 0x200, FDE_SIZE, PROGRAM(0));
}

static void the_walk_goes_on_behind_a_damaged_fde(void **state)
{
	struct given given;
	struct cfi_stats stats;

	put_three_fdes();
	assert_int_equal(walk(section_bytes.data, section_bytes.size, CFI_EH_FRAME, &given, &stats), 0);
	assert_string_equal(given.text, "0:sp+8 1:sp+16 40:. 100:unsupported 140:. 200:sp+8 240:. ");
	assert_int_equal(stats.nr_fdes, 3);
	assert_int_equal(stats.nr_bad_fdes, 1);
	assert_int_equal(stats.nr_unsupported, 1);
	put_u32(&section_bytes, 0); /* the terminator: what follows is not part of the section */
	put(&section_bytes, "nonsense", 8);
	assert_int_equal(walk(section_bytes.data, section_bytes.size, CFI_EH_FRAME, &given, &stats), 0);
	assert_int_equal(stats.nr_fdes, 3);
}

static void a_cie_that_is_none_costs_its_fdes(void **state)
{
	struct given given;
	struct cfi_stats stats;
	uint32_t far = 0x7fffffff;

	put_three_fdes();
	memcpy(section_bytes.data + 18 + 4 + 4, &far, sizeof(far)); /* the first FDE's CIE pointer */
	assert_int_equal(walk(section_bytes.data, section_bytes.size, CFI_EH_FRAME, &given, &stats), 0);
	assert_int_equal(stats.nr_bad_fdes, 2);
	assert_int_equal(stats.nr_fdes, 2);
}

static void truncation_is_damage_and_no_more(void **state)
{
	struct given given;
	struct cfi_stats stats;
	size_t size;

	put_three_fdes();
	size = section_bytes.size;
	for (size_t cut = 1; cut < size; cut++) {
		uint8_t *exact = malloc(cut); /* so that the sanitizer sees a read past the end */
		int err;

		memcpy(exact, section_bytes.data, cut);
		err = walk(exact, cut, CFI_EH_FRAME, &given, &stats);
		assert_true(err == -EBADMSG || err == 0);
		assert_int_equal(!!walk_diag.text[0], !!err); /* refused with a message */
		assert_true(stats.nr_fdes < 3);
		free(exact);
	}
}

static void a_bound_is_not_a_size(void **state)
{
	struct cfi_section section = { .bytes = section_bytes.data, .vaddr = SECTION_VADDR, .machine = EM_X86_64, .is_open_ended = true };
	struct given given = { 0 };
	struct cfi_stats stats;

	put_three_fdes();
	put(&section_bytes, "\xff\xff\xff\x7f more", 9);
	section.size = section_bytes.size;
	assert_int_equal(cfi_walk(&section, take_row, &given, &stats, NULL), 0);
	assert_int_equal(stats.nr_fdes, 3);
}

static void nonsense_ends(void **state)
{
	uint64_t seed = 1;

	put_three_fdes();
	for (int round = 0; round < 20000; round++) {
		uint8_t *damaged = malloc(section_bytes.size);
		struct given given;
		struct cfi_stats stats;
		int err;

		memcpy(damaged, section_bytes.data, section_bytes.size);
		for (int i = 0; i < 3; i++) {
			seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
			damaged[(seed >> 40) % section_bytes.size] = (uint8_t)(seed >> 32);
		}
		err = walk(damaged, section_bytes.size, CFI_EH_FRAME, &given, &stats);
		assert_true(err == -EBADMSG || err == 0);
		free(damaged);
	}
}

static int refuse_third(void *arg, uint64_t start_vaddr, const struct sonde_rule *rule)
{
	return --*(int *)arg ? 0 : -E2BIG;
}

static void the_caller_ends_the_walk(void **state)
{
	struct cfi_section section = { .bytes = section_bytes.data, .vaddr = SECTION_VADDR, .machine = EM_X86_64 };
	struct cfi_stats stats;

	put_three_fdes();
	section.size = section_bytes.size;
	for (int calls = 1; calls <= 7; calls++) {
		int left = calls;

		assert_int_equal(cfi_walk(&section, refuse_third, &left, &stats, NULL), -E2BIG);
		assert_int_equal(left, 0);
	}
}

/* An FDE of .debug_frame in the CIE at the section's start. */
static void put_debug_fde(uint64_t start_vaddr)
{
	put_u32(&section_bytes, 24);
	put_u32(&section_bytes, 0);
	put_u64(&section_bytes, start_vaddr);
	put_u64(&section_bytes, FDE_SIZE);
	put(&section_bytes, "\x41\x0e\x10\0", 4);
}

static void put_debug_frame(size_t padding_bytes)
{
	static const uint8_t cie[] = { 3, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1 };

	section_bytes.size = 0;
	put_entry(&section_bytes, UINT32_MAX, cie, sizeof(cie));
	put_debug_fde(FDE_VADDR);
	for (size_t i = 0; i < padding_bytes; i++)
		put_u8(&section_bytes, 0);
	put_debug_fde(FDE_VADDR + 0x100);
}

static int refuse_none(void *arg, uint64_t start, const struct sonde_rule *rule)
{
	return 0;
}

static void much_padding_ends_debug_frame(void **state)
{
	struct given given;
	struct cfi_stats stats;

	put_debug_frame(4096);
	assert_int_equal(walk(section_bytes.data, section_bytes.size, CFI_DEBUG_FRAME, &given, &stats), 0);
	assert_string_equal(given.text, "0:sp+8 1:sp+16 40:. 100:sp+8 101:sp+16 140:. ");
	put_debug_frame(4100);
	assert_int_equal(walk(section_bytes.data, section_bytes.size, CFI_DEBUG_FRAME, &given, &stats), 0);
	assert_string_equal(given.text, "0:sp+8 1:sp+16 40:. ");
}

/* A hole of 1 GiB costs no time. */
static void a_hole_ends_a_section(void **state)
{
	static struct bytes image;
	const struct image_section named = { .name = ".debug_frame", .type = SHT_PROGBITS, .bytes = "", .size = 1 };
	Elf64_Phdr segment = { .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_vaddr = FDE_VADDR, .p_filesz = 16, .p_memsz = 16 };
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	CLEANUP(cfi_section_done) struct cfi_section section = { 0 };
	int fd = memfd_create("elf", MFD_CLOEXEC);
	struct cfi_stats stats;
	Elf64_Ehdr *header = (Elf64_Ehdr *)image.data;
	Elf64_Shdr *table;

	image_make(&image, &segment, 1, &named, 1);
	table = (Elf64_Shdr *)(image.data + header->e_shoff);
	table[1].sh_offset = 1 << 20;
	table[1].sh_size = 128 << 20;
	put_debug_frame(0);
	assert_int_equal(pwrite(fd, image.data, image.size, 0), image.size);
	assert_int_equal(pwrite(fd, section_bytes.data, section_bytes.size, 1 << 20), section_bytes.size);
	assert_int_equal(ftruncate(fd, 256 << 20), 0);
	assert_int_equal(elf_file_open_fd(fd, NULL, &elf), 0);
	assert_int_equal(cfi_section_read(elf, CFI_DEBUG_FRAME, NULL, &section), 0);
	assert_in_range(section.size, section_bytes.size, 1 << 20);
	assert_int_equal(cfi_walk(&section, refuse_none, NULL, &stats, NULL), 0);
	assert_int_equal(stats.nr_fdes, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_opcode_means_what_it_says),
		cmocka_unit_test(expressions_are_told_by_shape),
		cmocka_unit_test(what_has_no_form_is_unsupported),
		cmocka_unit_test(damaged_programs_take_their_rows_back),
		cmocka_unit_test(every_cie_form_is_read),
		cmocka_unit_test(arm64_has_its_own_columns),
		cmocka_unit_test(the_64_bit_form_and_debug_frame_are_read),
		cmocka_unit_test(the_walk_goes_on_behind_a_damaged_fde),
		cmocka_unit_test(a_cie_that_is_none_costs_its_fdes),
		cmocka_unit_test(truncation_is_damage_and_no_more),
		cmocka_unit_test(a_bound_is_not_a_size),
		cmocka_unit_test(nonsense_ends),
		cmocka_unit_test(the_caller_ends_the_walk),
		cmocka_unit_test(much_padding_ends_debug_frame),
		cmocka_unit_test(a_hole_ends_a_section),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
