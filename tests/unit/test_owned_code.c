// SPDX-License-Identifier: Apache-2.0
/* Code that a runtime owns: the native walk stops there, and a program with both steps goes on (bpf/lib/owner_main.h). The runtime here is
 * made up: its frames have a size that only the runtime knows, and it pushes return addresses without a call before them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "walk_host.h"

#define RUNTIME_OF_TEST 3
#include "runtimes/runtime.h"

#define FILE_PC     0x400000ULL /* has rows: frames of 16 bytes */
#define OWNED_PC    0x700000ULL /* frames of 32 bytes */
#define CODE_BYTES  0x10000ULL
#define ROOT_OFF    0x8000ULL   /* the outermost function, in the file */
#define STACK_START 0x7ffc00000000ULL
#define STACK_WORDS 4096
#define RULE_FRAME SONDE_RULE_FIRST_FREE

static struct walk w;
static struct runtime_walk runtime;
static __u64 frames[SONDE_MAX_USER_FRAMES];
static __u64 stack[STACK_WORDS];
static uint32_t used; /* words of the stack, from its low end */

/* All code is calls, but for the owned code, which has none. */
static long read_made_up(void *to, __u32 size, __u64 from)
{
	static const uint8_t calls[] = { 0xff, 0xd0 };

	if (from - FILE_PC < CODE_BYTES && size <= FILE_PC + CODE_BYTES - from) {
		for (__u32 i = 0; i < size; i++)
			((uint8_t *)to)[i] = calls[(from + i) & 1];
		return 0;
	}
	if (from - OWNED_PC < CODE_BYTES) {
		memset(to, 0x90, size);
		return 0;
	}
	if (from - STACK_START < sizeof(stack) && size <= STACK_START + sizeof(stack) - from) {
		memcpy(to, (const uint8_t *)stack + (from - STACK_START), size);
		return 0;
	}
	return -14;
}

static void set_up(void)
{
	struct sonde_mapping mappings[2] = {
		{ .start_pc = FILE_PC, .end_pc = FILE_PC + CODE_BYTES, .base_pc = FILE_PC },
		{ .start_pc = OWNED_PC, .end_pc = OWNED_PC + CODE_BYTES, .index_pos = RUNTIME_OF_TEST, .block_shift = SONDE_OWNED },
	};
	const struct host_row rows[] = { { .rel = 0, .rule = RULE_FRAME }, { .rel = ROOT_OFF, .rule = SONDE_RULE_END } };

	memset(&w, 0, sizeof(w));
	memset(&runtime, 0, sizeof(runtime));
	memset(stack, 0, sizeof(stack));
	used = 0;
	host_reset();
	host_read = read_made_up;
	host_rules[SONDE_RULE_END] = (struct sonde_rule){ .kind = SONDE_RULE_KIND_END };
	host_rules[RULE_FRAME] = (struct sonde_rule){ .kind = SONDE_RULE_KIND_STEP, .cfa_kind = SONDE_CFA_SP, .cfa_off = 16, .ra_off = -8 };
	nr_host_rules = RULE_FRAME + 1;
	host_table(rows, 2, CODE_BYTES, SONDE_MIN_BLOCK_SHIFT, &mappings[0]);
	host_process(&w, mappings, 2);
}

/* Puts the frame of a function with this pc on the stack, the leaf first. */
static void put_frame(uint64_t pc)
{
	static __u64 *ret; /* of the frame before */

	if (used)
		*ret = pc;
	else
		w.pc = pc;
	used += pc >= OWNED_PC ? 4 : 2;
	ret = &stack[used - 1];
}

static int step(void)
{
	__u64 pc;

	assert_int_equal(w.owner, RUNTIME_OF_TEST);
	w.owner = 0;
	w.stop = SONDE_STOP_DEPTH;
	if (runtime_push_placed(&w, &runtime, w.pc, 0, 0) != RUNTIME_GOES_ON || walk_peek(&w, w.sp + 24, &pc))
		return walk_stop(&w, SONDE_STOP_READ_FAULT);
	w.pc = pc;
	w.sp += 32;
	w.exact = WALK_RETURN;
	return WALK_GOES_ON;
}

