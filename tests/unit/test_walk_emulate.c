// SPDX-License-Identifier: Apache-2.0
/* Callers in code without rows and without frame pointers, found by what the code that follows does to the stack: made-up functions, as
 * compilers write them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "walk_host.h"
#include "walk/walk_clock.h"

#define CODE_PC     0x500000ULL
#define CODE_BYTES  0x2000ULL
#define STACK_START 0x7ffc00000000ULL
#define STACK_WORDS 512

static struct walk w;
static __u64 frames[SONDE_MAX_USER_FRAMES];
static __u64 stack[STACK_WORDS];
static uint8_t code[CODE_BYTES];
static uint64_t unreadable_bytes; /* of the code, from its start */
static uint32_t nr_reads;         /* of lines of code */

static uint64_t word_at(uint32_t i)
{
	return STACK_START + i * 8;
}

static long read_made_up(void *to, __u32 size, __u64 from)
{
	if (from >= CODE_PC + unreadable_bytes && from < CODE_PC + CODE_BYTES && size <= CODE_PC + CODE_BYTES - from) {
		memcpy(to, code + (from - CODE_PC), size);
		nr_reads++;
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
	unreadable_bytes = 0;
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
	memset(w.codes, 0, sizeof(w.codes));
	for (int again = 0; again < 2; again++) { /* the second time from the cache */
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

#define CHECK(stop, ...) \
	do { \
		const uint64_t rets[] = { __VA_ARGS__ }; \
		check_(stop, rets, sizeof(rets) / sizeof(rets[0])); \
	} while (0)

#define LEAF	(CODE_PC + 0x40)
#define IN_MID	(CODE_PC + 0x100)
#define IN_OUTER (CODE_PC + 0x200)
#define IN_MAIN (CODE_PC + 0x300)
#define IN_BEGIN (CODE_PC + 0x400)

/* Puts main's frame, with a frame pointer, at stack[40]. The functions under test are below it. */
static void put_main(void)
{
	put_call(IN_MAIN);
	put_call(IN_BEGIN);
	PUT(IN_MAIN, "\xc9\xc3"); /* leave; ret */
	PUT(IN_BEGIN, "\xf4");
	stack[40] = 0;
	stack[41] = IN_BEGIN;
}

/* As .NET's optimized code: leaf, middle and outer without a frame pointer, main with one. */
static void frames_without_a_frame_pointer(void **state)
{
	static const uint8_t offs[] = { 0, 2, 5, 7, 10, 12 };

	PUT(LEAF, "\x33\xc0\x48\x85\xff\x7e\x0a\x48\xff\xcf\x75\xfb\xc3"); /* xor; test; jle; dec; jne; ret */
	put_call(IN_MID);
	PUT(IN_MID, "\x48\xff\xc0\x48\x83\xc4\x08\xc3"); /* inc %rax; add $8,%rsp; ret */
	put_call(IN_OUTER);
	/* add %rbx,%rax (c3 is no ret); add $16,%rsp; pop rbx; pop r14; ret */
	PUT(IN_OUTER, "\x48\x03\xc3\x48\x81\xc4\x10\x00\x00\x00\x5b\x41\x5e\xc3");
	put_main();
	stack[10] = IN_MID;
	stack[12] = IN_OUTER;
	stack[17] = IN_MAIN;
	for (uint32_t i = 0; i < sizeof(offs); i++) {
		walk_from(LEAF + offs[i], word_at(10), word_at(40));
		CHECK(SONDE_STOP_COMPLETE, IN_MID, IN_OUTER, IN_MAIN, IN_BEGIN);
	}
}

/* A function that uses rbp for something else passes its caller's on. */
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
	walk_from(LEAF, word_at(10), word_at(20)); /* whatever rbp points to */
	CHECK(SONDE_STOP_COMPLETE, IN_MID, IN_MAIN, IN_BEGIN);
}

/* The caller is found at each instruction, from the first to the last. */
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
		stack[15] = IN_OUTER; /* left by an earlier call */
		put_call(IN_OUTER);
		walk_from(LEAF + places[i].off, word_at(places[i].sp), word_at(places[i].is_set ? 19 : 40));
		CHECK(SONDE_STOP_COMPLETE, IN_MAIN, IN_BEGIN);
	}
}

