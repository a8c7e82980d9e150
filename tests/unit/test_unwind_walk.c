// SPDX-License-Identifier: Apache-2.0
/* The kernel side's walk on the host: made-up stacks for every kind of rule, with a fault at every read. Searches are in
 * test_walk_search, walks of real stacks in test_unwind_real. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "walk_host.h"

#define STACK_PC    0x7ffe00000000ULL /* where the made-up stack begins */
#define PAGE_WORDS (4096 / 8)
#define STACK_WORDS 20480             /* forty pages */
#define CODE_PC     0x400000ULL
#define CODE_BYTES  0x10000ULL
#define JIT_PC      0x500000ULL       /* mapped, without a table */
#define JIT_BYTES   0x1000ULL
#define FUNCTION(i) (CODE_PC + (i) * 0x100u) /* each has one row */
#define RULE(i) (SONDE_RULE_FIRST_FREE + (i))

static __u64 stack[STACK_WORDS];
static uint64_t stack_end; /* a user address: nothing is mapped from here on */
static uint8_t code[JIT_BYTES];
static bool has_calls; /* the file's code reads as if calls ended everywhere */
static uint32_t nr_reads, first_fault, nr_faults;
static struct walk w;
static __u64 frames[SONDE_MAX_USER_FRAMES];

static long read_made_up(void *to, __u32 size, __u64 from)
{
	nr_reads++;
	if (nr_reads >= first_fault && nr_reads - first_fault < nr_faults)
		return -14;
	if (from >= STACK_PC && from < stack_end && size <= stack_end - from) {
		memcpy(to, (const char *)stack + (from - STACK_PC), size);
		return 0;
	}
	if (from >= JIT_PC && from < JIT_PC + JIT_BYTES && size <= JIT_PC + JIT_BYTES - from) {
		memcpy(to, code + (from - JIT_PC), size);
		return 0;
	}
	if (has_calls && from >= CODE_PC && from < CODE_PC + CODE_BYTES) { /* call, call, ... */
		memset(to, 0xe8, size);
		return 0;
	}
	return -14;
}

static uint64_t word_at(uint32_t i)
{
	return STACK_PC + i * 8;
}

/* A file whose i-th function has rules[i], followed by JIT code without a table. The stack is filled with words that are no pc. */
static void set_code(const struct sonde_rule *rules, uint32_t nr)
{
	struct sonde_mapping mappings[2] = { { .start_pc = CODE_PC, .end_pc = CODE_PC + CODE_BYTES, .base_pc = CODE_PC },
					     { .start_pc = JIT_PC, .end_pc = JIT_PC + JIT_BYTES } };
	struct host_row rows[32];

	memset(&w, 0, sizeof(w));
	host_reset();
	for (uint32_t i = 0; i < nr; i++) {
		rows[i] = (struct host_row){ .rel = i * 0x100, .rule = RULE(i) };
		host_rules[RULE(i)] = rules[i];
	}
	host_table(rows, nr, nr * 0x100, SONDE_MIN_BLOCK_SHIFT, &mappings[0]);
	nr_host_rules = RULE(nr);
	host_rules[SONDE_RULE_END] = (struct sonde_rule){ .kind = SONDE_RULE_KIND_END };
	host_rules[SONDE_RULE_SIGNAL] = (struct sonde_rule){ .kind = SONDE_RULE_KIND_SIGNAL };
	host_rules[SONDE_RULE_UNSUPPORTED] = (struct sonde_rule){ .kind = SONDE_RULE_KIND_UNSUPPORTED };
	host_process(&w, mappings, 2);
	for (uint32_t i = 0; i < STACK_WORDS; i++)
		stack[i] = 0xdead000000000000ULL + i;
	memset(code, 0x90, sizeof(code));
	code[0x100] = code[0x200] = 0xf4; /* hlt: may be a root */
	stack_end = word_at(STACK_WORDS);
	host_read = read_made_up;
	first_fault = UINT32_MAX;
	nr_faults = nr_reads = 0;
}

static void walk_from(uint64_t pc, uint64_t sp, uint64_t bp)
{
	w.pc = pc;
	w.sp = sp;
	w.bp = bp;
	nr_reads = 0;
	memset(w.cache, 0, sizeof(w.cache)); /* the cache's contents matter in test_cache only */
	host_walk(&w, frames);
}

static struct sonde_rule step(uint8_t cfa_kind, int32_t cfa_off)
{
	return (struct sonde_rule){ .kind = SONDE_RULE_KIND_STEP, .cfa_kind = cfa_kind, .cfa_off = cfa_off, .ra_off = -8 };
}

static void put_call(uint64_t pc, int form)
{
	static const uint8_t forms[][8] = { { 5, 0xe8, 1, 2, 3, 4 }, { 2, 0xff, 0xd0 }, { 3, 0xff, 0x50, 8 }, { 4, 0xff, 0x54, 0x24, 8 },
					    { 6, 0xff, 0x90, 1, 2, 3, 4 }, { 7, 0xff, 0x94, 0x24, 1, 2, 3, 4 } };

	memcpy(code + (pc - JIT_PC) - forms[form][0], forms[form] + 1, forms[form][0]);
}

#define END_RULE ((struct sonde_rule){ .kind = SONDE_RULE_KIND_END })
static uint64_t returned(uint64_t pc)
{
	return pc | SONDE_FRAME_RETURN;
}

/* --- rules ------------------------------------------------------------------------------------------------------------------------- */

