// SPDX-License-Identifier: Apache-2.0
/* Callers in code without rows and without frame pointers, by what the code ahead does to the stack: made-up functions, as compilers write them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "walk_host.h"

#define CODE_PC     0x500000ULL
#define CODE_BYTES  0x2000ULL
#define STACK_START 0x7ffc00000000ULL
#define STACK_WORDS 512

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

static int set_up(void **state)
{
	struct sonde_mapping file = { .start_pc = CODE_PC, .end_pc = CODE_PC + CODE_BYTES, .base_pc = CODE_PC };

	memset(&w, 0, sizeof(w));
	memset(stack, 0, sizeof(stack));
	memset(code, 0xcc, sizeof(code));
	host_reset();
	host_read = read_made_up;
	nr_host_rules = SONDE_RULE_FIRST_FREE;
	host_process(&w, &file, 1);
	return 0;
}

static void put(uint64_t pc, const char *bytes, size_t size)
{
	memcpy(code + (pc - CODE_PC), bytes, size);
}

#define PUT(pc, bytes) put(pc, bytes, sizeof(bytes) - 1)

static void put_call(uint64_t ret)
{
	PUT(ret - 2, "\xff\xd0");
}

static void walk_from(uint64_t pc, uint64_t sp, uint64_t bp)
{
	memset(w.cache, 0, sizeof(w.cache));
	for (int again = 0; again < 2; again++) { /* then out of the cache */
		w.pc = pc;
		w.sp = sp;
		w.bp = bp;
		host_walk(&w, frames);
	}
}

static void check_(enum sonde_stop stop, const uint64_t *rets, uint32_t nr)
{
	assert_int_equal(w.stop, stop);
	assert_int_equal(w.nr_frames, nr + 1);
	for (uint32_t i = 0; i < nr; i++)
		assert_int_equal(frames[i + 1], rets[i] | SONDE_FRAME_RETURN);
}

#define CHECK(stop, ...)                                                                                                                                       \
	do {                                                                                                                                                   \
		const uint64_t rets[] = { __VA_ARGS__ };                                                                                                       \
		check_(stop, rets, sizeof(rets) / sizeof(rets[0]));                                                                                            \
	} while (0)

#define LEAF	(CODE_PC + 0x40)
#define IN_MID	(CODE_PC + 0x100)
#define IN_OUTER (CODE_PC + 0x200)
#define IN_MAIN (CODE_PC + 0x300)
#define IN_BEGIN (CODE_PC + 0x400)

/* The frame of main, with a frame pointer, at stack[40]: below it the functions under test. */
static void put_main(void)
{
	put_call(IN_MAIN);
	put_call(IN_BEGIN);
	PUT(IN_MAIN, "\xc9\xc3"); /* leave; ret */
	PUT(IN_BEGIN, "\xf4");
	stack[40] = 0;
	stack[41] = IN_BEGIN;
}

/* As .NET's optimized code: leaf, middle, outer without, main with a frame pointer. */
static void frames_without_a_frame_pointer(void **state)
{
	static const uint8_t offs[] = { 0, 2, 5, 7, 10, 12 };

	PUT(LEAF, "\x33\xc0\x48\x85\xff\x7e\x0a\x48\xff\xcf\x75\xfb\xc3"); /* xor; test; jle; dec; jne; ret */
	put_call(IN_MID);
	PUT(IN_MID, "\x48\xff\xc0\x48\x83\xc4\x08\xc3"); /* inc %rax; add $8,%rsp; ret */
	put_call(IN_OUTER);
	PUT(IN_OUTER, "\x48\x03\xc3\x48\x81\xc4\x10\x00\x00\x00\x5b\x41\x5e\xc3"); /* add %rbx,%rax (c3 is no ret); add $16,%rsp; pop rbx; pop r14; ret */
	put_main();
	stack[10] = IN_MID;
	stack[12] = IN_OUTER;
	stack[17] = IN_MAIN;
	for (uint32_t i = 0; i < sizeof(offs); i++) {
		walk_from(LEAF + offs[i], word_at(10), word_at(40));
		CHECK(SONDE_STOP_COMPLETE, IN_MID, IN_OUTER, IN_MAIN, IN_BEGIN);
	}
}

/* One that uses rbp for something else hands its caller's on. */
static void rbp_that_is_no_frame_pointer(void **state)
{
	PUT(LEAF, "\xc3");
	put_call(IN_MID);
	PUT(IN_MID, "\x90\x48\x83\xc4\x08\x5b\x5d\xc3"); /* add $8,%rsp; pop rbx; pop rbp; ret */
	put_main();
	stack[10] = IN_MID;
	stack[13] = word_at(40);
	stack[14] = IN_MAIN;
	walk_from(LEAF, word_at(10), 0x1234);
	CHECK(SONDE_STOP_COMPLETE, IN_MID, IN_MAIN, IN_BEGIN);
	walk_from(LEAF, word_at(10), word_at(20)); /* whatever it points to */
	CHECK(SONDE_STOP_COMPLETE, IN_MID, IN_MAIN, IN_BEGIN);
}