/* As HotSpot's copies with AVX-512: of instructions with VEX and EVEX prefixes only a few write general registers, and those not rbp. */
static void vector_instructions_keep_rbp(void **state)
{
	/* bzhi %r8,%rax,%rax; kmovq %rax,%k2; vmovdqu32 (%rdi,%rcx,4),%ymm5{%k2}{z}; vmovd %xmm5,%r13d; kmovd %k5,%r13d;
	 * vcvttsd2si %xmm5,%r13d; mulx %r9,%r8,%r13; rorx $5,%rbp,%rax; add $8,%rsp; vzeroupper; ret */
	PUT(LEAF, "\xc4\xe2\xb8\xf5\xc0\xc4\xe1\xfb\x92\xd0\x62\xf1\x7e\xaa\x6f\x2c\x8f\xc4\xc1\x79\x7e\xed"
		  "\xc5\x7b\x93\xed\xc5\x7b\x2c\xed\xc4\x42\xbb\xf6\xe9\xc4\xe3\xfb\xf0\xc5\x05\x48\x83\xc4\x08\xc5\xf8\x77\xc3");
	put_main();
	stack[11] = IN_MAIN;
	walk_from(LEAF, word_at(10), word_at(40));
	CHECK(SONDE_STOP_COMPLETE, IN_MAIN, IN_BEGIN);
}

