// SPDX-License-Identifier: Apache-2.0
/* Frames whose caller is on another stack, above or below: OCaml changes from its own stacks to the system's and back, with the rows of
 * its call frame information. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "walk_host.h"

#define CODE_PC	    0x400000ULL
#define CODE_BYTES  0x1000ULL
#define STACK_START 0x7ffc00000000ULL
#define STACK_WORDS 1024
#define FUNCTION(i) (CODE_PC + (i) * 0x100u) /* each has one row */
#define RULE(i)	    (SONDE_RULE_FIRST_FREE + (i))

static struct walk w;
static __u64 frames[SONDE_MAX_USER_FRAMES];
static __u64 stack[STACK_WORDS];
static uint8_t code[CODE_BYTES];

static uint64_t word_at(uint32_t i)
{
	return STACK_START + i * 8;
}

static uint64_t returned(uint64_t pc)
{
	return pc | SONDE_FRAME_RETURN;
}

static void put_call(uint64_t ret)
{
	code[ret - CODE_PC - 5] = 0xe8;
}

static long read_made_up(void *to, __u32 size, __u64 from)
{
	if (from >= CODE_PC && from < CODE_PC + CODE_BYTES && size <= CODE_PC + CODE_BYTES - from) {
		memcpy(to, code + (from - CODE_PC), size);
		return 0;
	}
	if (from >= STACK_START && from < STACK_START + sizeof(stack) && size <= STACK_START + sizeof(stack) - from) {
		memcpy(to, (const uint8_t *)stack + (from - STACK_START), size);
		return 0;
	}
	return -14;
}

/* Four functions: CFA = sp + 8; one that changes stacks; CFA = sp + 8; an end. */
static void set_up(const struct sonde_rule *change)
{
	struct sonde_mapping file = { .start_pc = CODE_PC, .end_pc = CODE_PC + CODE_BYTES, .base_pc = CODE_PC };
	struct host_row rows[4];

	memset(&w, 0, sizeof(w));
	memset(code, 0x90, sizeof(code));
	for (uint32_t i = 0; i < STACK_WORDS; i++)
		stack[i] = 0xdead000000000000ULL + i;
	host_reset();
	host_read = read_made_up;
	for (uint32_t i = 0; i < 4; i++) {
		rows[i] = (struct host_row){ .rel = i * 0x100, .rule = (uint16_t)RULE(i) };
		host_rules[RULE(i)] =
		    (struct sonde_rule){ .kind = SONDE_RULE_KIND_STEP, .cfa_kind = SONDE_CFA_SP, .cfa_off = 8, .ra_off = -8 };
	}
	host_rules[RULE(1)] = *change;
	host_rules[RULE(3)] = (struct sonde_rule){ .kind = SONDE_RULE_KIND_END };
	nr_host_rules = RULE(4);
	host_table(rows, 4, CODE_BYTES, SONDE_MIN_BLOCK_SHIFT, &file);
	host_process(&w, &file, 1);
	stack[20] = FUNCTION(2) + 16; /* the stack below */
	stack[21] = FUNCTION(3) + 1;
	stack[200] = FUNCTION(1) + 5;
	put_call(FUNCTION(1) + 5);
	put_call(FUNCTION(3) + 1);
}

static void walk_from(uint64_t pc, uint64_t sp)
{
	w.pc = pc;
	w.sp = sp;
	w.bp = 0;
	host_walk(&w, frames);
}

static void a_signal_frame_leads_to_a_stack_below(void **state)
{
	const struct sonde_rule change = {
		.kind = SONDE_RULE_KIND_STEP, .cfa_kind = SONDE_CFA_DEREF_SP, .cfa_off = 16, .cfa_add = 8, .ra_off = -8, .is_signal = 1
	};

	set_up(&change);
	stack[203] = word_at(20);
	walk_from(FUNCTION(0), word_at(200));
	check_stack(SONDE_STOP_COMPLETE, FUNCTION(0), returned(FUNCTION(1) + 5), FUNCTION(2) + 16, returned(FUNCTION(3) + 1));
}