static void test_cfa_kinds(void **state)
{
	const struct sonde_rule rules[] = { step(SONDE_CFA_SP, 24), step(SONDE_CFA_BP, 16), END_RULE, step(SONDE_CFA_DEREF_SP, 8),
					    step(SONDE_CFA_DEREF_BP, -16), step(SONDE_CFA_PLT, 8) };

	set_code(rules, 6);
	host_rules[RULE(3)].cfa_add = 32;
	host_rules[RULE(4)].cfa_add = -8;
	stack[102] = FUNCTION(1) + 5;  /* CFA = sp + 24 */
	stack[111] = FUNCTION(2) + 7;  /* CFA = bp + 16 */
	walk_from(FUNCTION(0) + 3, word_at(100), word_at(110));
	check_stack(SONDE_STOP_COMPLETE, FUNCTION(0) + 3, returned(FUNCTION(1) + 5), returned(FUNCTION(2) + 7));
	assert_int_equal(w.sp, word_at(112));

	stack[201] = word_at(300);     /* CFA = *(sp + 8) + 32 */
	stack[303] = FUNCTION(2) + 1;
	walk_from(FUNCTION(3), word_at(200), 0);
	check_stack(SONDE_STOP_COMPLETE, FUNCTION(3), returned(FUNCTION(2) + 1));
	assert_int_equal(w.sp, word_at(304));

	stack[402] = word_at(412);     /* CFA = *(bp - 16) - 8 */
	stack[410] = FUNCTION(2) + 9;
	walk_from(FUNCTION(4), word_at(400), word_at(404));
	check_stack(SONDE_STOP_COMPLETE, FUNCTION(4), returned(FUNCTION(2) + 9));

	host_rules[RULE(5)].cfa_reg = 11; /* a PLT entry pushes at its byte 6; from byte 11 on the stack holds one more word */
	stack[500] = FUNCTION(2) + 2;
	stack[501] = FUNCTION(2) + 4;
	walk_from(FUNCTION(5) + 10, word_at(500), 0);
	check_stack(SONDE_STOP_COMPLETE, FUNCTION(5) + 10, returned(FUNCTION(2) + 2));
	walk_from(FUNCTION(5) + 16 + 11, word_at(500), 0);
	check_stack(SONDE_STOP_COMPLETE, FUNCTION(5) + 27, returned(FUNCTION(2) + 4));
}

static void test_cfa_in_a_register(void **state)
{
	const struct sonde_rule rules[] = { step(SONDE_CFA_REG, 8), END_RULE, step(SONDE_CFA_SP, 8) };

	for (uint8_t reg = 0; reg < 16; reg++) {
		if (reg == WALK_REG_BP || reg == WALK_REG_SP)
			continue;
		set_code(rules, 3);
		host_rules[RULE(0)].cfa_reg = reg;
		w.regs[reg] = word_at(50);
		stack[50] = FUNCTION(1) + 1;
		walk_from(FUNCTION(0), word_at(10), 0);
		check_stack(SONDE_STOP_COMPLETE, FUNCTION(0), returned(FUNCTION(1) + 1));
	}
	stack[20] = FUNCTION(0) + 1; /* known in the leaf only */
	walk_from(FUNCTION(2), word_at(20), 0);
	check_stack(SONDE_STOP_BAD_RULE, FUNCTION(2), returned(FUNCTION(0) + 1));
}

/* As in vfork, which pops its return address before its child could overwrite it. The stack then holds no word of its own. */
static void test_return_address_in_a_register(void **state)
{
	const struct sonde_rule rules[] = { step(SONDE_CFA_SP, 0), END_RULE, step(SONDE_CFA_SP, 8) };

	for (uint8_t reg = 0; reg < 16; reg++) {
		set_code(rules, 3);
		host_rules[RULE(0)].ra_kind = SONDE_RA_REG;
		host_rules[RULE(0)].ra_off = reg;
		w.regs[reg] = FUNCTION(1) + 1;
		walk_from(FUNCTION(0), word_at(10), word_at(30));
		check_stack(SONDE_STOP_COMPLETE, FUNCTION(0), returned(FUNCTION(1) + 1));
		assert_int_equal(w.sp, word_at(10));
	}
	stack[20] = FUNCTION(0) + 1; /* known in the leaf only */
	walk_from(FUNCTION(2), word_at(20), 0);
	check_stack(SONDE_STOP_BAD_RULE, FUNCTION(2), returned(FUNCTION(0) + 1));
}

static uint64_t hash_of_frames(uint64_t hash)
{
	for (uint32_t i = 0; i < w.nr_frames; i++)
		hash = hash_step(hash, frames[i]);
	return hash;
}

/* rbx is known farther up, too. The walk runs once more and keeps it. */
static void test_cfa_in_rbx(void **state)
{
	struct sonde_rule rules[] = { step(SONDE_CFA_SP, 16), step(SONDE_CFA_SP, 24), step(SONDE_CFA_REG, 16), END_RULE };
	const struct {
		int16_t off;
		uint8_t stop;
	} cases[] = { { 0, SONDE_STOP_COMPLETE }, { -16, SONDE_STOP_COMPLETE }, { SONDE_RBX_LOST, SONDE_STOP_BAD_RULE } };

	rules[2].cfa_reg = WALK_REG_BX;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		rules[1].rbx_off = cases[i].off;
		set_code(rules, 4);
		w.hash = 7;
		w.regs[WALK_REG_BX] = word_at(cases[i].off ? 999 : 50);
		stack[11] = FUNCTION(1) + 1;
		stack[13] = word_at(50); /* function 1 saved it, or not */
		stack[14] = FUNCTION(2) + 1;
		stack[51] = FUNCTION(3) + 1;
		walk_from(FUNCTION(0), word_at(10), word_at(70));
		if (cases[i].stop == SONDE_STOP_COMPLETE)
			check_stack(cases[i].stop, FUNCTION(0), returned(FUNCTION(1) + 1), returned(FUNCTION(2) + 1),
				    returned(FUNCTION(3) + 1));
		else
			check_stack(cases[i].stop, FUNCTION(0), returned(FUNCTION(1) + 1), returned(FUNCTION(2) + 1));
		assert_int_equal(w.hash, hash_of_frames(7));
	}
	rules[0].rbx_off = SONDE_RBX_LOST; /* lost in the leaf, but function 1 saved its own caller's */
	rules[1].rbx_off = -16;
	set_code(rules, 4);
	stack[11] = FUNCTION(1) + 1;
	stack[13] = word_at(50);
	stack[14] = FUNCTION(2) + 1;
	stack[51] = FUNCTION(3) + 1;
	walk_from(FUNCTION(0), word_at(10), 0);
	check_stack(SONDE_STOP_COMPLETE, FUNCTION(0), returned(FUNCTION(1) + 1), returned(FUNCTION(2) + 1), returned(FUNCTION(3) + 1));
	stack_end = word_at(13); /* its word cannot be read */
	walk_from(FUNCTION(1), word_at(11), 0);
	check_stack(SONDE_STOP_READ_FAULT, FUNCTION(1));
}

