// SPDX-License-Identifier: Apache-2.0
/* The kernel side's walk on real stacks of this program, with its tables, those of the C library, and the registers passed to a signal
 * handler. Oracles: return addresses that the functions recorded themselves, and glibc's backtrace(). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>
#include <unistd.h>

#include "host_tables.h"

#define MAX_NOTED 256

static struct walk w;
static __u64 frames[SONDE_MAX_USER_FRAMES];
static uint64_t noted[MAX_NOTED]; /* return addresses, outermost first */
static uint32_t nr_noted;
static void *witness[512];        /* backtrace()'s result in the handler */
static int nr_witness;
static bool from_handler;         /* walk from the handler itself, through the signal frame */
static uint32_t nr_walks;
static volatile int keep;         /* written after calls, so that they are not tail calls */

static long read_own(void *to, __u32 size, __u64 from)
{
	return host_read_process(getpid(), to, size, from);
}

/* --- tables of what is mapped here --------------------------------------------------------------------------------------------------- */

static struct host_tables tables;

static int set_up(void **state)
{
	host_tables_load(&tables, &w, getpid(), NULL);
	host_read = read_own;
	backtrace(witness, 8); /* loads libgcc_s before a handler needs it */
	return 0;
}

static int tear_down(void **state)
{
	host_tables_free(&tables);
	return 0;
}

/* --- the handler --------------------------------------------------------------------------------------------------------------------- */

static void enter_registers(const ucontext_t *context)
{
	static const uint8_t numbers[16] = { REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP,
					     REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15 };

	for (int i = 0; i < 16; i++)
		w.regs[i] = (uint64_t)context->uc_mcontext.gregs[numbers[i]];
	w.pc = (uint64_t)context->uc_mcontext.gregs[REG_RIP];
	w.sp = w.regs[WALK_REG_SP];
	w.bp = w.regs[WALK_REG_BP];
}

static void on_signal(int number, siginfo_t *info, void *context)
{
	ucontext_t own;

	nr_walks++;
	nr_witness = backtrace(witness, ARRAY_SIZE(witness));
	if (from_handler) {
		getcontext(&own);
		enter_registers(&own);
	} else {
		enter_registers(context);
	}
	host_walk(&w, frames);
}

static uint64_t pc_of(uint32_t frame)
{
	return frames[frame] & ~SONDE_FRAME_RETURN;
}

/* The walk's frames from `first` on equal backtrace()'s from `skip` on, up to the root. ASan's backtrace() has a frame of its own. */
static void check_witness(uint32_t first, uint32_t skip)
{
	uint32_t nr = w.nr_frames - first, skipped = (uint32_t)nr_witness - nr;

	assert_int_equal(w.stop, SONDE_STOP_COMPLETE);
	assert_in_range(skipped, skip, skip + 1);
	for (uint32_t i = 0; i < nr; i++)
		assert_int_equal(pc_of(first + i), (uintptr_t)witness[skipped + i]);
}

/* All recorded return addresses follow each other in the walk, innermost first. */
static void check_noted(void)
{
	uint32_t at = 0;

	while (at < w.nr_frames && pc_of(at) != noted[nr_noted - 1])
		at++;
	assert_true(at + nr_noted <= w.nr_frames);
	for (uint32_t i = 0; i < nr_noted; i++) {
		assert_int_equal(pc_of(at + i), noted[nr_noted - 1 - i]);
		assert_true(frames[at + i] & SONDE_FRAME_RETURN);
	}
}

static bool has_frame(uint64_t pc)
{
	for (uint32_t i = 0; i < w.nr_frames; i++) {
		if (pc_of(i) == pc)
			return true;
	}
	return false;
}

static void take_signals(bool handler_too)
{
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };

	from_handler = handler_too;
	nr_noted = 0;
	nr_walks = 0;
	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
}

#define NOTE() (noted[nr_noted++] = (uintptr_t)__builtin_return_address(0))

/* --- functions with stacks of their own ----------------------------------------------------------------------------------------------- */

__attribute__((noinline)) static int leaf(int depth)
{
	NOTE();
	raise(SIGUSR1);
	return depth + keep;
}

static int (*volatile next[3])(int depth);

__attribute__((noinline)) static int plain(int depth)
{
	NOTE();
	keep = depth ? next[depth % 3](depth - 1) : leaf(depth);
	return keep + 1;
}

/* The frame's size is known only at run time: needs rbp. */
__attribute__((noinline)) static int with_alloca(int depth)
{
	volatile char *room = __builtin_alloca((size_t)(depth % 100) + 1);

	NOTE();
	room[0] = 1;
	keep = depth ? next[depth % 3](depth - 1) : leaf(depth);
	return keep + room[0];
}

