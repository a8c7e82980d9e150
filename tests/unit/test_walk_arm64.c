// SPDX-License-Identifier: Apache-2.0
/* The walk for arm64, compiled for this machine: made-up stacks and code. */
#ifndef __TARGET_ARCH_arm64
#define __TARGET_ARCH_arm64
#endif
#undef __TARGET_ARCH_x86

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "walk_host.h"

#define STACK_PC    0x7ffe00000000ULL
#define STACK_WORDS 1024
#define CODE_PC     0x400000ULL
#define CODE_BYTES  0x10000ULL
#define JIT_PC      0x500000ULL /* mapped, without a table */
#define JIT_BYTES   0x1000ULL
#define FUNCTION(i) (CODE_PC + (i) * 0x100u)
#define RULE(i)     (SONDE_RULE_FIRST_FREE + (i))
#define SIGNED(pc)  ((pc) | 0x002b000000000000ULL) /* as PACIASP leaves it */
#define END_RULE    ((struct sonde_rule){ .kind = SONDE_RULE_KIND_END })

enum {
	NOP = 0xd503201f,
	RET = 0xd65f03c0,
	PACIASP = 0xd503233f,
	BTI_C = 0xd503245f,
	BLR_X3 = 0xd63f0060,
	BLRAA_X3_SP = 0xd73f087f,
	STP_RECORD = 0xa9bf7bfd
};

static __u64 stack[STACK_WORDS];
static uint32_t code[JIT_BYTES / 4];
static struct walk w;
static __u64 frames[SONDE_MAX_USER_FRAMES];

static long read_made_up(void *to, __u32 size, __u64 from)
{
	if (from >= STACK_PC && from - STACK_PC <= sizeof(stack) && size <= sizeof(stack) - (from - STACK_PC)) {
		memcpy(to, (const char *)stack + (from - STACK_PC), size);
		return 0;
	}
	if (from >= JIT_PC && from - JIT_PC <= JIT_BYTES && size <= JIT_BYTES - (from - JIT_PC)) {
		memcpy(to, (const char *)code + (from - JIT_PC), size);
		return 0;
	}
	if (from >= CODE_PC && from - CODE_PC < CODE_BYTES && size == 4) { /* nothing but calls */
		memcpy(to, &(const uint32_t){ BLR_X3 }, size);
		return 0;
	}
	return -14;
}

static uint64_t word_at(uint32_t i)
{
	return STACK_PC + i * 8;
}

static uint64_t returned(uint64_t pc)
{
	return pc | SONDE_FRAME_RETURN;
}

static void set_code(const struct sonde_rule *rules, uint32_t nr)
{
	struct sonde_mapping mappings[2] = { { .start_pc = CODE_PC, .end_pc = CODE_PC + CODE_BYTES, .base_pc = CODE_PC },
					     { .start_pc = JIT_PC, .end_pc = JIT_PC + JIT_BYTES } };
	struct host_row rows[16];

	memset(&w, 0, sizeof(w));
	host_reset();
	for (uint32_t i = 0; i < nr; i++) {
		rows[i] = (struct host_row){ .rel = i * 0x100, .rule = RULE(i) };
		host_rules[RULE(i)] = rules[i];
	}
	host_table(rows, nr, nr * 0x100, SONDE_MIN_BLOCK_SHIFT, &mappings[0]);
	nr_host_rules = RULE(nr);
	host_rules[SONDE_RULE_NONE] = (struct sonde_rule){ .kind = SONDE_RULE_KIND_NONE };
	host_process(&w, mappings, 2);
	for (uint32_t i = 0; i < STACK_WORDS; i++)
		stack[i] = 0xdead000000000000ULL + i;
	for (uint32_t i = 0; i < JIT_BYTES / 4; i++)
		code[i] = NOP;
	host_read = read_made_up;
}

static void walk_from(uint64_t pc, uint64_t sp, uint64_t fp, uint64_t link)
{
	w.pc = pc;
	w.sp = sp;
	w.bp = fp;
	w.regs[WALK_REG_RA] = link;
	memset(w.cache, 0, sizeof(w.cache));
	host_walk(&w, frames);
}