/* A frame without rules does not show where it keeps rbx. */
static void test_rbx_behind_a_frame_pointer(void **state)
{
	struct sonde_rule rules[] = { step(SONDE_CFA_REG, 16), END_RULE, step(SONDE_CFA_SP, 8) };

	rules[0].cfa_reg = WALK_REG_BX;
	set_code(rules, 3);
	has_calls = true;
	put_call(JIT_PC + 0x80, 0);
	stack[9] = JIT_PC + 0x80;
	stack[20] = word_at(40);
	stack[21] = FUNCTION(0) + 9;
	w.regs[WALK_REG_BX] = word_at(50);
	stack[51] = FUNCTION(1) + 1;
	walk_from(FUNCTION(2), word_at(9), word_at(20));
	check_stack(SONDE_STOP_BAD_RULE, FUNCTION(2), returned(JIT_PC + 0x80), returned(FUNCTION(0) + 9));
	has_calls = false;
}

/* musl's restorer has no rule. Its instructions identify it. */
static void test_signal_frame_without_rules(void **state)
{
	static const uint8_t restorers[][9] = { { 0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05 }, { 0xb8, 15, 0, 0, 0, 0x0f, 0x05 } };
	const struct sonde_rule rules[] = { step(SONDE_CFA_SP, 8), END_RULE };

	for (size_t i = 0; i < 2; i++) {
		set_code(rules, 2);
		memcpy(code + 0x40, restorers[i], i ? 7 : 9);
		stack[20] = JIT_PC + 0x40;
		stack[21 + 5 + 15] = word_at(100);
		stack[21 + 5 + 16] = FUNCTION(0);
		stack[100] = FUNCTION(1) + 1;
		walk_from(FUNCTION(0), word_at(20), 0);
		check_stack(SONDE_STOP_COMPLETE, FUNCTION(0), returned(JIT_PC + 0x40), FUNCTION(0), returned(FUNCTION(1) + 1));
		for (size_t byte = 0; byte < (i ? 7 : 9); byte++) { /* with another instruction, a call must lead there */
			code[0x40 + byte] ^= 1;
			walk_from(FUNCTION(0), word_at(20), word_at(5));
			assert_int_equal(w.stop, SONDE_STOP_NO_CALL);
			assert_int_equal(w.nr_frames, 1);
			code[0x40 + byte] ^= 1;
		}
	}
}

static void test_saved_frame_pointers(void **state)
{
	static const struct {
		uint8_t kind;
		int32_t off;
		uint64_t want;
	} cases[] = { { SONDE_BP_SAME, 0, STACK_PC + 60 * 8 },
		      { SONDE_BP_CFA, -24, 0x1234 },
		      { SONDE_BP_BP, 16, 0x5678 },
		      { SONDE_BP_UNDEFINED, 0, 0 } };
	const struct sonde_rule rules[] = { step(SONDE_CFA_SP, 32), END_RULE };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		set_code(rules, 2);
		host_rules[RULE(0)].bp_kind = cases[i].kind;
		host_rules[RULE(0)].bp_off = cases[i].off;
		stack[51] = 0x1234;
		stack[62] = 0x5678;
		stack[53] = FUNCTION(1) + 1;
		walk_from(FUNCTION(0), word_at(50), word_at(60));
		check_stack(SONDE_STOP_COMPLETE, FUNCTION(0), returned(FUNCTION(1) + 1));
		assert_int_equal(w.bp, cases[i].want);
	}
}

static void test_return_address_elsewhere(void **state)
{
	const struct sonde_rule rules[] = { step(SONDE_CFA_SP, 32), END_RULE };

	set_code(rules, 2);
	host_rules[RULE(0)].ra_off = -16;
	stack[52] = FUNCTION(1) + 1;
	walk_from(FUNCTION(0), word_at(50), 0);
	check_stack(SONDE_STOP_COMPLETE, FUNCTION(0), returned(FUNCTION(1) + 1));
	assert_int_equal(w.sp, word_at(54));
}

/* The call of a function that does not return is the last instruction of its caller: the return address is the next function's first. */
static void test_call_at_the_end_of_a_function(void **state)
{
	const struct sonde_rule rules[] = { step(SONDE_CFA_SP, 8), step(SONDE_CFA_SP, 16), END_RULE };

	set_code(rules, 3);
	stack[10] = FUNCTION(2);      /* belongs to function 1 */
	stack[12] = FUNCTION(2) + 1;
	walk_from(FUNCTION(0), word_at(10), 0);
	check_stack(SONDE_STOP_COMPLETE, FUNCTION(0), returned(FUNCTION(2)), returned(FUNCTION(2) + 1));
	walk_from(FUNCTION(2), word_at(10), 0); /* but the pc of an interrupted instruction is exact */
	check_stack(SONDE_STOP_COMPLETE, FUNCTION(2));
}

