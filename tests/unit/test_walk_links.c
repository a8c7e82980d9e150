// SPDX-License-Identifier: Apache-2.0
/* Frame pointers in code without rows, where it must be checked whether they are kept at all. And the end of a signal handler in a
 * library without rules for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "walk_host.h"

#define CODE_PC     0x500000ULL
#define CODE_BYTES  0x1000ULL
#define STACK_START 0x7ffc00000000ULL
#define STACK_WORDS 512
#define INNER (CODE_PC + 0x80)
#define CALLEE (CODE_PC + 0x40)
#define IN_TOP (CODE_PC + 0x200)

static struct walk w;
static __u64 frames[SONDE_MAX_USER_FRAMES];
static __u64 stack[STACK_WORDS];
static uint8_t code[CODE_BYTES];

static uint64_t word_at(uint32_t i)
{
	return STACK_START + i * 8;
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

/* A file with rows, in which the code is one gap; or a file without rows. */
static void set_up(bool has_rows)
{
	struct sonde_mapping file = { .start_pc = CODE_PC, .end_pc = CODE_PC + CODE_BYTES, .base_pc = CODE_PC };
	const struct host_row gap = { .rel = 0, .rule = SONDE_RULE_NONE };

	memset(&w, 0, sizeof(w));
	memset(stack, 0, sizeof(stack));
	memset(code, 0x90, sizeof(code));
	code[IN_TOP - CODE_PC] = 0xf4; /* hlt: the root */
	host_reset();
	host_read = read_made_up;
	nr_host_rules = SONDE_RULE_FIRST_FREE;
	if (has_rows)
		host_table(&gap, 1, CODE_BYTES, SONDE_MIN_BLOCK_SHIFT, &file);
	host_process(&w, &file, 1);
}

static void walk_from(uint64_t pc, uint64_t sp, uint64_t bp)
{
	w.pc = pc;
	w.sp = sp;
	w.bp = bp;
	host_walk(&w, frames);
}

static void forget(void)
{
	memset(w.cache, 0, sizeof(w.cache));
}

static void put_indirect_call(uint64_t ret)
{
	code[ret - CODE_PC - 2] = 0xff;
	code[ret - CODE_PC - 1] = 0xd0;
}

static void put_direct_call(uint64_t ret, uint64_t target)
{
	int32_t rel = (int32_t)(target - ret);

	code[ret - CODE_PC - 5] = 0xe8;
	memcpy(code + (ret - CODE_PC - 4), &rel, 4);
}

static void check(enum sonde_stop stop, uint64_t pc, bool has_caller)
{
	assert_int_equal(w.stop, stop);
	assert_int_equal(w.nr_frames, 1 + has_caller);
	assert_int_equal(frames[0], pc);
	if (has_caller)
		assert_int_equal(frames[1], IN_TOP | SONDE_FRAME_RETURN);
}

/* In a gap a link is accepted only if the call may have led to a function that keeps a frame pointer. Otherwise frames of functions
 * without one would be left out. */
static void test_links_in_a_gap(void **state)
{
	static const uint8_t prologue[] = { 0x55, 0x90, 0x48, 0x89, 0xe5 },
			     stub[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 1, 2, 3, 4 };

	set_up(true);
	stack[21] = IN_TOP;
	put_indirect_call(IN_TOP); /* its target is unknown */
	walk_from(INNER, word_at(10), word_at(20));
	check(SONDE_STOP_COMPLETE, INNER, true);
	forget();
	put_direct_call(IN_TOP, CALLEE);
	walk_from(INNER, word_at(10), word_at(20));
	check(SONDE_STOP_NO_ROW, INNER, false);
	forget();
	memcpy(code + (CALLEE - CODE_PC), prologue, sizeof(prologue));
	walk_from(INNER, word_at(10), word_at(20));
	check(SONDE_STOP_COMPLETE, INNER, true);
	walk_from(INNER, word_at(10), word_at(20)); /* from the cache */
	check(SONDE_STOP_COMPLETE, INNER, true);
	walk_from(CALLEE - 0x10, word_at(10), word_at(20)); /* this call does not lead there */
	check(SONDE_STOP_NO_ROW, CALLEE - 0x10, false);
	forget();
	memcpy(code + (CALLEE - CODE_PC), stub, sizeof(stub)); /* may jump anywhere */
	walk_from(INNER, word_at(10), word_at(20));
	check(SONDE_STOP_COMPLETE, INNER, true);
}