/* As V8's: a loop whose header leaves it, with a stack check and deoptimizations behind it, and a return address left below. */
static void loops_are_left_by_their_nearest_exit(void **state)
{
	static const uint8_t offs[] = { 0, 4, 8, 14 };

	/* add; cmp; jge +10; jo far; cmp; ja back; jmp slow */
	PUT(LEAF, "\x48\x83\xc0\x01\x3b\xc1\x7d\x10\x0f\x80\x72\x00\x00\x00\x49\x3b\x65\xa0\x77\xec\xeb\x2a");
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

/* As HotSpot's: what is pushed for a slow call behind a jump is popped before both paths meet. `test` writes no register. */
static void pushes_for_a_call_are_balanced(void **state)
{
	PUT(LEAF, "\xc3");
	put_call(IN_MID);
	/* test $15,%esp; je over; sub $8,%rsp; call; pop rax; over: ... */
	PUT(IN_MID, "\xf7\xc4\x0f\x00\x00\x00\x74\x0b\x48\x83\xec\x08\xe8\x00\x00\x00\x00\x58\x90\x48\x83\xc4\x08\x5d\xc3");
	put_main();
	stack[10] = IN_MID;
	stack[12] = word_at(40);
	stack[13] = IN_MAIN;
	walk_from(LEAF, word_at(10), word_at(30));
	CHECK(SONDE_STOP_COMPLETE, IN_MID, IN_MAIN, IN_BEGIN);
}

/* As HotSpot's: the function's end precedes the slow path, which jumps back into the loop. The loop is left backwards. */
static void ends_that_stand_before(void **state)
{
	PUT(LEAF, "\xc3");
	put_call(IN_MID);
	PUT(IN_MID - 0x20, "\x48\x83\xc4\x08\x5d\xc3");			  /* add $8,%rsp; pop rbp; ret */
	PUT(IN_MID - 0x10, "\xff\xc0\x3b\xc1\x7d\xea\x85\xc0\x75\xf6\xeb\xf4"); /* inc; cmp; jge to the end; test; jne, jmp to the start */
	PUT(IN_MID - 2, "\xff\xd0\x90\xeb\xed");				  /* call; nop; jmp to the loop */
	put_main();
	stack[10] = IN_MID;
	stack[12] = word_at(40);
	stack[13] = IN_MAIN;
	walk_from(LEAF, word_at(10), word_at(30));
	CHECK(SONDE_STOP_COMPLETE, IN_MID, IN_MAIN, IN_BEGIN);
}

/* A return address that is popped and jumped to. As HotSpot's: to the handler of an exception, with the return address in rdx. */
static void popped_return_addresses(void **state)
{
	put_main();
	stack[11] = IN_MAIN;
	PUT(LEAF, "\x48\x83\xc4\x08\x59\xff\xe1"); /* add $8,%rsp; pop rcx; jmp *%rcx */
	walk_from(LEAF, word_at(10), word_at(40));
	CHECK(SONDE_STOP_COMPLETE, IN_MAIN, IN_BEGIN);
	PUT(LEAF, "\x48\x83\xc4\x08\x5a\x48\x89\xc1\xff\xe3"); /* add $8,%rsp; pop rdx; mov %rax,%rcx; jmp *%rbx */
	walk_from(LEAF, word_at(10), word_at(40));
	check_(SONDE_STOP_NO_ROW, NULL, 0);
	w.emulation.returns_in_dx = 1;
	walk_from(LEAF, word_at(10), word_at(40));
	CHECK(SONDE_STOP_COMPLETE, IN_MAIN, IN_BEGIN);
	PUT(LEAF, "\x48\x83\xc4\x08\x5a\x50\xff\xe3"); /* push %rax before the jump */
	walk_from(LEAF, word_at(10), word_at(40));
	check_(SONDE_STOP_NO_ROW, NULL, 0);
}

/* A function that ends in a jump to another: at the other's start the frame is gone. */
static void jumps_to_another_function(void **state)
{
	PUT(LEAF, "\xc3");
	put_call(IN_MID);
	PUT(IN_MID, "\x48\x83\xc4\x08\x5d\xeb\x09"); /* add $8,%rsp; pop rbp; jmp IN_MID + 0x10 */
	PUT(IN_MID + 0x10, "\x55\xff\xd0\x5d\xc3");   /* push rbp; call; pop rbp; ret */
	put_main();
	stack[10] = IN_MID;
	stack[12] = word_at(40);
	stack[13] = IN_MAIN;
	walk_from(LEAF, word_at(10), word_at(30));
	CHECK(SONDE_STOP_COMPLETE, IN_MID, IN_MAIN, IN_BEGIN);
}

static void walk_on(uint64_t pc, uint64_t sp, uint64_t bp)
{
	w.pc = pc;
	w.sp = sp;
	w.bp = bp;
	host_walk(&w, frames);
}

/* Code that is rewritten in place has another frame, although its first instructions are the same. So does a function behind it that it
 * jumps to. */
static void code_that_changes(void **state)
{
	PUT(LEAF, "\xc3");
	put_call(IN_MID);
	PUT(IN_MID, "\x90\x48\x83\xc4\x08\x5d\xc3"); /* nop; add $8,%rsp; pop rbp; ret */
	put_main();
	put_call(IN_OUTER);
	PUT(IN_OUTER, "\xc9\xc3");
	stack[10] = IN_MID;
	stack[12] = word_at(40);
	stack[13] = IN_MAIN;
	stack[14] = word_at(20);
	stack[15] = IN_OUTER;
	stack[20] = word_at(40);
	stack[21] = IN_MAIN;
	walk_from(LEAF, word_at(10), word_at(30));
	CHECK(SONDE_STOP_COMPLETE, IN_MID, IN_MAIN, IN_BEGIN);
	code[IN_MID - CODE_PC + 4] = 0x18;
	walk_on(LEAF, word_at(10), word_at(30));
	CHECK(SONDE_STOP_COMPLETE, IN_MID, IN_OUTER, IN_MAIN, IN_BEGIN);
	PUT(IN_MID, "\xeb\x7e"); /* jmp IN_MID + 0x80 */
	PUT(IN_MID + 0x80, "\x48\x83\xc4\x08\x5d\xc3");
	walk_on(LEAF, word_at(10), word_at(30));
	CHECK(SONDE_STOP_COMPLETE, IN_MID, IN_MAIN, IN_BEGIN);
	code[IN_MID - CODE_PC + 0x83] = 0x18;
	walk_on(LEAF, word_at(10), word_at(30));
	CHECK(SONDE_STOP_COMPLETE, IN_MID, IN_OUTER, IN_MAIN, IN_BEGIN);
}

/* A return address is not valid any more once no call precedes it. */
static void call_that_goes(void **state)
{
	PUT(LEAF, "\xf4");
	put_main();
	stack[30] = word_at(40);
	stack[31] = IN_MAIN;
	walk_from(LEAF, word_at(10), word_at(30));
	CHECK(SONDE_STOP_COMPLETE, IN_MAIN, IN_BEGIN);
	PUT(IN_MAIN - 2, "\x90\x90");
	walk_on(LEAF, word_at(10), word_at(30));
	assert_int_equal(w.stop, SONDE_STOP_NO_ROW);
	assert_int_equal(w.nr_frames, 1);
}

/* The stack must agree with the code, else the walk ends. */
static void no_return_address_where_the_code_has_it(void **state)
{
	PUT(LEAF, "\xc3");
	put_call(IN_MID);
	PUT(IN_MID, "\x48\x83\xc4\x08\xc3");
	put_main();
	stack[10] = IN_MID;
	stack[12] = 0x1234;
	stack[40] = word_at(50); /* a valid frame pointer, but not this function's */
	walk_from(LEAF, word_at(10), word_at(40));
	CHECK(SONDE_STOP_NO_ROW, IN_MID);
	stack[12] = IN_OUTER; /* in the code, but no call precedes it */
	walk_from(LEAF, word_at(10), word_at(40));
	CHECK(SONDE_STOP_NO_ROW, IN_MID);
}

/* Behind a frame pointer of code that has aligned its stack, sp is unknown: the word below is a copy of its return address. */
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

/* For code that cannot be followed the frame pointer decides, unless a word below it may be a return address. */
static void what_is_not_understood_proves_nothing(void **state)
{
	static const char *const codes[] = {
		"\xf4",
		"\xff\xe0",
		"\x0f\x0b",
		"\x48\x83\xe4\xf0\x48\x83\xc4\x08\xc3",
		"\x48\x89\xc4\xc3",
		"\x48\x89\xc5\x48\x83\xc4\x08\xc3",
		"\x50\x48\x83\xc4\x10\xc3",
		"\x48\x83\xc4\x08\xc2\x08",
		"\xeb\xfe",
		"\xca\x08",
		"\x5c\xc3",
		"\x48\x83\xc4\x04\xc3",
		"\x48\x83\xc4\x08\xff\xe6",
		"\x5b\xff\x24\xc5\x01\x01\x01\x01",
		"\xc4\xe2\xb8\xf5\xe8\x48\x83\xc4\x08\xc3",
		"\xc4\xe2\xd3\xf6\xc0\x48\x83\xc4\x08\xc3",
		"\xc4\xe2\xd0\xf3\xc8\x48\x83\xc4\x08\xc3",
		"\xc4\xe3\xfb\xf0\xe8\x05\x48\x83\xc4\x08\xc3",
		"\xc5\xf9\x7e\xc5\x48\x83\xc4\x08\xc3",
		"\xc4\xe3\x79\x16\xc5\x01\x48\x83\xc4\x08\xc3",
		"\xc5\xfb\x93\xe9\x48\x83\xc4\x08\xc3"
	}; /* add $8,%rsp; jmp *%rsi: however much it raised sp; pop %rbx; jmp *table(,%rax,8); rbp is written by bzhi, mulx, blsr,
	      * rorx, vmovd, vpextrd and kmovd */

	put_main();
	PUT(LEAF, "\xc3");
	put_call(IN_MID);
	put_call(IN_OUTER);
	stack[10] = IN_MID;
	stack[30] = word_at(40);
	stack[31] = IN_MAIN;
	for (uint32_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		memset(code + (IN_MID - CODE_PC), 0xcc, 32);
		put(IN_MID, codes[i], strlen(codes[i]));
		stack[12] = 0;
		walk_from(LEAF, word_at(10), word_at(30));
		CHECK(SONDE_STOP_COMPLETE, IN_MID, IN_MAIN, IN_BEGIN);
		stack[12] = IN_OUTER;
		walk_from(LEAF, word_at(10), word_at(30));
		CHECK(SONDE_STOP_NO_ROW, IN_MID);
	}
}

/* As V8 drops its arguments: sp is unknown then, but the return address was popped and is pushed again. */
static void arguments_are_dropped(void **state)
{
	static const struct {
		const char *code;
		bool is_proof;
	} rows[] = {
		{ "\xc9\x59\x48\x01\xdc\x51\xc3", true }, /* leave; pop %rcx; add %rbx,%rsp; push %rcx; ret */
		{ "\x48\x8b\xe5\x5d\x41\x5a\x4a\x8d\x64\xd4\x08\x41\x52\xc3",
		  true }, /* mov %rbp,%rsp; pop %rbp; pop %r10; lea 8(%rsp,%r10,8),%rsp; push %r10; ret */
		{ "\xc9\x59\x48\x01\xdc\x48\x89\xc1\x51\xc3", false },	   /* mov %rax,%rcx before the push */
		{ "\xc9\x59\x48\x01\xdc\x41\x51\xc3", false },		   /* push %r9 */
		{ "\xc9\x59\x48\x01\xdc\x51\x90\x48\x01\xdc\xc3", false }, /* add %rbx,%rsp before the ret */
	};

	put_main();
	PUT(LEAF, "\xc3");
	put_call(IN_MID);
	put_call(IN_OUTER);
	stack[10] = IN_MID;
	stack[12] = IN_OUTER;
	stack[30] = word_at(40);
	stack[31] = IN_MAIN;
	for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		memset(code + (IN_MID - CODE_PC), 0xcc, 32);
		put(IN_MID, rows[i].code, strlen(rows[i].code));
		walk_from(LEAF, word_at(10), word_at(30));
		if (rows[i].is_proof)
			CHECK(SONDE_STOP_COMPLETE, IN_MID, IN_MAIN, IN_BEGIN);
		else
			CHECK(SONDE_STOP_NO_ROW, IN_MID);
	}
}