static void test_signal_frame(void **state)
{
	struct sonde_rule rules[] = { step(SONDE_CFA_SP, 8), { .kind = SONDE_RULE_KIND_SIGNAL }, step(SONDE_CFA_REG, 0), END_RULE };
	/* by psABI number: the position in struct sigcontext_64, in words */
	static const uint8_t at[16] = { 13, 12, 14, 11, 9, 8, 10, 15, 0, 1, 2, 3, 4, 5, 6, 7 };

	for (uint8_t reg = 0; reg < 16; reg++) {
		uint32_t context = 21 + 5; /* uc_mcontext is at offset 40 */

		if (reg == WALK_REG_BP || reg == WALK_REG_SP)
			continue;
		rules[2].cfa_reg = reg;
		set_code(rules, 4);
		stack[20] = FUNCTION(1) + 1; /* pretcode: the restorer */
		for (uint32_t i = 0; i < 16; i++)
			stack[context + i] = 0x1000 + i;
		stack[context + at[reg]] = word_at(900) + 8;
		stack[context + 15] = word_at(800);
		stack[context + 16] = FUNCTION(2);
		stack[900] = FUNCTION(3) + 1;
		walk_from(FUNCTION(0), word_at(20), 0);
		/* the interrupted instruction is exact, even as the first of its function */
		check_stack(SONDE_STOP_COMPLETE, FUNCTION(0), returned(FUNCTION(1) + 1), FUNCTION(2), returned(FUNCTION(3) + 1));
		assert_int_equal(w.bp, 0x1000 + 10);
	}
	stack_end = word_at(1024); /* the last register cannot be read: a page ends before it */
	stack[1024 - 22] = FUNCTION(1) + 1;
	walk_from(FUNCTION(0), word_at(1024 - 22), 0);
	check_stack(SONDE_STOP_READ_FAULT, FUNCTION(0), returned(FUNCTION(1) + 1));
}

static void test_stops(void **state)
{
	const struct sonde_rule rules[] = { step(SONDE_CFA_SP, 8),  { .kind = SONDE_RULE_KIND_UNSUPPORTED },
					    step(SONDE_CFA_SP, -8), step(99, 8),
					    { .kind = 77 },	    step(SONDE_CFA_SP, 0),
					    step(SONDE_CFA_BP, 16) };

	set_code(rules, 7);
	walk_from(FUNCTION(1), word_at(10), 0);
	check_stack(SONDE_STOP_BAD_RULE, FUNCTION(1));
	walk_from(FUNCTION(4), word_at(10), 0);
	check_stack(SONDE_STOP_BAD_RULE, FUNCTION(4));
	walk_from(FUNCTION(2), word_at(10), 0);
	check_stack(SONDE_STOP_NO_PROGRESS, FUNCTION(2));
	walk_from(FUNCTION(5), word_at(10), 0);
	check_stack(SONDE_STOP_NO_PROGRESS, FUNCTION(5));
	walk_from(FUNCTION(6), word_at(10), word_at(8) - 1);
	check_stack(SONDE_STOP_NO_PROGRESS, FUNCTION(6));
	walk_from(FUNCTION(3), word_at(10), 0);
	check_stack(SONDE_STOP_TABLE, FUNCTION(3));
	nr_host_rules = RULE(0); /* a row whose rule number is invalid */
	walk_from(FUNCTION(0), word_at(10), 0);
	check_stack(SONDE_STOP_TABLE, FUNCTION(0));
	nr_host_rules = RULE(7);
	stack[10] = 0;
	walk_from(FUNCTION(0), word_at(10), 0);
	check_stack(SONDE_STOP_NO_CALL, FUNCTION(0));
	for (int is_right = 0; is_right < 2; is_right++) { /* a Ractor's stack */
		stack[PAGE_WORDS - 3] = 0;
		stack[PAGE_WORDS - 2] = STACK_PC - 4096 + !is_right * 8;
		stack[PAGE_WORDS - 1] = 7;
		walk_from(FUNCTION(0), word_at(PAGE_WORDS - 3), 0);
		check_stack(is_right ? SONDE_STOP_COMPLETE : SONDE_STOP_NO_CALL, FUNCTION(0));
	}
	walk_from(FUNCTION(0), STACK_PC - 4096, 0);
	check_stack(SONDE_STOP_READ_FAULT, FUNCTION(0));
	w.compat = 1;
	walk_from(FUNCTION(0), word_at(10), 0);
	check_stack(SONDE_STOP_COMPAT, FUNCTION(0));
	w.process_pos = 0;
	walk_from(FUNCTION(0), word_at(10), 0);
	assert_int_equal(w.stop, SONDE_STOP_NO_PROCESS);
	assert_int_equal(w.nr_frames, 0); /* else one hash would stand for all files that reach its pc */
}

/* Stacks not aligned to 8, which assembler functions may use. */
static void test_unaligned_stack(void **state)
{
	const struct sonde_rule rules[] = { step(SONDE_CFA_SP, 11), step(SONDE_CFA_SP, 16), END_RULE };
	const uint64_t one = FUNCTION(1) + 1, two = FUNCTION(2) + 1;

	for (uint32_t off = 0; off < 16; off++) {
		char *at = (char *)stack + 800 + off;

		set_code(rules, 3);
		memcpy(at + 3, &one, 8);
		memcpy(at + 11 + 8, &two, 8);
		walk_from(FUNCTION(0), STACK_PC + 800 + off, 0);
		check_stack(SONDE_STOP_COMPLETE, FUNCTION(0), returned(one), returned(two));
	}
}

/* Every distance of the last frame from the stack's end: the block would reach into a page that is not present. */
static void test_top_of_stack(void **state)
{
	const struct sonde_rule rules[] = { step(SONDE_CFA_SP, 16), END_RULE };

	for (uint32_t left = 0; left <= 1200; left++) {
		uint32_t sp = STACK_WORDS - left;

		set_code(rules, 2);
		if (left >= 2)
			stack[sp + 1] = FUNCTION(1) + 1;
		walk_from(FUNCTION(0), word_at(sp), 0);
		if (left >= 2)
			check_stack(SONDE_STOP_COMPLETE, FUNCTION(0), returned(FUNCTION(1) + 1));
		else
			check_stack(SONDE_STOP_READ_FAULT, FUNCTION(0));
	}
	for (uint32_t left = 9; left < 24; left++) { /* bytes, so that words straddle the end */
		uint64_t sp = stack_end - left, pc = FUNCTION(1) + 1;

		set_code(rules, 2);
		host_rules[RULE(0)].bp_kind = SONDE_BP_CFA; /* read first, so that the return address is searched in the same block */
		host_rules[RULE(0)].bp_off = -16;
		if (left >= 16)
			memcpy((char *)stack + (sp + 8 - STACK_PC), &pc, 8);
		walk_from(FUNCTION(0), sp, 0);
		assert_int_equal(w.stop, left >= 16 ? SONDE_STOP_COMPLETE : SONDE_STOP_READ_FAULT);
	}
}

