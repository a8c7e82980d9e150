// SPDX-License-Identifier: Apache-2.0
/* Frames derived from code. For all functions of real libraries that have call frame information, both must agree wherever they can be
 * compared. For functions made up here, the expected rules are known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cfi/code_frames.h"

#define MAX_ROWS 20000

struct row {
	uint64_t vaddr;
	struct sonde_rule rule; /* kind NONE: no row */
};

struct rows {
	struct row rows[MAX_ROWS];
	size_t nr;
};

struct comparison {
	const struct elf_file *elf;
	struct code_frames *frames;
	struct rows cfi, by_sp, by_frame;
	uint64_t nr_bytes, nr_derived, nr_same, nr_other,
	    nr_wrong; /* bytes of code; other: the CFA is of another kind, so it cannot be compared */
	uint32_t nr_functions, nr_contradicted, nr_unproved;
};

static int take_row(void *arg, uint64_t vaddr, const struct sonde_rule *rule)
{
	struct rows *rows = arg;

	assert_true(rows->nr < MAX_ROWS);
	rows->rows[rows->nr] = (struct row){ .vaddr = vaddr };
	if (rule)
		rows->rows[rows->nr].rule = *rule;
	rows->nr++;
	return 0;
}

static const struct sonde_rule *rule_at(const struct rows *rows, uint64_t vaddr)
{
	static const struct sonde_rule none;
	const struct sonde_rule *rule = &none;

	for (size_t i = 0; i < rows->nr && rows->rows[i].vaddr <= vaddr; i++)
		rule = &rows->rows[i].rule;
	return rule;
}

static bool is_same_cfa(const struct sonde_rule *want, const struct sonde_rule *got)
{
	return want->cfa_kind == got->cfa_kind && want->cfa_off == got->cfa_off && want->cfa_reg == got->cfa_reg &&
	       want->cfa_add == got->cfa_add && want->ra_kind == got->ra_kind && want->ra_off == got->ra_off;
}

static bool is_same_bp(const struct sonde_rule *want, const struct sonde_rule *got)
{
	return got->bp_kind == SONDE_BP_UNDEFINED ||
	       (want->bp_kind == got->bp_kind && (want->bp_kind == SONDE_BP_SAME || want->bp_off == got->bp_off));
}

static bool is_same_bx(const struct sonde_rule *want, const struct sonde_rule *got)
{
	return got->rbx_off == SONDE_RBX_LOST || want->rbx_off == SONDE_RBX_LOST || want->rbx_off == got->rbx_off;
}

static void compare_piece(struct comparison *c, uint64_t start, uint64_t end)
{
	const struct sonde_rule *want = rule_at(&c->cfi, start), *one = rule_at(&c->by_sp, start), *two = rule_at(&c->by_frame, start);
	bool is_comparable;

	if (want->kind != SONDE_RULE_KIND_STEP || one->kind != SONDE_RULE_KIND_STEP)
		return;
	is_comparable = want->cfa_kind == one->cfa_kind || want->cfa_kind == two->cfa_kind;
	c->nr_derived += end - start;
	if ((is_same_cfa(want, one) || is_same_cfa(want, two) || !is_comparable) && (is_same_bp(want, one) || is_same_bp(want, two)) &&
	    (is_same_bx(want, one) || is_same_bx(want, two))) {
		*(is_comparable ? &c->nr_same : &c->nr_other) += end - start;
		return;
	}
	c->nr_wrong += end - start;
	if (c->nr_wrong < 4000)
		printf("  0x%llx: cfi %u%+d r%u bp %u%+d bx %d, sp %u%+d bp %u%+d bx %d, frame %u%+d r%u bp %u%+d bx %d\n",
		       (unsigned long long)start, want->cfa_kind, want->cfa_off, want->cfa_reg, want->bp_kind, want->bp_off, want->rbx_off,
		       one->cfa_kind, one->cfa_off, one->bp_kind, one->bp_off, one->rbx_off, two->cfa_kind, two->cfa_off, two->cfa_reg,
		       two->bp_kind, two->bp_off, two->rbx_off);
}