/* As V8's bytecode handlers: they take the caller's rbp from where rbp points, then release the frame and jump to another handler. Code
 * that uses rbp for something else does the same in following a list, but then rbp does not point at the end of the frame. */
static void handlers_that_jump_on(void **state)
{
	PUT(LEAF, "\x48\x8b\x6d\x00\x49\x89\xc4\x48\x83\xc4\x48\xff\xe1"); /* mov (%rbp),%rbp; mov %rax,%r12; add $72,%rsp; jmp *%rcx */
	put_main();
	put_call(IN_MID);
	put_call(IN_OUTER);
	PUT(IN_MID, "\xc9\xc3");
	stack[12] = IN_OUTER; /* left by an earlier call */
	stack[18] = word_at(30);
	stack[19] = IN_MID;
	stack[30] = word_at(40);
	stack[31] = IN_MAIN;
	walk_from(LEAF, word_at(10), word_at(18));
	CHECK(SONDE_STOP_COMPLETE, IN_MID, IN_MAIN, IN_BEGIN);
	walk_from(LEAF, word_at(10), word_at(30));
	assert_int_equal(w.stop, SONDE_STOP_NO_ROW);
	assert_int_equal(w.nr_frames, 1);
}

/* As V8's large functions: more exits than can be kept, most of them to deoptimizations far behind. The nearest ones lead on. */
static void many_exits(void **state)
{
	uint8_t jump[] = { 0x0f, 0x85, 0, 0, 0, 0 }; /* jne */
	uint64_t pc = IN_OUTER, room = CODE_PC + 0x1000;

	put_main();
	PUT(LEAF, "\xc3");
	put_call(IN_OUTER);
	stack[10] = IN_OUTER;
	stack[12] = CODE_PC + 0x180; /* left by an earlier call */
	put_call(CODE_PC + 0x180);
	stack[30] = word_at(40);
	stack[31] = CODE_PC + 0x1f00;
	put_call(CODE_PC + 0x1f00);
	PUT(CODE_PC + 0x1f00, "\xf4");
	for (uint32_t i = 0; i < 3 * EMULATE_EXITS; i++, pc += sizeof(jump)) {
		jump[2] = (uint8_t)(room + 8 * i - pc - sizeof(jump));
		jump[3] = (uint8_t)((room + 8 * i - pc - sizeof(jump)) >> 8);
		put(pc, (const char *)jump, sizeof(jump));
	}
	PUT(pc, "\x74\x02\xeb\xfe\xc9\xc3"); /* je over; jmp to itself; over: leave; ret */
	walk_from(LEAF, word_at(10), word_at(30));
	CHECK(SONDE_STOP_COMPLETE, IN_OUTER, CODE_PC + 0x1f00, IN_BEGIN);
}