/* What it holds is known on each instruction from the first to the last one. */
static void prologue_and_epilogue(void **state)
{
	static const struct {
		uint8_t off, sp;
		bool is_set;
	} places[] = { { 0, 20, false }, { 1, 19, false }, { 4, 19, true }, { 8, 15, true }, { 11, 15, true }, { 12, 20, false } };

	PUT(LEAF, "\x55\x48\x89\xe5\x48\x83\xec\x20\x48\x01\xd8\xc9\xc3"); /* push rbp; mov rsp,rbp; sub $32,%rsp; add; leave; ret */
	put_main();
	for (uint32_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		stack[20] = IN_MAIN;
		stack[19] = word_at(40);
		stack[15] = IN_OUTER; /* what an earlier call left there */
		put_call(IN_OUTER);
		walk_from(LEAF + places[i].off, word_at(places[i].sp), word_at(places[i].is_set ? 19 : 40));
		CHECK(SONDE_STOP_COMPLETE, IN_MAIN, IN_BEGIN);
	}
}

/* As V8's: a loop whose header leaves it, with a stack check and deoptimizations behind, and a return address left below. */
static void loops_are_left_by_their_nearest_exit(void **state)
{
	static const uint8_t offs[] = { 0, 4, 8, 14 };

	PUT(LEAF, "\x48\x83\xc0\x01\x3b\xc1\x7d\x10\x0f\x80\x72\x00\x00\x00\x49\x3b\x65\xa0\x77\xec\xeb\x2a"); /* add; cmp; jge +10; jo far; cmp; ja back; jmp slow */
	PUT(LEAF + 0x18, "\x48\x8b\xe5\x5d\xc2\x10\x00"); /* mov rbp,rsp; pop rbp; ret $16 */
	PUT(LEAF + 0x40, "\xe8\x00\x00\x00\x00\xeb\xb9"); /* slow: call; jmp to the add */
	put_main();
	put_call(IN_OUTER);
	stack[10] = IN_OUTER;
	stack[30] = word_at(40);
	stack[31] = IN_MAIN;
	for (uint32_t i = 0; i < sizeof(offs); i++) {
		walk_from(LEAF + offs[i], word_at(10), word_at(30));
		CHECK(SONDE_STOP_COMPLETE, IN_MAIN, IN_BEGIN);
	}
}

/* What the code says must hold on the stack, else that is the end of it. */
static void no_return_address_where_the_code_has_it(void **state)
{
	PUT(LEAF, "\xc3");
	put_call(IN_MID);
	PUT(IN_MID, "\x48\x83\xc4\x08\xc3");
	put_main();
	stack[10] = IN_MID;
	stack[12] = 0x1234;
	stack[40] = word_at(50); /* a fine frame pointer, but not this function's */
	walk_from(LEAF, word_at(10), word_at(40));
	CHECK(SONDE_STOP_NO_ROW, IN_MID);
	stack[12] = IN_OUTER; /* in the code, but not behind a call */
	walk_from(LEAF, word_at(10), word_at(40));
	CHECK(SONDE_STOP_NO_ROW, IN_MID);
}

/* Behind a frame pointer of code that has aligned its stack sp is not known: what it has below is a copy of its return address. */
static void copy_of_a_return_address(void **state)
{
	PUT(LEAF, "\xf4");
	put_call(IN_MID);
	PUT(IN_MID, "\x48\x83\xc4\x08\xc3");
	put_main();
	stack[30] = word_at(40);
	stack[31] = IN_MID;
	stack[33] = IN_MID;
	walk_from(LEAF, word_at(10), word_at(30));
	CHECK(SONDE_STOP_NO_ROW, IN_MID);
	stack[33] = IN_MAIN;
	walk_from(LEAF, word_at(10), word_at(30));
	CHECK(SONDE_STOP_COMPLETE, IN_MID, IN_MAIN, IN_BEGIN);
}

/* Code that cannot be followed leaves it to the frame pointer. */
static void what_is_not_understood_proves_nothing(void **state)
{
	static const char *const codes[] = { "\xf4", "\xff\xe0", "\x0f\x0b", "\x48\x83\xe4\xf0\x48\x83\xc4\x08\xc3", "\x48\x89\xc4\xc3", "\x48\x89\xc5\x48\x83\xc4\x08\xc3",
					     "\x50\x48\x83\xc4\x10\xc3", "\x48\x83\xc4\x08\xc2\x08", "\xeb\xfe", "\xca\x08", "\x5c\xc3", "\x48\x83\xc4\x04\xc3" };

	put_main();
	PUT(LEAF, "\xc3");
	put_call(IN_MID);
	put_call(IN_OUTER);
	stack[10] = IN_MID;
	stack[12] = IN_OUTER;
	stack[11] = IN_OUTER;
	stack[30] = word_at(40);
	stack[31] = IN_MAIN;
	for (uint32_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		memset(code + (IN_MID - CODE_PC), 0xcc, 32);
		put(IN_MID, codes[i], strlen(codes[i]));
		walk_from(LEAF, word_at(10), word_at(30));
		CHECK(SONDE_STOP_COMPLETE, IN_MID, IN_MAIN, IN_BEGIN);
	}
}