/* --- frame pointers ---------------------------------------------------------------------------------------------------------------- */

/* Each form of call: the frame pointer is followed where a call precedes the return address. */
static void test_frame_pointers(void **state)
{
	const struct sonde_rule rules[] = { END_RULE };

	for (int form = 0; form < 6; form++) {
		set_code(rules, 1);
		put_call(JIT_PC + 0x100, form);
		stack[20] = word_at(40);
		stack[21] = JIT_PC + 0x100;
		stack[40] = 0;
		stack[41] = JIT_PC + 0x100;
		walk_from(JIT_PC + 0x80, word_at(10), word_at(20));
		check_stack(SONDE_STOP_COMPLETE, JIT_PC + 0x80, returned(JIT_PC + 0x100), returned(JIT_PC + 0x100));
	}
	stack[21] = JIT_PC + 0x200; /* no call precedes it */
	walk_from(JIT_PC + 0x80, word_at(10), word_at(20));
	check_stack(SONDE_STOP_NO_ROW, JIT_PC + 0x80);
	stack[21] = 0x900000; /* not mapped */
	walk_from(JIT_PC + 0x80, word_at(10), word_at(20));
	check_stack(SONDE_STOP_NO_ROW, JIT_PC + 0x80);
	walk_from(0x900000, word_at(10), word_at(20));
	check_stack(SONDE_STOP_NO_MAPPING, 0x900000);
	stack[21] = 0; /* bp may be any register there, so this does not prove the root */
	walk_from(JIT_PC + 0x80, word_at(10), word_at(20));
	check_stack(SONDE_STOP_NO_ROW, JIT_PC + 0x80);
	walk_from(JIT_PC + 0x80, word_at(10), word_at(9)); /* below the stack pointer */
	check_stack(SONDE_STOP_NO_ROW, JIT_PC + 0x80);
	walk_from(JIT_PC + 0x80, word_at(10), word_at(20) + 4);
	check_stack(SONDE_STOP_NO_ROW, JIT_PC + 0x80);
	walk_from(JIT_PC + 0x80, word_at(10), word_at(10) + WALK_MAX_FP_FRAME_BYTES + 8);
	check_stack(SONDE_STOP_NO_ROW, JIT_PC + 0x80);
	walk_from(JIT_PC + 0x80, word_at(10), stack_end);
	check_stack(SONDE_STOP_READ_FAULT, JIT_PC + 0x80);
	walk_from(JIT_PC + 0x80, word_at(10), 0); /* in the leaf a zero proves nothing */
	check_stack(SONDE_STOP_NO_ROW, JIT_PC + 0x80);
}

/* Writes a direct call that ends at `ret` and leads to `target`. */
static void put_direct_call(uint64_t ret, uint64_t target)
{
	int32_t rel = (int32_t)(target - ret);

	code[ret - JIT_PC - 5] = 0xe8;
	memcpy(code + (ret - JIT_PC - 4), &rel, 4);
}

/* The innermost function without rows: its caller is found whether or not its frame pointer is set up. */
static void test_frameless_leaf(void **state)
{
	const struct sonde_rule rules[] = { END_RULE };
	/* hlt: the code cannot be followed */
	static const uint8_t prologue[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0x90, 0x90, 0xf4, 0xc3 };
	const uint64_t leaf = JIT_PC + 0x40, other = JIT_PC + 0x20, in_mid = JIT_PC + 0x100, in_top = JIT_PC + 0x200;

	set_code(rules, 1);
	put_direct_call(in_mid, leaf);
	put_direct_call(in_top, other);
	stack[10] = in_mid;
	stack[20] = 0; /* the frame of the caller of in_top's function */
	stack[21] = in_top;
	walk_from(leaf + 8, word_at(10), word_at(20));
	check_stack(SONDE_STOP_COMPLETE, leaf + 8, returned(in_mid), returned(in_top));
	walk_from(leaf, word_at(10), word_at(20)); /* its first instruction */
	check_stack(SONDE_STOP_COMPLETE, leaf, returned(in_mid), returned(in_top));
	put_direct_call(in_top, leaf + 4); /* the frame pointer's caller called a function nearer to pc, so the word at sp is stale */
	walk_from(leaf + 8, word_at(10), word_at(20));
	check_stack(SONDE_STOP_COMPLETE, leaf + 8, returned(in_top));
	put_direct_call(in_top, leaf); /* the function calls itself: its frame may be set up or not */
	walk_from(leaf + 8, word_at(10), word_at(20));
	check_stack(SONDE_STOP_NO_ROW, leaf + 8);
	put_direct_call(in_top, other);
	put_direct_call(in_mid, leaf);
	walk_from(JIT_PC + 0x700, word_at(10), word_at(0)); /* too far beyond that function's start to be in it */
	check_stack(SONDE_STOP_NO_ROW, JIT_PC + 0x700);
	memcpy(code + (leaf - JIT_PC), prologue, sizeof(prologue));
	walk_from(leaf + 4, word_at(10), word_at(20)); /* at push rbp */
	check_stack(SONDE_STOP_COMPLETE, leaf + 4, returned(in_mid), returned(in_top));
	walk_from(leaf + 8, word_at(10), word_at(20)); /* its frame is set up: the word at sp is a local */
	check_stack(SONDE_STOP_COMPLETE, leaf + 8, returned(in_top));
	stack[9] = word_at(20); /* rbp pushed, not yet set */
	walk_from(leaf + 5, word_at(9), word_at(20));
	check_stack(SONDE_STOP_COMPLETE, leaf + 5, returned(in_mid), returned(in_top));
	put_call(in_mid, 1); /* at the ret any call is accepted */
	walk_from(leaf + 11, word_at(10), word_at(20));
	check_stack(SONDE_STOP_COMPLETE, leaf + 11, returned(in_mid), returned(in_top));
	walk_from(leaf + 9, word_at(10), word_at(20)); /* elsewhere an indirect call proves nothing, but neither does the frame pointer */
	check_stack(SONDE_STOP_NO_ROW, leaf + 9);
	walk_from(leaf + 9, word_at(9), word_at(20)); /* the same above one word of locals */
	check_stack(SONDE_STOP_NO_ROW, leaf + 9);
	walk_from(leaf + 9, word_at(8), word_at(20)); /* farther up it is taken as left over from an earlier call */
	check_stack(SONDE_STOP_COMPLETE, leaf + 9, returned(in_top));
	stack[20] = word_at(40); /* the frame's own return address is not taken as another one */
	stack[40] = 0;
	stack[41] = in_mid;
	walk_from(leaf + 9, word_at(20), word_at(20));
	check_stack(SONDE_STOP_COMPLETE, leaf + 9, returned(in_top), returned(in_mid));
}