/* As bpf/lib/owner_main.h. Returns how often the walk came to owned code. */
static uint32_t walk_both(void)
{
	uint32_t nr = 0;
	int at = WALK_GOES_ON;

	w.sp = STACK_START;
	walk_enter(&w);
	for (int turn = 0; turn < WALK_MAX_TURNS && at == WALK_GOES_ON; turn++) {
		at = walk_step(&w, frames);
		if (at == WALK_AT_OWNER) {
			nr++;
			at = step();
		}
	}
	return nr;
}

/* 500 frames, 42 changes of side. */
static void test_many_changes(void **state)
{
	uint32_t nr_owned = 0;

	for (int round = 0; round < 2; round++) { /* the second time from the cache */
		if (!round)
			set_up();
		runtime.nr_frames = used = 0;
		for (uint32_t i = 0; i < 499; i++)
			put_frame((i / 12 % 2 ? OWNED_PC : FILE_PC) + 0x100 + i * 16);
		put_frame(FILE_PC + ROOT_OFF + 0x10);
		nr_owned = walk_both();
		assert_int_equal(w.stop, SONDE_STOP_COMPLETE);
		assert_int_equal(w.nr_frames, 500);
		assert_int_equal(runtime.nr_frames, nr_owned);
		assert_int_equal(nr_owned, 20 * 12 + 7);
		for (uint32_t i = 0; i < nr_owned; i++) {
			uint32_t native = i / 12 * 24 + 12 + i % 12;

			assert_int_equal(runtime.frames[i].native, native);
			assert_int_equal(runtime.frames[i].flags, SONDE_RUNTIME_PLACED);
			assert_int_equal(frames[native], runtime.frames[i].code | SONDE_FRAME_RETURN);
		}
	}
}

/* Where the runtime's program does not go on, the stack ends in a mark, with the frame. */
static void test_nobody_goes_on(void **state)
{
	set_up();
	put_frame(FILE_PC + 0x100);
	put_frame(OWNED_PC + 0x100);
	put_frame(FILE_PC + ROOT_OFF + 0x10);
	w.sp = STACK_START;
	host_walk(&w, frames);
	assert_int_equal(w.owner, RUNTIME_OF_TEST);
	check_stack(SONDE_STOP_NO_ROW, FILE_PC + 0x100, (OWNED_PC + 0x100) | SONDE_FRAME_RETURN);
}

/* A walk that begins in owned code, and one that the next event starts anew. */
static void test_owned_leaf(void **state)
{
	set_up();
	for (int round = 0; round < 2; round++) {
		runtime.nr_frames = used = 0;
		put_frame(OWNED_PC + 0x200);
		put_frame(FILE_PC + ROOT_OFF + 0x10);
		assert_int_equal(walk_both(), 1);
		check_stack(SONDE_STOP_COMPLETE, OWNED_PC + 0x200, (FILE_PC + ROOT_OFF + 0x10) | SONDE_FRAME_RETURN);
		assert_int_equal(runtime.frames[0].native, 0);
	}
}

/* Frames of which the native number is not kept are not placed: such a stack is marked as cut. */
static void test_too_deep(void **state)
{
	set_up();
	w.nr_frames = SONDE_LEAF_FRAMES + 1;
	assert_int_equal(runtime_push_placed(&w, &runtime, OWNED_PC, 0, 0), RUNTIME_GOES_ON);
	assert_int_equal(runtime.nr_frames, 0);
	w.nr_frames = SONDE_LEAF_FRAMES;
	assert_int_equal(runtime_push_placed(&w, &runtime, OWNED_PC, 0, 0), RUNTIME_GOES_ON);
	assert_int_equal(runtime.frames[0].native, SONDE_LEAF_FRAMES - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many_changes),
		cmocka_unit_test(test_nobody_goes_on),
		cmocka_unit_test(test_owned_leaf),
		cmocka_unit_test(test_too_deep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