/* More alignment than the ABI gives: the stack is realigned (DRAP or rbp). */
__attribute__((noinline)) static int realigned(int depth)
{
	volatile char room[64] __attribute__((aligned(64)));

	NOTE();
	room[depth & 63] = 1;
	keep = depth ? next[depth % 3](depth - 1) : leaf(depth);
	return keep + room[depth & 63];
}

static void test_own_functions(void **state)
{
	take_signals(false);
	next[0] = plain;
	next[1] = with_alloca;
	next[2] = realigned;
	for (int depth = 0; depth < 120; depth += 17) {
		nr_noted = 0;
		plain(depth);
		assert_int_equal(nr_noted, depth + 2);
		check_noted();
		check_witness(0, 2); /* the first two are the handler and the restorer */
	}
}

static void test_through_the_signal_frame(void **state)
{
	take_signals(true);
	next[0] = next[1] = next[2] = plain;
	plain(20);
	check_noted();
	check_witness(1, 1); /* the two stop at different instructions of the handler */
	assert_false(frames[2] & SONDE_FRAME_RETURN); /* handler, restorer, interrupted code */
}

static int compare(const void *a, const void *b)
{
	NOTE();
	if (nr_walks < 3)
		raise(SIGUSR1);
	nr_noted--;
	return *(const int *)a - *(const int *)b;
}

__attribute__((noinline)) static void sort(int *values, size_t nr)
{
	NOTE();
	qsort(values, nr, sizeof(*values), compare);
	keep = values[0];
}

/* From the program into the C library and back into the program. */
static void test_qsort_callback(void **state)
{
	int values[] = { 5, 3, 9, 1, 7, 2 };

	take_signals(false);
	sort(values, ARRAY_SIZE(values));
	assert_int_equal(values[0], 1);
	assert_int_equal(nr_walks, 3);
	check_witness(0, 2);
	assert_true(has_frame(noted[0]));
}

/* Walks at every instruction of a function, with prologue and epilogue: single steps by the trap flag. */
static uint32_t nr_steps, nr_good, nr_by_bx;

static void on_trap(int number, siginfo_t *info, void *context)
{
	nr_steps++;
	enter_registers(context);
	host_walk(&w, frames);
	nr_good += w.stop == SONDE_STOP_COMPLETE && has_frame(noted[0]);
	nr_by_bx += w.follows_bx == WALK_BX_KNOWN;
}

__attribute__((noinline)) static int stepped(int depth)
{
	NOTE();
	__asm__ volatile("pushfq\n\torq $0x100, (%%rsp)\n\tpopfq" ::: "memory", "cc");
	keep = with_alloca(depth) + realigned(depth);
	__asm__ volatile("pushfq\n\tandq $~0x100, (%%rsp)\n\tpopfq" ::: "memory", "cc");
	return keep;
}

static int no_leaf(int depth)
{
	return depth;
}

static void take_traps(void)
{
	struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };

	assert_int_equal(sigaction(SIGTRAP, &action, NULL), 0);
	nr_noted = nr_steps = nr_good = nr_by_bx = 0;
}

static void test_every_instruction(void **state)
{
	take_traps();
	next[0] = next[1] = next[2] = no_leaf;
	stepped(1);
	signal(SIGTRAP, SIG_DFL);
	assert_true(nr_steps > 20);
	/* the last two steps: the asm statement's own pushes and pops move the stack, and the table does not know */
	assert_true(nr_steps - nr_good <= 2);
}

__attribute__((noinline)) static long calls_lazily(const char *text)
{
	long value;

	NOTE();
	__asm__ volatile("pushfq\n\torq $0x100, (%%rsp)\n\tpopfq" ::: "memory", "cc");
	value = a64l(text);
	__asm__ volatile("pushfq\n\tandq $~0x100, (%%rsp)\n\tpopfq" ::: "memory", "cc");
	return value;
}

/* Through the PLT into the dynamic linker, whose _dl_runtime_resolve keeps its CFA in rbx. */
static void test_lazy_binding(void **state)
{
	take_traps();
	assert_int_equal(calls_lazily("/"), 1);
	signal(SIGTRAP, SIG_DFL);
	assert_true(nr_by_bx > 100);
	assert_true(nr_steps > nr_by_bx);
	assert_true(nr_steps - nr_good <= 2); /* as above */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_functions),
		cmocka_unit_test(test_through_the_signal_frame),
		cmocka_unit_test(test_qsort_callback),
		cmocka_unit_test(test_every_instruction),
		cmocka_unit_test(test_lazy_binding),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