/* At an instruction where a function has no frame, its caller is found, even after an indirect call. */
static void test_at_return_address(void **state)
{
	static const uint8_t codes[][8] = {
		{ 0xc3 }, { 0xf3, 0xc3 }, { 0xff, 0x25, 1, 2, 3, 4 }, { 0xf3, 0x0f, 0x1e, 0xfa }, { 0x55, 0x48, 0x89, 0xe5 }
	};
	const struct sonde_rule rules[] = { END_RULE };
	const uint64_t leaf = JIT_PC + 0x40, in_mid = JIT_PC + 0x100, in_top = JIT_PC + 0x200;

	set_code(rules, 1);
	put_call(in_mid, 1);
	put_call(in_top, 1);
	stack[10] = in_mid;
	stack[20] = 0;
	stack[21] = in_top;
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		memcpy(code + (leaf - JIT_PC), codes[i], sizeof(codes[i]));
		walk_from(leaf, word_at(10), word_at(20));
		check_stack(SONDE_STOP_COMPLETE, leaf, returned(in_mid), returned(in_top));
	}
}

/* A zero in rbp proves the root only after a frame pointer, or if the stack is as at process start. */
static void test_root_without_rules(void **state)
{
	const struct sonde_rule rules[] = { step(SONDE_CFA_SP, 8), END_RULE };
	const uint32_t at = STACK_WORDS - 60, strings = STACK_WORDS - 10;

	set_code(rules, 2);
	put_call(JIT_PC + 0x80, 0);
	stack[at - 1] = JIT_PC + 0x80;
	walk_from(FUNCTION(0), word_at(at - 1), 0);
	check_stack(SONDE_STOP_NO_ROW, FUNCTION(0), returned(JIT_PC + 0x80));
	stack[at] = 2; /* argc, argv, environment */
	stack[at + 1] = word_at(strings);
	stack[at + 2] = word_at(strings) + 5;
	stack[at + 3] = 0;
	stack[at + 4] = word_at(strings) + 9;
	memcpy(&stack[strings], "name\0one\0A=B", 13);
	walk_from(FUNCTION(0), word_at(at - 1), 0);
	check_stack(SONDE_STOP_COMPLETE, FUNCTION(0), returned(JIT_PC + 0x80));
	walk_from(JIT_PC, word_at(at), 0);
	check_stack(SONDE_STOP_COMPLETE, JIT_PC);
	walk_from(JIT_PC, word_at(at), 8); /* a changed rbp: something ran */
	check_stack(SONDE_STOP_NO_ROW, JIT_PC);
	for (uint32_t i = 0; i < 5; i++) { /* any other word */
		uint64_t word = stack[at + i];

		stack[at + i] = word + (i == 4 ? 1 : 1u << 30);
		walk_from(FUNCTION(0), word_at(at - 1), 0);
		check_stack(SONDE_STOP_NO_ROW, FUNCTION(0), returned(JIT_PC + 0x80));
		stack[at + i] = word;
	}
	stack[at + 4] = 0; /* no environment */
	stack[at + 5] = 33;
	walk_from(FUNCTION(0), word_at(at - 1), 0);
	check_stack(SONDE_STOP_COMPLETE, FUNCTION(0), returned(JIT_PC + 0x80));
	stack[at + 5] = word_at(3);
	walk_from(FUNCTION(0), word_at(at - 1), 0);
	check_stack(SONDE_STOP_NO_ROW, FUNCTION(0), returned(JIT_PC + 0x80));
}

static void test_cycles_end(void **state)
{
	const struct sonde_rule rules[] = { { .kind = SONDE_RULE_KIND_SIGNAL }, step(SONDE_CFA_BP, 16) };

	set_code(rules, 2);
	put_call(JIT_PC + 0x100, 0);
	stack[20] = word_at(20); /* a frame pointer that points at itself */
	stack[21] = JIT_PC + 0x100;
	walk_from(JIT_PC + 0x80, word_at(10), word_at(20));
	check_stack(SONDE_STOP_NO_ROW, JIT_PC + 0x80, returned(JIT_PC + 0x100));
	host_rules[RULE(1)].bp_kind = SONDE_BP_BP;
	stack[30] = word_at(30);
	stack[31] = FUNCTION(1) + 1;
	walk_from(FUNCTION(1), word_at(10), word_at(30));
	check_stack(SONDE_STOP_NO_PROGRESS, FUNCTION(1), returned(FUNCTION(1) + 1));
	for (uint32_t i = 0; i < 17; i++) /* a signal frame that leads to itself */
		stack[100 + 5 + i] = 0;
	stack[100 + 5 + 15] = word_at(100);
	stack[100 + 5 + 16] = FUNCTION(0);
	walk_from(FUNCTION(0), word_at(100), 0);
	assert_int_equal(w.stop, SONDE_STOP_DEPTH);
	assert_int_equal(w.nr_frames, WALK_MAX_SIGNALS + 1);
}