static void its_caller_may_have_called(void **state)
{
	const struct sonde_rule change = {
		.kind = SONDE_RULE_KIND_STEP, .cfa_kind = SONDE_CFA_DEREF_SP, .cfa_off = 16, .cfa_add = 8, .ra_off = -8, .is_signal = 1
	};

	set_up(&change);
	stack[203] = word_at(20);
	put_call(FUNCTION(2) + 16);
	walk_from(FUNCTION(0), word_at(200));
	check_stack(SONDE_STOP_COMPLETE, FUNCTION(0), returned(FUNCTION(1) + 5), returned(FUNCTION(2) + 16), returned(FUNCTION(3) + 1));
}

static void other_frames_do_not(void **state)
{
	const struct sonde_rule change = {
		.kind = SONDE_RULE_KIND_STEP, .cfa_kind = SONDE_CFA_DEREF_SP, .cfa_off = 16, .cfa_add = 8, .ra_off = -8
	};

	set_up(&change);
	stack[203] = word_at(20);
	walk_from(FUNCTION(0), word_at(200));
	check_stack(SONDE_STOP_NO_PROGRESS, FUNCTION(0), returned(FUNCTION(1) + 5));
}

static void a_stack_that_leads_to_itself_is_marked(void **state)
{
	const struct sonde_rule change = {
		.kind = SONDE_RULE_KIND_STEP, .cfa_kind = SONDE_CFA_DEREF_SP, .cfa_off = 16, .cfa_add = 8, .ra_off = -8, .is_signal = 1
	};

	set_up(&change);
	stack[203] = word_at(20);
	stack[20] = FUNCTION(1) + 5;
	stack[23] = word_at(20);
	walk_from(FUNCTION(0), word_at(200));
	assert_int_equal(w.stop, SONDE_STOP_DEPTH);
}

static void a_fiber_leads_to_the_one_that_started_it(void **state)
{
	const struct sonde_rule change = { .kind = SONDE_RULE_KIND_STEP,
					   .cfa_kind = SONDE_CFA_DEREF_TWICE,
					   .cfa_off = 16,
					   .cfa_reg = 24,
					   .cfa_add = 8,
					   .ra_off = -8,
					   .is_signal = 1 };

	set_up(&change);
	stack[203] = word_at(400);
	stack[403] = word_at(20);
	walk_from(FUNCTION(0), word_at(200));
	check_stack(SONDE_STOP_COMPLETE, FUNCTION(0), returned(FUNCTION(1) + 5), FUNCTION(2) + 16, returned(FUNCTION(3) + 1));
	stack[203] = 8; /* not readable */
	walk_from(FUNCTION(0), word_at(200));
	check_stack(SONDE_STOP_READ_FAULT, FUNCTION(0), returned(FUNCTION(1) + 5));
}

static void a_stack_kept_in_rbx(void **state)
{
	const struct sonde_rule change = {
		.kind = SONDE_RULE_KIND_STEP, .cfa_kind = SONDE_CFA_REG, .cfa_reg = WALK_REG_BX, .cfa_off = 8, .ra_off = -8
	};

	set_up(&change);
	put_call(FUNCTION(2) + 16);
	w.regs[WALK_REG_BX] = word_at(20);
	walk_from(FUNCTION(0), word_at(200));
	check_stack(SONDE_STOP_COMPLETE, FUNCTION(0), returned(FUNCTION(1) + 5), returned(FUNCTION(2) + 16), returned(FUNCTION(3) + 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_signal_frame_leads_to_a_stack_below), cmocka_unit_test(its_caller_may_have_called),
		cmocka_unit_test(other_frames_do_not),			 cmocka_unit_test(a_stack_that_leads_to_itself_is_marked),
		cmocka_unit_test(a_fiber_leads_to_the_one_that_started_it), cmocka_unit_test(a_stack_kept_in_rbx),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