/* The lengths of what stands between: each would show a ret, or hide it, were it read wrongly. */
static void lengths_of_instructions(void **state)
{
	static const struct {
		const char *bytes;
		uint8_t size;
	} rows[] = {
		{ "\x48\xb8\xc3\xc3\xc3\xc3\xc3\xc3\xc3\xc3", 10 }, /* movabs */
		{ "\xb8\xc3\xc3\xc3\xc3", 5 },
		{ "\x66\xb8\xc3\xc3", 4 },
		{ "\xf2\x0f\x58\xc3", 4 },			   /* addsd */
		{ "\xc5\xf3\x58\xc3", 4 },			   /* vaddsd */
		{ "\xc4\xc1\xf9\x6e\xc3", 5 },			   /* vmovq */
		{ "\x62\xf1\x7c\x48\x58\xc3", 6 },		   /* vaddps zmm */
		{ "\x48\x8b\x84\x24\xc3\xc3\x00\x00", 8 },	   /* mov disp32(%rsp) */
		{ "\x48\x8b\x05\xc3\xc3\xc3\xc3", 7 },		   /* mov disp32(%rip) */
		{ "\x8b\x04\x85\xc3\xc3\xc3\xc3", 7 },		   /* mov disp32(,%rax,4) */
		{ "\x69\xc0\xc3\xc3\xc3\xc3", 6 },		   /* imul imm32 */
		{ "\x6b\xc0\xc3", 3 },
		{ "\xf6\xc1\xc3", 3 },				   /* test imm8 */
		{ "\xf7\xc1\xc3\xc3\xc3\xc3", 6 },
		{ "\xf7\xd0", 2 },				   /* not: no immediate */
		{ "\x66\xc7\x00\xc3\xc3", 5 },			   /* movw */
		{ "\x66\x0f\x3a\x0f\xc1\xc3", 6 },		   /* palignr */
		{ "\x66\x0f\x38\x00\xc3", 5 },			   /* pshufb */
		{ "\x0f\xba\xe0\xc3", 4 },			   /* bt imm8 */
		{ "\x0f\x85\xc3\xc3\x00\x00", 6 },		   /* jne */
		{ "\x66\x2e\x0f\x1f\x84\x00\xc3\xc3\xc3\xc3", 10 }, /* nopw */
		{ "\xe8\xc3\xc3\xc3\xc3", 5 },			   /* call */
		{ "\x41\xff\x55\xc3", 4 },			   /* call disp8(%r13) */
		{ "\x49\x3b\xa7\xc3\xc3\x00\x00", 7 },		   /* cmp disp32(%r15),%rsp */
		{ "\xd9\xc3", 2 },				   /* fld */
		{ "\xa8\xc3", 2 }, { "\xa9\xc3\xc3\xc3\xc3", 5 }, { "\xc0\xe0\xc3", 3 }, { "\x80\xf9\xc3", 3 }, { "\x0c\xc3", 2 }, { "\x0d\xc3\xc3\xc3\xc3", 5 },
		{ "\x0f\xc8", 2 }, { "\x0f\xb6\xc3", 3 }, { "\xc5\xf8\x77", 3 }, { "\xf3\xab", 2 }, { "\xf6\xd0", 2 }, { "\x0f\xae\xe8", 3 }, { "\x64\x48\x8b\x04\x25\xc3\xc3\x00\x00", 9 },
	};

	put_main();
	PUT(LEAF, "\xc3");
	put_call(IN_MID);
	stack[10] = IN_MID;
	stack[12] = IN_MAIN;
	for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		put(IN_MID, rows[i].bytes, rows[i].size);
		PUT(IN_MID + rows[i].size, "\x48\x83\xc4\x08\xc3\xcc\xcc\xcc");
		walk_from(LEAF, word_at(10), word_at(40));
		CHECK(SONDE_STOP_COMPLETE, IN_MID, IN_MAIN, IN_BEGIN);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(frames_without_a_frame_pointer, set_up),
		cmocka_unit_test_setup(rbp_that_is_no_frame_pointer, set_up),
		cmocka_unit_test_setup(prologue_and_epilogue, set_up),
		cmocka_unit_test_setup(loops_are_left_by_their_nearest_exit, set_up),
		cmocka_unit_test_setup(no_return_address_where_the_code_has_it, set_up),
		cmocka_unit_test_setup(copy_of_a_return_address, set_up),
		cmocka_unit_test_setup(what_is_not_understood_proves_nothing, set_up),
		cmocka_unit_test_setup(lengths_of_instructions, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