static void walk_depth(uint32_t depth)
{
	const struct sonde_rule rules[] = { step(SONDE_CFA_SP, 8), END_RULE };

	set_code(rules, 2);
	for (uint32_t i = 0; i + 2 < depth; i++)
		stack[i] = FUNCTION(0) + 1 + i % 16;
	stack[depth - 2] = FUNCTION(1) + 1;
	walk_from(FUNCTION(0), word_at(0), 0);
}

/* The frames from the i-th on are in their slots, as walked. */
static void check_kept(uint32_t first, uint32_t end)
{
	for (uint32_t i = first; i < end; i++)
		assert_int_equal(frames[sonde_frame_slot(i)], i ? returned(FUNCTION(0) + 1 + (i - 1) % 16) : FUNCTION(0));
}

/* Of a stack that is too deep, the two ends are kept. */
static void test_depth(void **state)
{
	const uint32_t depths[] = {
		SONDE_LEAF_FRAMES,	SONDE_MAX_USER_FRAMES - 1, SONDE_MAX_USER_FRAMES, SONDE_MAX_USER_FRAMES + 1, 3333,
		SONDE_MAX_WALKED_FRAMES
	};

	for (uint32_t i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) {
		uint32_t depth = depths[i], kept_from = depth > SONDE_MAX_USER_FRAMES ? depth - SONDE_ROOT_FRAMES : 0;

		walk_depth(depth);
		assert_int_equal(w.stop, SONDE_STOP_COMPLETE);
		assert_int_equal(w.nr_frames, depth);
		check_kept(0, depth - 1 < SONDE_LEAF_FRAMES ? depth - 1 : SONDE_LEAF_FRAMES);
		check_kept(kept_from, depth - 1);
		assert_int_equal(frames[sonde_frame_slot(depth - 1)], returned(FUNCTION(1) + 1));
	}
	walk_depth(SONDE_MAX_WALKED_FRAMES + 1);
	assert_int_equal(w.stop, SONDE_STOP_DEPTH);
	assert_int_equal(w.nr_frames, SONDE_MAX_WALKED_FRAMES);
}

/* Recursions that differ only in the dropped part have the same hash. */
static void test_cut_hash(void **state)
{
	uint64_t hash;

	walk_depth(4000);
	hash = walk_hash(&w, frames);
	walk_depth(4000 + 16 * 8);
	assert_int_equal(walk_hash(&w, frames), hash);
	walk_depth(4001);
	assert_int_not_equal(walk_hash(&w, frames), hash);
}

/* --- faults ------------------------------------------------------------------------------------------------------------------------ */

/* A stack that uses most kinds of rules and frame pointers, over several pages: seven frames. */
static void make_mixed_stack(void)
{
	struct sonde_rule rules[] = { step(SONDE_CFA_SP, 8 * 600), step(SONDE_CFA_BP, 16), { .kind = SONDE_RULE_KIND_SIGNAL },
				      step(SONDE_CFA_DEREF_SP, 0), step(SONDE_CFA_SP, 64) };
	const uint32_t context = 1303 + 5; /* sp in the restorer is word 1303 */

	rules[1].bp_kind = rules[4].bp_kind = SONDE_BP_CFA;
	rules[1].bp_off = rules[4].bp_off = -16;
	set_code(rules, 5);
	put_call(JIT_PC + 0x100, 0);
	stack[599] = FUNCTION(1) + 1;
	stack[1301] = 0;
	stack[1302] = FUNCTION(2) + 1;
	stack[context + 10] = word_at(3000);
	stack[context + 15] = word_at(2000);
	stack[context + 16] = FUNCTION(3);
	stack[2000] = word_at(2100);
	stack[2099] = FUNCTION(4) + 1;
	stack[2106] = word_at(3000);
	stack[2107] = JIT_PC + 0x100;
	stack[3000] = word_at(3500);
	stack[3001] = JIT_PC + 0x100;
	stack[3501] = 0;
}

static void walk_mixed_stack(void)
{
	walk_from(FUNCTION(0), word_at(0), word_at(1301));
}

static void test_faults_at_every_read(void **state)
{
	__u64 whole[16];
	uint32_t nr_whole, nr_all;

	make_mixed_stack();
	walk_mixed_stack();
	assert_int_equal(w.stop, SONDE_STOP_COMPLETE);
	nr_whole = w.nr_frames;
	nr_all = nr_reads;
	assert_true(nr_whole == 7 && nr_all > 4);
	memcpy(whole, frames, nr_whole * sizeof(*whole));
	for (first_fault = 1; first_fault <= nr_all; first_fault++) {
		nr_faults = UINT32_MAX;
		walk_mixed_stack();
		/* complete if only rbp was still to be read */
		assert_true(w.stop == SONDE_STOP_COMPLETE ? w.nr_frames == nr_whole : w.nr_frames <= nr_whole);
		assert_memory_equal(frames, whole, w.nr_frames * sizeof(*whole));
		nr_faults = 1; /* a block that cannot be read whole is read again, shorter; then nothing may be missing */
		walk_mixed_stack();
		assert_true(w.stop == SONDE_STOP_COMPLETE ? w.nr_frames == nr_whole : w.nr_frames <= nr_whole);
		assert_memory_equal(frames, whole, w.nr_frames * sizeof(*whole));
	}
}

static uint64_t seed;

static uint64_t prng(void)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return seed >> 16 ^ seed << 41;
}