/* Code that has no rows at all must keep them. What it calls may jump on to other functions. */
static void test_links_without_rows(void **state)
{
	set_up(false);
	stack[21] = IN_TOP;
	put_direct_call(IN_TOP, CALLEE);
	walk_from(INNER, word_at(10), word_at(20));
	check(SONDE_STOP_COMPLETE, INNER, true);
}

/* A word that leads to no code is not a return address. */
static void test_no_mapping(void **state)
{
	set_up(false);
	walk_from(0x1234, word_at(10), word_at(20));
	check(SONDE_STOP_NO_MAPPING, 0x1234, false);
}

/* rt_sigreturn's own instructions, from the first to the one behind the system call, which is also the start of another function. */
static void test_end_of_a_handler(void **state)
{
	static const uint8_t restorer[] = { 0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05 };
	const uint64_t in_handler = CODE_PC + 0x600;

	for (int at = 0; at < 4; at++) {
		const uint64_t off[] = { 0, 7, 9, 9 };

		set_up(true);
		memcpy(code + 0x600, restorer, sizeof(restorer));
		stack[10 + 5 + 16] = INNER; /* rip of the ucontext at sp */
		stack[10 + 5 + 15] = word_at(100);
		w.in_syscall = at == 2;
		walk_from(in_handler + off[at], word_at(10), 0);
		assert_int_equal(w.nr_frames, at == 3 ? 1 : 2);
		if (at != 3)
			assert_int_equal(frames[1], INNER);
	}
}

/* A return address found by a rule must follow a call, or lead to code that ends the process. A 0 is the root only at a page's end. */
static void test_return_addresses(void **state)
{
	static const uint8_t ends[] = { 0x48, 0x31, 0xff, 0xe8, 1, 2, 3, 4, 0xf4 }; /* xor %rdi,%rdi; call; hlt */
	struct sonde_mapping file = { .start_pc = CODE_PC, .end_pc = CODE_PC + CODE_BYTES, .base_pc = CODE_PC };
	const struct host_row rows[] = { { .rel = 0, .rule = SONDE_RULE_FIRST_FREE }, { .rel = 0x800, .rule = SONDE_RULE_END } };
	const uint64_t leaf = CODE_PC + 0x100, ret = CODE_PC + 0x900;

	set_up(true);
	host_rules[SONDE_RULE_FIRST_FREE] =
	    (struct sonde_rule){ .kind = SONDE_RULE_KIND_STEP, .cfa_kind = SONDE_CFA_SP, .cfa_off = 8, .ra_off = -8 };
	host_rules[SONDE_RULE_END] = (struct sonde_rule){ .kind = SONDE_RULE_KIND_END };
	nr_host_rules = SONDE_RULE_FIRST_FREE + 1;
	host_table(rows, 2, CODE_BYTES, SONDE_MIN_BLOCK_SHIFT, &file);
	host_process(&w, &file, 1);
	stack[10] = leaf + 0x80;
	stack[11] = ret; /* the end of a process needs no call */
	walk_from(leaf, word_at(10), 0);
	assert_int_equal(w.stop, SONDE_STOP_NO_CALL);
	assert_int_equal(w.nr_frames, 1);
	memcpy(code + 0x180, ends, sizeof(ends));
	forget();
	walk_from(leaf, word_at(10), 0);
	assert_int_equal(w.stop, SONDE_STOP_COMPLETE);
	assert_int_equal(w.nr_frames, 1);
	put_indirect_call(leaf + 0x80);
	forget();
	walk_from(leaf, word_at(10), 0);
	assert_int_equal(w.stop, SONDE_STOP_COMPLETE);
	assert_int_equal(w.nr_frames, 3);
	stack[11] = stack[511] = 0;
	walk_from(leaf, word_at(10), 0);
	assert_int_equal(w.stop, SONDE_STOP_NO_CALL);
	assert_int_equal(w.nr_frames, 2);
	walk_from(leaf, word_at(511), 0);
	assert_int_equal(w.stop, SONDE_STOP_COMPLETE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_links_in_a_gap),
		cmocka_unit_test(test_links_without_rows),
		cmocka_unit_test(test_no_mapping),
		cmocka_unit_test(test_end_of_a_handler),
		cmocka_unit_test(test_return_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