/* A leaf, a function with a frame record of that many bytes, the end. */
static const struct sonde_rule leaf_rule = {
	.kind = SONDE_RULE_KIND_STEP, .cfa_kind = SONDE_CFA_SP, .ra_kind = SONDE_RA_REG, .ra_off = 30
};
static const struct sonde_rule record_rule = {
	.kind = SONDE_RULE_KIND_STEP, .cfa_kind = SONDE_CFA_SP, .cfa_off = 32, .ra_off = -24, .bp_kind = SONDE_BP_CFA, .bp_off = -32
};
static const struct sonde_rule by_fp_rule = {
	.kind = SONDE_RULE_KIND_STEP, .cfa_kind = SONDE_CFA_BP, .cfa_off = 16, .ra_off = -8, .bp_kind = SONDE_BP_CFA, .bp_off = -16
};

static void test_link_register(void **state)
{
	const struct sonde_rule rules[] = { leaf_rule, record_rule, by_fp_rule, END_RULE };

	set_code(rules, 4);
	stack[10] = word_at(20);
	stack[11] = FUNCTION(2) + 4;
	stack[20] = 0;
	stack[21] = FUNCTION(3) + 4;
	walk_from(FUNCTION(0), word_at(10), word_at(10), FUNCTION(1) + 4);
	check_stack(SONDE_STOP_COMPLETE, FUNCTION(0), returned(FUNCTION(1) + 4), returned(FUNCTION(2) + 4), returned(FUNCTION(3) + 4));
	stack[11] = SIGNED(FUNCTION(2) + 4); /* with pointer authentication: in memory and in the register */
	stack[21] = SIGNED(FUNCTION(3) + 4);
	walk_from(FUNCTION(0), word_at(10), word_at(10), SIGNED(FUNCTION(1) + 4));
	check_stack(SONDE_STOP_COMPLETE, FUNCTION(0), returned(FUNCTION(1) + 4), returned(FUNCTION(2) + 4), returned(FUNCTION(3) + 4));
	stack[11] = FUNCTION(0) + 4; /* farther up the register holds something else */
	walk_from(FUNCTION(0), word_at(10), word_at(10), FUNCTION(1) + 4);
	check_stack(SONDE_STOP_BAD_RULE, FUNCTION(0), returned(FUNCTION(1) + 4), returned(FUNCTION(0) + 4));
	stack[11] = 0; /* a thread's first frame */
	walk_from(FUNCTION(0), word_at(10), word_at(10), FUNCTION(1) + 4);
	check_stack(SONDE_STOP_COMPLETE, FUNCTION(0), returned(FUNCTION(1) + 4));
}

static void test_no_progress(void **state)
{
	struct sonde_rule rules[] = { leaf_rule, END_RULE };

	rules[0].ra_kind = SONDE_RA_CFA;
	set_code(rules, 2);
	walk_from(FUNCTION(0), word_at(10), 0, 0);
	check_stack(SONDE_STOP_NO_PROGRESS, FUNCTION(0));
}

static void test_other_registers(void **state)
{
	struct sonde_rule rules[] = { { .kind = SONDE_RULE_KIND_STEP, .cfa_kind = SONDE_CFA_REG, .ra_off = -8 }, END_RULE, record_rule };

	for (uint8_t reg = 0; reg < WALK_REG_BP; reg++) {
		rules[0].cfa_reg = reg;
		set_code(rules, 3);
		w.regs[reg] = word_at(50);
		stack[49] = FUNCTION(1) + 4;
		walk_from(FUNCTION(0), word_at(10), 0, 0);
		check_stack(SONDE_STOP_COMPLETE, FUNCTION(0), returned(FUNCTION(1) + 4));
		stack[11] = FUNCTION(0) + 4; /* x19 is not rbx: no rule says where frames keep it */
		walk_from(FUNCTION(2), word_at(10), 0, 0);
		check_stack(SONDE_STOP_BAD_RULE, FUNCTION(2), returned(FUNCTION(0) + 4));
	}
}