/* Random rules, registers and stack: the walk ends, at the latest at the maximum depth. */
static void test_random_rules_end(void **state)
{
	for (seed = 1; seed < 3000; seed++) {
		struct sonde_rule rules[16];

		for (uint32_t i = 0; i < 16; i++) {
			uint64_t bits[] = { prng(), prng(), prng() };

			memcpy(&rules[i], bits, sizeof(rules[i]));
			rules[i].kind = (uint8_t)(prng() % 6);
			rules[i].cfa_kind = (uint8_t)(prng() % 8);
			rules[i].bp_kind = (uint8_t)(prng() % 5);
			rules[i].cfa_off %= 64;
			rules[i].bp_off %= 64;
			rules[i].rbx_off %= 64;
		}
		set_code(rules, 16);
		for (uint32_t i = 0; i < STACK_WORDS; i++) {
			if (prng() % 4)
				stack[i] = prng() % 2 ? FUNCTION(prng() % 17) + prng() % 256 : STACK_PC + prng() % sizeof(stack);
		}
		for (uint32_t i = 0; i < 16; i++)
			w.regs[i] = STACK_PC + prng() % sizeof(stack);
		walk_from(FUNCTION(prng() % 16), STACK_PC + prng() % sizeof(stack), STACK_PC + prng() % sizeof(stack));
		assert_in_range(w.nr_frames, 1, SONDE_MAX_USER_FRAMES);
		assert_true(w.stop < SONDE_STOP_COUNT);
	}
}

/* --- what is found, and where it is kept ------------------------------------------------------------------------------------------- */

/* Positions of missing chunks: a stop, never a fault. */
static void test_missing_chunks(void **state)
{
	const struct sonde_rule rules[] = { step(SONDE_CFA_SP, 8), END_RULE };

	set_code(rules, 2);
	host_chunks[0] = NULL;
	stack[10] = FUNCTION(1) + 1;
	walk_from(FUNCTION(0), word_at(10), 0);
	check_stack(SONDE_STOP_NO_MAPPING, FUNCTION(0));
	memset(&w.mapping, 0, sizeof(w.mapping));
	w.mapping.nr_blocks = 3;
	assert_int_equal(walk_find_rule(&w, 0), SONDE_RULE_NONE);
}

/* The result for a frame is taken from the cache while the process's block is unchanged. */
static void test_cache(void **state)
{
	const struct sonde_rule rules[] = { step(SONDE_CFA_SP, 8), END_RULE, step(SONDE_CFA_SP, 16) };

	set_code(rules, 3);
	w.serial = 1;
	stack[10] = FUNCTION(1) + 1;
	stack[11] = FUNCTION(1) + 2;
	walk_from(FUNCTION(0), word_at(10), 0);
	check_stack(SONDE_STOP_COMPLETE, FUNCTION(0), returned(FUNCTION(1) + 1));
	w.process_pos = 4 * SONDE_CHUNK_WORDS; /* nothing is mapped here: the answer is the cache's */
	w.nr_mappings = 0;
	w.sp = word_at(10);
	w.pc = FUNCTION(0);
	host_walk(&w, frames);
	check_stack(SONDE_STOP_COMPLETE, FUNCTION(0), returned(FUNCTION(1) + 1));
	w.serial = 2; /* another block: it may have another answer */
	w.sp = word_at(10);
	w.pc = FUNCTION(0);
	host_walk(&w, frames);
	check_stack(SONDE_STOP_NO_MAPPING, FUNCTION(0));

	/* a function's first byte belongs to it when interrupted there, and to the one before when it is a return address */
	set_code(rules, 3);
	w.serial = 1;
	stack[20] = FUNCTION(2);
	stack[21] = FUNCTION(1) + 1;
	walk_from(FUNCTION(0), word_at(20), 0); /* FUNCTION(2) as a return address belongs to function 1: the end */
	check_stack(SONDE_STOP_COMPLETE, FUNCTION(0), returned(FUNCTION(2)));
	w.sp = word_at(20);
	w.pc = FUNCTION(2);
	host_walk(&w, frames);
	check_stack(SONDE_STOP_COMPLETE, FUNCTION(2), returned(FUNCTION(1) + 1));
}

/* The hash depends on the frames, their order and their kind. */
static void test_hash(void **state)
{
	const struct sonde_rule rules[] = { step(SONDE_CFA_SP, 8), END_RULE };
	uint64_t first;

	set_code(rules, 2);
	stack[10] = FUNCTION(1) + 1;
	w.hash = 7;
	walk_from(FUNCTION(0), word_at(10), 0);
	first = w.hash;
	w.hash = 7;
	walk_from(FUNCTION(0), word_at(10), 0);
	assert_int_equal(w.hash, first);
	w.hash = 8;
	walk_from(FUNCTION(0), word_at(10), 0);
	assert_int_not_equal(w.hash, first);
	stack[10] = FUNCTION(1) + 2;
	w.hash = 7;
	walk_from(FUNCTION(0), word_at(10), 0);
	assert_int_not_equal(w.hash, first);
	assert_int_not_equal(hash_step(hash_step(0, 1), 2), hash_step(hash_step(0, 2), 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cfa_kinds),
		cmocka_unit_test(test_cfa_in_a_register),
		cmocka_unit_test(test_return_address_in_a_register),
		cmocka_unit_test(test_cfa_in_rbx),
		cmocka_unit_test(test_rbx_behind_a_frame_pointer),
		cmocka_unit_test(test_saved_frame_pointers),
		cmocka_unit_test(test_return_address_elsewhere),
		cmocka_unit_test(test_call_at_the_end_of_a_function),
		cmocka_unit_test(test_signal_frame),
		cmocka_unit_test(test_signal_frame_without_rules),
		cmocka_unit_test(test_stops),
		cmocka_unit_test(test_unaligned_stack),
		cmocka_unit_test(test_top_of_stack),
		cmocka_unit_test(test_frame_pointers),
		cmocka_unit_test(test_frameless_leaf),
		cmocka_unit_test(test_at_return_address),
		cmocka_unit_test(test_root_without_rules),
		cmocka_unit_test(test_cycles_end),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_cut_hash),
		cmocka_unit_test(test_faults_at_every_read),
		cmocka_unit_test(test_random_rules_end),
		cmocka_unit_test(test_missing_chunks),
		cmocka_unit_test(test_cache),
		cmocka_unit_test(test_hash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