/* The code far away that it jumps to is remembered with it, and checked when it is needed again. */
static void code_that_changes_far_away(void **state)
{
	static const uint8_t jump[] = { 0xe9, 0xfb, 0x1b, 0, 0 };

	PUT(LEAF, "\xc3");
	put_call(IN_MID);
	put(IN_MID, (const char *)jump, sizeof(jump)); /* jmp IN_MID + 0x1c00 */
	PUT(IN_MID + 0x1c00, "\x48\x83\xc4\x08\x5d\xc3");
	put_main();
	put_call(IN_OUTER);
	PUT(IN_OUTER, "\xc9\xc3");
	stack[10] = IN_MID;
	stack[12] = word_at(40);
	stack[13] = IN_MAIN;
	stack[14] = word_at(20);
	stack[15] = IN_OUTER;
	stack[20] = word_at(40);
	stack[21] = IN_MAIN;
	walk_from(LEAF, word_at(10), word_at(30));
	CHECK(SONDE_STOP_COMPLETE, IN_MID, IN_MAIN, IN_BEGIN);
	assert_true(w.nr_looks <= 10); /* lines: the result is remembered */
	code[IN_MID - CODE_PC + 0x1c03] = 0x18;
	walk_on(LEAF, word_at(10), word_at(30));
	CHECK(SONDE_STOP_COMPLETE, IN_MID, IN_OUTER, IN_MAIN, IN_BEGIN);
}