static void test_signal_frame(void **state)
{
	const struct sonde_rule rules[] = { leaf_rule, record_rule, END_RULE, by_fp_rule };
	const uint32_t regs = 10 + 312 / 8;

	set_code(rules, 4);
	code[0x40 / 4] = 0xd2801168; /* mov x8, #139; svc #0 */
	code[0x44 / 4] = 0xd4000001;
	for (uint32_t i = 0; i < 31; i++)
		stack[regs + i] = 0x1000 + i;
	stack[regs + 30] = SIGNED(FUNCTION(2) + 4); /* of an interrupted leaf: also signed in the register */
	stack[regs + 31] = word_at(200);
	stack[regs + 32] = FUNCTION(0) + 8;
	walk_from(FUNCTION(0), word_at(10), 0, JIT_PC + 0x40);
	check_stack(SONDE_STOP_COMPLETE, FUNCTION(0), returned(JIT_PC + 0x40), FUNCTION(0) + 8, returned(FUNCTION(2) + 4));
	assert_int_equal(w.regs[7], 0x1007);
	assert_int_equal(w.bp, 0x1000 + 29);
	code[0x44 / 4] = NOP;
	walk_from(FUNCTION(0), word_at(10), 4, JIT_PC + 0x40);
	check_stack(SONDE_STOP_NO_CALL, FUNCTION(0));
}

static uint32_t bl(uint64_t from, uint64_t to)
{
	return 0x94000000u | ((uint32_t)((to - from) >> 2) & 0x3ffffff);
}

static void put_bl(uint64_t ret, uint64_t to)
{
	code[(ret - 4 - JIT_PC) / 4] = bl(ret - 4, to);
}

static void test_frame_records(void **state)
{
	const struct sonde_rule rules[] = { END_RULE, record_rule, by_fp_rule };
	const uint32_t calls[] = { BLR_X3, BLRAA_X3_SP, bl(0, 0x40), bl(0x400000, 0) };

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		set_code(rules, 3);
		code[0xfc / 4] = calls[i];
		stack[20] = word_at(40);
		stack[21] = SIGNED(JIT_PC + 0x100);
		stack[40] = 0;
		stack[41] = JIT_PC + 0x100;
		walk_from(JIT_PC + 0x800, word_at(10), word_at(20), JIT_PC + 0x100);
		check_stack(SONDE_STOP_COMPLETE, JIT_PC + 0x800, returned(JIT_PC + 0x100), returned(JIT_PC + 0x100));
	}
	code[0xfc / 4] = 0xd61f0060; /* BR is no call */
	walk_from(JIT_PC + 0x800, word_at(10), word_at(20), JIT_PC + 0x100);
	check_stack(SONDE_STOP_NO_ROW, JIT_PC + 0x800);
}

/* A record is at the low end of its frame, so the caller's sp is unknown. Caller rules that need sp end the walk. */
static void test_sp_behind_a_frame_record(void **state)
{
	const struct sonde_rule rules[] = { record_rule, by_fp_rule, END_RULE };

	set_code(rules, 3);
	stack[20] = word_at(40);
	stack[21] = FUNCTION(1) + 4;
	stack[40] = 0;
	stack[41] = FUNCTION(2) + 4;
	walk_from(JIT_PC + 0x800, word_at(10), word_at(20), 0);
	check_stack(SONDE_STOP_COMPLETE, JIT_PC + 0x800, returned(FUNCTION(1) + 4), returned(FUNCTION(2) + 4));
	stack[21] = FUNCTION(0) + 4;
	walk_from(JIT_PC + 0x800, word_at(10), word_at(20), 0);
	check_stack(SONDE_STOP_BAD_RULE, JIT_PC + 0x800, returned(FUNCTION(0) + 4));
	code[0xfc / 4] = BLR_X3;
	stack[20] = word_at(40);
	stack[21] = JIT_PC + 0x100;
	stack[40] = word_at(60);
	stack[41] = JIT_PC + 0x104; /* no call leads there */
	walk_from(JIT_PC + 0x800, word_at(10), word_at(20), 0);
	check_stack(SONDE_STOP_NO_ROW, JIT_PC + 0x800, returned(JIT_PC + 0x100));
	code[0x40 / 4] = 0xd2801168; /* and a signal's frame is at sp */
	code[0x44 / 4] = 0xd4000001;
	code[0x3c / 4] = BLR_X3;
	stack[21] = JIT_PC + 0x40;
	walk_from(JIT_PC + 0x800, word_at(10), word_at(20), 0);
	check_stack(SONDE_STOP_BAD_RULE, JIT_PC + 0x800, returned(JIT_PC + 0x40));
}