static int compare_addresses(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

static void compare_function(struct comparison *c, uint64_t start, uint64_t end)
{
	static uint64_t cuts[3 * MAX_ROWS + 2];
	static uint8_t code[1 << 20];
	struct code_function function = { .code = code, .vaddr = start, .size = end - start, .is_sized = true };
	struct cfi_stats stats;
	uint64_t file_off = 0;
	size_t nr = 0;
	int verdict;

	for (uint32_t i = 0; i < elf_file_nr_segments(c->elf); i++) {
		const struct elf_segment *segment = elf_file_segment(c->elf, i);

		if (segment->flags & PF_X && start >= segment->vaddr && end <= segment->vaddr + segment->file_size)
			file_off = start - segment->vaddr + segment->file_off;
	}
	if (!file_off || end - start > sizeof(code) || elf_file_read_at(c->elf, file_off, code, end - start))
		return;
	if (code_frames_is_spent(c->frames)) { /* a file of this size may use up the budget */
		code_frames_free(c->frames);
		c->frames = code_frames_new(CODE_FRAMES_MAX_STEPS);
		assert_non_null(c->frames);
	}
	c->nr_functions++;
	c->nr_bytes += end - start;
	verdict = code_frames_read(c->frames, &function);
	assert_true(verdict >= 0);
	c->nr_contradicted += verdict == CODE_CONTRADICTS;
	c->nr_unproved += verdict == CODE_MAY_BE;
	if (verdict != CODE_RETURNS)
		return;
	c->by_sp.nr = c->by_frame.nr = 0;
	assert_int_equal(code_frames_rows(c->frames, false, take_row, &c->by_sp, &stats), 0);
	assert_int_equal(code_frames_rows(c->frames, true, take_row, &c->by_frame, &stats), 0);
	for (size_t i = 0; i < c->cfi.nr; i++)
		cuts[nr++] = c->cfi.rows[i].vaddr;
	for (size_t i = 0; i < c->by_sp.nr; i++)
		cuts[nr++] = c->by_sp.rows[i].vaddr;
	for (size_t i = 0; i < c->by_frame.nr; i++)
		cuts[nr++] = c->by_frame.rows[i].vaddr;
	cuts[nr++] = end;
	qsort(cuts, nr, sizeof(*cuts), compare_addresses);
	for (size_t i = 0; i + 1 < nr; i++) {
		if (cuts[i] < cuts[i + 1])
			compare_piece(c, cuts[i], cuts[i + 1]);
	}
}

static int take_cfi_row(void *arg, uint64_t vaddr, const struct sonde_rule *rule)
{
	struct comparison *c = arg;

	if (rule)
		return c->cfi.nr < MAX_ROWS ? take_row(&c->cfi, vaddr, rule) : 0;
	if (c->cfi.nr)
		compare_function(c, c->cfi.rows[0].vaddr, vaddr);
	c->cfi.nr = 0;
	return 0;
}

/* At most max_wrong of 1,000 bytes of code may differ. */
static void compare_file(const char *path, uint32_t max_wrong)
{
	static struct comparison c;
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	CLEANUP(cfi_section_done) struct cfi_section section = { 0 };
	struct cfi_stats stats;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	assert_int_equal(elf_file_open_fd(fd, NULL, &elf), 0);
	memset(&c, 0, sizeof(c));
	c.elf = elf;
	c.frames = code_frames_new(CODE_FRAMES_MAX_STEPS);
	assert_non_null(c.frames);
	assert_int_equal(cfi_section_read(elf, CFI_EH_FRAME, NULL, &section), 0);
	assert_int_equal(cfi_walk(&section, take_cfi_row, &c, &stats, NULL), 0);
	code_frames_free(c.frames);
	printf("%-55s %6u functions (%u contradict, %u unproved), %9llu bytes, %5.1f %% known: same %llu, by other ways %llu, wrong %llu\n",
	       path, c.nr_functions, c.nr_contradicted, c.nr_unproved, (unsigned long long)c.nr_bytes,
	       100.0 * (double)c.nr_derived / (double)(c.nr_bytes + !c.nr_bytes), (unsigned long long)c.nr_same,
	       (unsigned long long)c.nr_other, (unsigned long long)c.nr_wrong);
	assert_true(c.nr_wrong * 1000 <= c.nr_bytes * max_wrong);
}

/* The differences are faults of the call frame information: glibc's __mpn_mul_1 pushes without describing it, and OpenSSL's assembly
 * describes less than it does. */
static void test_code_says_what_cfi_says(void **state)
{
	compare_file("/usr/lib/x86_64-linux-gnu/libstdc++.so.6", 0);
	compare_file("/lib/x86_64-linux-gnu/libc.so.6", 1);
	compare_file("/usr/lib/x86_64-linux-gnu/libcrypto.so.3", 5);
}

#ifdef __x86_64__
/* The code of each function is between its label and the label with _end. */
__asm__(".pushsection .rodata\n"
	"with_frame: push %rbp; mov %rsp, %rbp; push %rbx; sub %rdi, %rsp; call . + 4096; mov -8(%rbp), %rbx; leave; ret\n"
	"with_frame_end:\n"
	"with_loop: push %rbx; mov $3, %ebx; sub $32, %rsp; 1: call . + 4096; dec %ebx; jnz 1b; test %eax, %eax; jz 2f; mov $1, %eax; 2: "
	"add $32, %rsp; pop %rbx; ret\n"
	"with_loop_end:\n"
	"aligned: lea 8(%rsp), %r10; and $-32, %rsp; push -8(%r10); push %rbp; mov %rsp, %rbp; push %r10; sub $64, %rsp; call . + 4096; "
	"mov -8(%rbp), %r10; leave; lea -8(%r10), %rsp; ret\n"
	"aligned_end:\n"
	"two_depths: test %eax, %eax; jz 1f; push %rcx; 1: nop; ret\n"
	"two_depths_end:\n"
	"cold_part: call . + 4096; add $24, %rsp; pop %rbx; ret\n"
	"cold_part_end:\n"
	"no_return: sub $8, %rsp; call . + 4096; hlt\n"
	"no_return_end:\n"
	"rbx_lost: xor %ebx, %ebx; ret\n"
	"rbx_lost_end:\n"
	"start: xor %ebp, %ebp; mov (%rsp), %rdi; lea 8(%rsp), %rsi; and $-16, %rsp; push %rax; call *start(%rip); hlt; mov %rsp, %rdi; "
	"call . + 4096; ret\n"
	"start_end:\n"
	"clone: mov %rdi, (%rsi); mov $56, %eax; syscall; test %eax, %eax; jnz 1f; xor %ebp, %ebp; pop %rdi; call *%r9; mov %eax, %edi; "
	"mov $60, %eax; syscall; hlt; 1: ret\n"
	"clone_end:\n"
	"popper: mov %rbp, %r8; xor %ebp, %ebp; pop %r11; 1: dec %ecx; jnz 1b; mov %r8, %rbp; jmp *%r11\n"
	"popper_end:\n"
	"argumentative: push %rbp; mov %rsp, %rbp; push %rdi; push %rsi; call . + 4096; call . + 4096; leave; ret\n"
	"argumentative_end:\n"
	".p2align 4\n"
	"managed: sub $0x18, %rsp; mov %rbp, 8(%rsp); xor %ebp, %ebp; call . + 4096; nop; add $0x18, %rsp; ret; nop; mov $1, %edi; "
	"call . + 4096; nop; .p2align 4, 0xcc\n"
	"managed_end:\n"
	"managed_two: sub $8, %rsp; call . + 4096; nop; add $8, %rsp; ret; .p2align 4, 0xcc; sub $0x28, %rsp; call . + 4096; nop; "
	"add $0x28, %rsp; ret; .p2align 4, 0xcc\n"
	"managed_two_end:\n"
	"managed_leaf: sub $8, %rsp; call . + 4096; nop; add $8, %rsp; ret; .p2align 4, 0xcc; xor %eax, %eax; 1: inc %rax; jmp 1b\n"
	"managed_leaf_end:\n"
	"managed_back: sub $8, %rsp; 1: call . + 4096; nop; add $8, %rsp; ret; nop; xor %eax, %eax; jmp 1b; .p2align 4, 0xcc\n"
	"managed_back_end:\n"
	"drops: sub $8, %rsp; call . + 4096; nop; add $8, %rsp; ret $16\n"
	"drops_end:\n"
	"managed_table: sub $8, %rsp; cmp $1, %eax; ja 1f; lea 2f(%rip), %rcx; movslq (%rcx, %rax, 4), %rdx; {load} add %rdx, %rcx; "
	"jmp *%rcx; 1: add $8, %rsp; ret; hlt; 2: .long 1b - 2b, 1b - 2b\n"
	"managed_table_end:\n"
	"unbounded: sub $8, %rsp; lea 2f(%rip), %rcx; movslq (%rcx, %rax, 4), %rdx; {load} add %rdx, %rcx; jmp *%rcx; 1: add $8, %rsp; "
	"ret; 2: .long 1b - 2b, 1b - 2b\n"
	"unbounded_end:\n"
	"astray: sub $8, %rsp; cmp $1, %eax; ja 1f; lea 2f(%rip), %rcx; movslq (%rcx, %rax, 4), %rdx; {load} add %rdx, %rcx; jmp *%rcx; "
	"1: add $8, %rsp; ret; hlt; 2: .long 1b - 2b, 4096\n"
	"astray_end:\n"
	"misaligned: sub $16, %rsp; call . + 4096; nop; add $16, %rsp; ret\n"
	"misaligned_end:\n"
	"falls_out: sub $8, %rsp; add $1, %eax\n"
	"falls_out_end:\n"
	".popsection");

#define DECLARE(name) extern const uint8_t name[], name##_end[]
DECLARE(with_frame);
DECLARE(with_loop);
DECLARE(aligned);
DECLARE(two_depths);
DECLARE(cold_part);
DECLARE(no_return);
DECLARE(rbx_lost);
DECLARE(start);
DECLARE(clone);
DECLARE(popper);
DECLARE(argumentative);
DECLARE(managed);
DECLARE(managed_two);
DECLARE(managed_leaf);
DECLARE(managed_back);
DECLARE(drops);
DECLARE(managed_table);
DECLARE(unbounded);
DECLARE(astray);
DECLARE(misaligned);
DECLARE(falls_out);

static struct rows rows;

static size_t nr_read; /* bytes of the function */

static int read_function(struct code_function function)
{
	CLEANUP(code_frames_freep) struct code_frames *frames = code_frames_new(CODE_FRAMES_MAX_STEPS);
	struct cfi_stats stats = { 0 };
	int verdict;

	assert_non_null(frames);
	verdict = code_frames_read(frames, &function);
	rows.nr = 0;
	nr_read = code_frames_size(frames);
	if (verdict != CODE_CONTRADICTS)
		assert_int_equal(code_frames_rows(frames, false, take_row, &rows, &stats), 0);
	return verdict;
}

static int read_made_up(const uint8_t *begin, const uint8_t *end, bool is_start)
{
	return read_function((struct code_function){
	    .code = begin, .size = (size_t)(end - begin), .vaddr = 0x1000, .is_sized = !is_start, .is_start = is_start });
}

static int read_managed(const uint8_t *begin, const uint8_t *end)
{
	return read_function((struct code_function){
	    .code = begin, .size = (size_t)(end - begin), .vaddr = 0x1000, .is_sized = true, .is_managed = true });
}

#define MANAGED(name) read_managed(name, name##_end)
#define READ(name) read_made_up(name, name##_end, false)

/* The rule before the first instruction that starts with these bytes. */
static struct sonde_rule before(const uint8_t *begin, const uint8_t *end, const char *bytes, size_t size)
{
	const uint8_t *at = memmem(begin, (size_t)(end - begin), bytes, size);

	assert_non_null(at);
	return *rule_at(&rows, 0x1000 + (uint64_t)(at - begin));
}

#define BEFORE(name, bytes) before(name, name##_end, bytes, sizeof(bytes) - 1)

static void test_frames(void **state)
{
	struct sonde_rule rule;

	assert_int_equal(READ(with_frame), CODE_RETURNS);
	rule = BEFORE(with_frame, "\xe8");
	assert_int_equal(rule.cfa_kind, SONDE_CFA_BP);
	assert_int_equal(rule.cfa_off, 16);
	assert_int_equal(rule.bp_off, -16);
	assert_int_equal(rule.rbx_off, 0); /* it is pushed, but still in the register */
	rule = BEFORE(with_frame, "\xc3");
	assert_int_equal(rule.cfa_kind, SONDE_CFA_SP);
	assert_int_equal(rule.cfa_off, 8);
	assert_int_equal(rule.bp_kind, SONDE_BP_SAME);
	assert_int_equal(READ(with_loop), CODE_RETURNS);
	rule = BEFORE(with_loop, "\xe8");
	assert_int_equal(rule.cfa_off, 48);
	assert_int_equal(rule.rbx_off, -16);
	assert_int_equal(READ(argumentative), CODE_RETURNS); /* the first function that it calls may have popped both arguments */
	rule = rows.rows[rows.nr - 2].rule;
	assert_int_equal(rule.cfa_kind, SONDE_CFA_SP); /* after leave */
	rule = *rule_at(&rows, 0x1000 + 11);
	assert_int_equal(rule.cfa_kind, SONDE_CFA_BP);
	assert_int_equal(READ(aligned), CODE_RETURNS);
	rule = BEFORE(aligned, "\xe8");
	assert_int_equal(rule.cfa_kind, SONDE_CFA_DEREF_BP);
	assert_int_equal(rule.cfa_off, -8);
	assert_int_equal(rule.bp_kind, SONDE_BP_BP);
}

static void test_what_is_not_proved(void **state)
{
	assert_int_equal(READ(two_depths), CODE_CONTRADICTS);
	assert_int_equal(READ(cold_part), CODE_CONTRADICTS);
	assert_int_equal(READ(rbx_lost), CODE_CONTRADICTS);
	assert_int_equal(READ(no_return), CODE_MAY_BE);
	assert_int_equal(READ(popper), CODE_CONTRADICTS); /* it pops its return address for a while, with zero in rbp */
}

static void test_managed_code(void **state)
{
	struct sonde_rule rule;

	assert_int_equal(MANAGED(managed), CODE_RETURNS);
	rule = BEFORE(managed, "\xe8");
	assert_int_equal(rule.cfa_off, 32);
	assert_int_equal(rule.bp_kind, SONDE_BP_CFA);
	assert_int_equal(rule.bp_off, -24);
	rule = BEFORE(managed, "\xbf"); /* a handler */
	assert_int_equal(rule.cfa_off, 32);
	assert_int_equal(rule.rbx_off, SONDE_RBX_LOST);
	assert_int_equal(MANAGED(managed_two), CODE_RETURNS); /* only the first of two */
	assert_int_equal(nr_read, 16);
	assert_int_equal(MANAGED(managed_leaf), CODE_RETURNS); /* what is behind it says nothing of a frame */
	assert_int_equal(nr_read, 16);
	assert_int_equal(MANAGED(managed_back), CODE_RETURNS);
	rule = BEFORE(managed_back, "\x31\xc0");
	assert_int_equal(rule.cfa_off, 16);
	assert_int_equal(MANAGED(drops), CODE_CONTRADICTS);
	assert_int_equal(MANAGED(managed_table), CODE_RETURNS);
	rule = BEFORE(managed_table, "\xff\xe1");
	assert_int_equal(rule.cfa_off, 16);
	assert_int_equal(BEFORE(managed_table, "\xf4").kind, SONDE_RULE_KIND_NONE); /* behind it is the table */
	assert_int_equal(MANAGED(unbounded), CODE_CONTRADICTS);
	assert_int_equal(MANAGED(astray), CODE_CONTRADICTS);
	assert_int_equal(MANAGED(misaligned), CODE_CONTRADICTS);
	assert_int_equal(MANAGED(falls_out), CODE_CONTRADICTS);
	assert_int_equal(MANAGED(two_depths), CODE_CONTRADICTS);
	assert_int_equal(MANAGED(cold_part), CODE_CONTRADICTS);
	assert_int_equal(MANAGED(rbx_lost), CODE_RETURNS); /* its callers expect no register */
}

static void test_ends(void **state)
{
	assert_int_equal(read_made_up(start, start_end, true), CODE_MAY_BE);
	assert_int_equal(rule_at(&rows, 0x1000)->kind, SONDE_RULE_KIND_END);
	assert_int_equal(BEFORE(start, "\xf4").kind, SONDE_RULE_KIND_END);
	assert_int_equal(BEFORE(start, "\xe8").kind, SONDE_RULE_KIND_NONE); /* another function */
	assert_int_equal(READ(clone), CODE_RETURNS);
	assert_int_equal(BEFORE(clone, "\x41\xff\xd1").kind, SONDE_RULE_KIND_END);
	assert_int_equal(BEFORE(clone, "\xf4").kind, SONDE_RULE_KIND_END);
	assert_int_equal(BEFORE(clone, "\xc3").kind, SONDE_RULE_KIND_STEP);
	assert_true(code_frames_is_clone(clone, (size_t)(clone_end - clone)));
	assert_false(code_frames_is_clone(popper, (size_t)(popper_end - popper)));
}
#endif

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_code_says_what_cfi_says),
#ifdef __x86_64__
		cmocka_unit_test(test_frames),
		cmocka_unit_test(test_what_is_not_proved),
		cmocka_unit_test(test_managed_code),
		cmocka_unit_test(test_ends),
#endif
	};

	for (int i = 1; i < argc; i++)
		compare_file(argv[i], 1000);
	return argc > 1 ? 0 : cmocka_run_group_tests(tests, NULL, NULL);
}