/* The lengths of the instructions in between. A wrong length would show a ret or hide it. */
static void lengths_of_instructions(void **state)
{
	static const struct {
		const char *bytes;
		uint8_t size;
	} rows[] = {
		{ "\x48\xb8\xc3\xc3\xc3\xc3\xc3\xc3\xc3\xc3", 10 }, /* movabs */
		{ "\xb8\xc3\xc3\xc3\xc3", 5 },
		{ "\x66\xb8\xc3\xc3", 4 },
		{ "\xf2\x0f\x58\xc3", 4 },		   /* addsd */
		{ "\xc5\xf3\x58\xc3", 4 },		   /* vaddsd */
		{ "\xc4\xc1\xf9\x6e\xc3", 5 },		   /* vmovq */
		{ "\x62\xf1\x7c\x48\x58\xc3", 6 },	   /* vaddps zmm */
		{ "\x48\x8b\x84\x24\xc3\xc3\x00\x00", 8 }, /* mov disp32(%rsp) */
		{ "\x48\x8b\x05\xc3\xc3\xc3\xc3", 7 },	   /* mov disp32(%rip) */
		{ "\x8b\x04\x85\xc3\xc3\xc3\xc3", 7 },	   /* mov disp32(,%rax,4) */
		{ "\x69\xc0\xc3\xc3\xc3\xc3", 6 },	   /* imul imm32 */
		{ "\x6b\xc0\xc3", 3 },
		{ "\xf6\xc1\xc3", 3 }, /* test imm8 */
		{ "\xf7\xc1\xc3\xc3\xc3\xc3", 6 },
		{ "\xf7\xd0", 2 },				    /* not: has no immediate */
		{ "\x66\xc7\x00\xc3\xc3", 5 },			    /* movw */
		{ "\x66\x0f\x3a\x0f\xc1\xc3", 6 },		    /* palignr */
		{ "\x66\x0f\x38\x00\xc3", 5 },			    /* pshufb */
		{ "\x0f\xba\xe0\xc3", 4 },			    /* bt imm8 */
		{ "\x0f\x85\xc3\xc3\x00\x00", 6 },		    /* jne */
		{ "\x66\x2e\x0f\x1f\x84\x00\xc3\xc3\xc3\xc3", 10 }, /* nopw */
		{ "\xe8\xc3\xc3\xc3\xc3", 5 },			    /* call */
		{ "\x41\xff\x55\xc3", 4 },			    /* call disp8(%r13) */
		{ "\x49\x3b\xa7\xc3\xc3\x00\x00", 7 },		    /* cmp disp32(%r15),%rsp */
		{ "\xd9\xc3", 2 },				    /* fld */
		{ "\xa8\xc3", 2 },
		{ "\xa9\xc3\xc3\xc3\xc3", 5 },
		{ "\xc0\xe0\xc3", 3 },
		{ "\x80\xf9\xc3", 3 },
		{ "\x0c\xc3", 2 },
		{ "\x0d\xc3\xc3\xc3\xc3", 5 },
		{ "\x0f\xc8", 2 },
		{ "\x0f\xb6\xc3", 3 },
		{ "\xc5\xf8\x77", 3 },
		{ "\xf3\xab", 2 },
		{ "\xf6\xd0", 2 },
		{ "\x0f\xae\xe8", 3 },
		{ "\x64\x48\x8b\x04\x25\xc3\xc3\x00\x00", 9 },
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

/* Code without a frame pointer that cannot be followed, called from a function with one. Its rbp may be a number, or point to zeros. */
static void zeros_that_are_no_root(void **state)
{
	put_main();
	PUT(LEAF, "\xc9\xc3"); /* leave; ret */
	put_call(IN_MID);
	PUT(IN_MID, "\x50\x58\x48\x83\xc4\x08\x5d\xc3"); /* push rax; pop rax: behind a call that cannot be followed */
	stack[20] = 0;
	stack[21] = IN_MID;
	walk_from(LEAF, word_at(10), word_at(20));
	CHECK(SONDE_STOP_NO_ROW, IN_MID);
	stack[20] = word_at(30);
	walk_from(LEAF, word_at(10), word_at(20));
	CHECK(SONDE_STOP_NO_ROW, IN_MID);
	PUT(IN_MID, "\xc9\xc3"); /* this one does lead to a return address: 0 */
	walk_from(LEAF, word_at(10), word_at(20));
	CHECK(SONDE_STOP_COMPLETE, IN_MID);
}

/* Its rbp leads to a return address in readable code, which may be an older function's. */
static void code_that_cannot_be_read(void **state)
{
	put_main();
	PUT(LEAF, "\xc9\xc3"); /* leave; ret */
	walk_from(LEAF, word_at(10), word_at(40));
	CHECK(SONDE_STOP_COMPLETE, IN_BEGIN);
	unreadable_bytes = IN_MAIN - CODE_PC;
	walk_from(LEAF, word_at(10), word_at(40));
	check_(SONDE_STOP_NO_ROW, NULL, 0);
	put_call(IN_MID);
	stack[40] = word_at(42);
	stack[41] = IN_MAIN;
	stack[43] = IN_BEGIN;
	walk_from(IN_MID, word_at(10), word_at(40));
	check_(SONDE_STOP_NO_ROW, NULL, 0);
}

/* Functions without end, each FUNCTION_BYTES of no-operations followed by `add $8,%rsp; ret`. Each is called by the one behind it. Gives
 * the return address of frame number i. */
#define MANY_PC        0x10000000ULL
#define FUNCTION_BYTES 512ULL
#define NR_MANY	       SONDE_MAX_WALKED_FRAMES
static bool is_recursion; /* in a function that calls itself */

static uint64_t many_pc(uint64_t i)
{
	return MANY_PC + (is_recursion ? 0 : i * FUNCTION_BYTES) + 140;
}

static long read_many(void *to, __u32 size, __u64 from)
{
	static const uint8_t call[] = { 0xff, 0xd0 }, end[] = { 0x48, 0x83, 0xc4, 0x08, 0xc3 };

	if (from >= MANY_PC && from - MANY_PC < (NR_MANY + 1) * FUNCTION_BYTES) {
		uint8_t *bytes = to;

		nr_reads++;
		for (__u32 i = 0; i < size; i++) {
			uint64_t off = (from + i) % FUNCTION_BYTES;

			bytes[i] = off - 138 < sizeof(call) ? call[off - 138] : off - 490 < sizeof(end) ? end[off - 490] : 0x90;
		}
		return 0;
	}
	if (from < STACK_START || from - STACK_START >= NR_MANY * 16)
		return -14;
	for (__u32 i = 0; i < size / 8; i++) { /* a local variable and a return address each */
		uint64_t word = (from - STACK_START) / 8 + i;

		((uint64_t *)to)[i] = word & 1 ? many_pc(word / 2 + 1) : 0;
	}
	return 0;
}

static void walk_many_frames(bool recursion)
{
	struct sonde_mapping file = { .start_pc = MANY_PC, .end_pc = MANY_PC + (NR_MANY + 1) * FUNCTION_BYTES, .base_pc = MANY_PC };

	is_recursion = recursion;
	host_read = read_many;
	host_process(&w, &file, 1);
	w.pc = many_pc(0);
	w.sp = STACK_START;
	nr_reads = 0;
	host_walk(&w, frames);
}

/* A cheap walk never reads the clock. A costly one reads it again and again; its time starts at the event. */
static void walks_have_their_time(void **state)
{
	w.event_ns = 1000;
	w.clock_cost = WALK_CLOCK_COST;
	w.nr_reads = 0;
	w.nr_looks = WALK_CLOCK_COST - 1;
	assert_false(walk_asks_clock(&w));
	for (uint32_t i = 0; i < 8; i++) {
		w.nr_looks += i % 2 ? 0 : WALK_CLOCK_COST / 2;
		w.nr_reads += i % 2 ? WALK_CLOCK_COST / 2 / WALK_READ_LOOKS : 0;
		assert_true(walk_asks_clock(&w));
		assert_false(walk_is_late(&w, 1000 + i * (WALK_MAX_NS / 8), WALK_MAX_NS));
		assert_false(walk_asks_clock(&w));
	}
	assert_false(walk_is_late(&w, 1000 + WALK_MAX_NS, WALK_MAX_NS));
	assert_true(walk_is_late(&w, 1001 + WALK_MAX_NS, WALK_MAX_NS));
}

/* However deep a stack whose every frame needs a search of the code, the walk ends and reports it. */
static void walks_have_a_budget(void **state)
{
	for (int again = 0; again < 2; again++) {
		walk_many_frames(false);
		assert_int_equal(w.stop, SONDE_STOP_TOO_LONG);
		assert_in_range(w.nr_frames, WALK_MAX_LOOKS / 400, NR_MANY / 20);
		assert_in_range(nr_reads, WALK_MAX_LOOKS, WALK_MAX_LOOKS * 5 / 4);
		for (uint32_t i = 1; i < SONDE_LEAF_FRAMES && i < w.nr_frames; i++)
			assert_int_equal(frames[i], many_pc(i) | SONDE_FRAME_RETURN);
	}
}

/* A result from code is verified once in a walk, so recursion does not use up the budget. */
static void recursion_is_looked_for_once(void **state)
{
	walk_many_frames(true);
	assert_int_equal(w.stop, SONDE_STOP_DEPTH);
	assert_int_equal(w.nr_frames, NR_MANY);
	assert_true(w.nr_looks < 1000);
	walk_many_frames(true);
	assert_int_equal(w.stop, SONDE_STOP_DEPTH);
	assert_int_equal(w.nr_frames, NR_MANY);
	assert_true(w.nr_looks < 10); /* of lines */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(frames_without_a_frame_pointer, set_up),
		cmocka_unit_test_setup(rbp_that_is_no_frame_pointer, set_up),
		cmocka_unit_test_setup(prologue_and_epilogue, set_up),
		cmocka_unit_test_setup(vector_instructions_keep_rbp, set_up),
		cmocka_unit_test_setup(loops_are_left_by_their_nearest_exit, set_up),
		cmocka_unit_test_setup(pushes_for_a_call_are_balanced, set_up),
		cmocka_unit_test_setup(ends_that_stand_before, set_up),
		cmocka_unit_test_setup(popped_return_addresses, set_up),
		cmocka_unit_test_setup(jumps_to_another_function, set_up),
		cmocka_unit_test_setup(code_that_changes, set_up),
		cmocka_unit_test_setup(call_that_goes, set_up),
		cmocka_unit_test_setup(no_return_address_where_the_code_has_it, set_up),
		cmocka_unit_test_setup(copy_of_a_return_address, set_up),
		cmocka_unit_test_setup(what_is_not_understood_proves_nothing, set_up),
		cmocka_unit_test_setup(arguments_are_dropped, set_up),
		cmocka_unit_test_setup(handlers_that_jump_on, set_up),
		cmocka_unit_test_setup(many_exits, set_up),
		cmocka_unit_test_setup(code_that_changes_far_away, set_up),
		cmocka_unit_test_setup(lengths_of_instructions, set_up),
		cmocka_unit_test_setup(zeros_that_are_no_root, set_up),
		cmocka_unit_test_setup(code_that_cannot_be_read, set_up),
		cmocka_unit_test_setup(walks_have_their_time, set_up),
		cmocka_unit_test_setup(walks_have_a_budget, set_up),
		cmocka_unit_test_setup(recursion_is_looked_for_once, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