static void test_frameless_leaf(void **state)
{
	static const uint32_t at_link[] = { RET, PACIASP, BTI_C, STP_RECORD, 0xd65f0bff };
	const struct sonde_rule rules[] = { END_RULE };
	const uint64_t leaf = JIT_PC + 0x400, other = JIT_PC + 0x300, in_mid = JIT_PC + 0x100, in_top = JIT_PC + 0x200;

	set_code(rules, 1);
	code[(in_mid - 4 - JIT_PC) / 4] = BLR_X3;
	code[(in_top - 4 - JIT_PC) / 4] = BLR_X3;
	stack[20] = 0;
	stack[21] = in_top;
	for (size_t i = 0; i < sizeof(at_link) / sizeof(at_link[0]); i++) {
		code[(leaf - JIT_PC) / 4] = at_link[i];
		walk_from(leaf, word_at(10), word_at(20), SIGNED(in_mid));
		check_stack(SONDE_STOP_COMPLETE, leaf, returned(in_mid), returned(in_top));
	}
	walk_from(leaf + 8, word_at(10), word_at(20), in_mid); /* an indirect call: possibly one of its own calls, which returned */
	check_stack(SONDE_STOP_NO_ROW, leaf + 8);
	walk_from(leaf + 8, word_at(10), word_at(20), in_top); /* the record's call: the function has not called yet */
	check_stack(SONDE_STOP_COMPLETE, leaf + 8, returned(in_top));
	put_bl(in_mid, leaf);
	walk_from(leaf + 8, word_at(10), word_at(20), in_mid);
	check_stack(SONDE_STOP_COMPLETE, leaf + 8, returned(in_mid), returned(in_top));
	put_bl(in_mid, other); /* x30 is stale: the record's caller called the nearer function */
	put_bl(in_top, leaf);
	walk_from(leaf + 8, word_at(10), word_at(20), in_mid);
	check_stack(SONDE_STOP_COMPLETE, leaf + 8, returned(in_top));
	put_bl(in_mid, leaf); /* a recursion */
	walk_from(leaf + 8, word_at(10), word_at(20), in_mid);
	check_stack(SONDE_STOP_NO_ROW, leaf + 8);
}

static void test_entry(void **state)
{
	const struct sonde_rule rules[] = { leaf_rule };
	const uint32_t at = STACK_WORDS - 60, strings = STACK_WORDS - 10;

	set_code(rules, 1);
	stack[at] = 1;
	stack[at + 1] = word_at(strings);
	stack[at + 2] = 0;
	stack[at + 3] = word_at(strings) + 5;
	memcpy(&stack[strings], "name\0A=B", 9);
	code[1] = BLR_X3;
	walk_from(FUNCTION(0), word_at(at), 0, JIT_PC + 8);
	check_stack(SONDE_STOP_COMPLETE, FUNCTION(0), returned(JIT_PC + 8));
	stack[at + 1] = word_at(STACK_WORDS); /* the strings cannot be read any more */
	stack[at + 3] = word_at(STACK_WORDS) + 5;
	walk_from(FUNCTION(0), word_at(at), 0, JIT_PC + 8);
	check_stack(SONDE_STOP_COMPLETE, FUNCTION(0), returned(JIT_PC + 8));
	stack[at] = 3;
	walk_from(FUNCTION(0), word_at(at), 0, JIT_PC + 8);
	check_stack(SONDE_STOP_NO_ROW, FUNCTION(0), returned(JIT_PC + 8));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_link_register),	cmocka_unit_test(test_no_progress),
		cmocka_unit_test(test_other_registers), cmocka_unit_test(test_signal_frame),
		cmocka_unit_test(test_frame_records),	cmocka_unit_test(test_sp_behind_a_frame_record),
		cmocka_unit_test(test_frameless_leaf),	cmocka_unit_test(test_entry),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
