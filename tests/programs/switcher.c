// SPDX-License-Identifier: Apache-2.0
/* switcher SECONDS: main > scheduler runs coroutines in turn. Their stacks are made by hand and differ in the return address of their
 * first function: 0 at the end of the pages, 0 elsewhere, code that ends the process, and the middle of a function, as a previous owner
 * of the stack may leave it. Each sets its own thread name and spins in its leaf. */
#include <sys/mman.h>

#include "known.h"

#define STACK_BYTES 65536
#define NR_COROUTINES 4
#define ROUNDS 20000000

static void *home, *contexts[NR_COROUTINES];
static volatile unsigned long sink;

/* Saves the callee-saved registers and sp, and continues where the other stack did the same. */
void switch_stacks(void **ret_from, void *to);
__asm__(".text\n.p2align 4\n.globl switch_stacks\n.type switch_stacks,@function\nswitch_stacks:\n.cfi_startproc\n"
	"push %rbp\n.cfi_adjust_cfa_offset 8\npush %rbx\n.cfi_adjust_cfa_offset 8\npush %r12\n.cfi_adjust_cfa_offset 8\npush "
	"%r13\n.cfi_adjust_cfa_offset 8\n"
	"push %r14\n.cfi_adjust_cfa_offset 8\npush %r15\n.cfi_adjust_cfa_offset 8\n"
	"mov %rsp,(%rdi)\nmov %rsi,%rsp\n"
	"pop %r15\n.cfi_adjust_cfa_offset -8\npop %r14\n.cfi_adjust_cfa_offset -8\npop %r13\n.cfi_adjust_cfa_offset -8\npop "
	"%r12\n.cfi_adjust_cfa_offset -8\n"
	"pop %rbx\n.cfi_adjust_cfa_offset -8\npop %rbp\n.cfi_adjust_cfa_offset -8\nret\n.cfi_endproc\n.size switch_stacks,.-switch_stacks\n"
	".p2align 4\n.globl leave_process\n.type leave_process,@function\nleave_process:\nxor %rdi,%rdi\ncall _exit@plt\nhlt\n.size "
	"leave_process,.-leave_process\n");
void leave_process(void);

static inline __attribute__((always_inline)) unsigned long spin(void)
{
	unsigned long state = 1;

	for (unsigned i = 0; i < ROUNDS && !known_done; i++) {
		state ^= state << 13;
		state ^= state >> 7;
		__asm__ volatile("" : "+r"(state));
	}
	return state;
}

KNOWN static unsigned long top_leaf(void) { return spin(); }
KNOWN static unsigned long low_leaf(void) { return spin(); }
KNOWN static unsigned long end_leaf(void) { return spin(); }
KNOWN static unsigned long midst_leaf(void) { return spin(); }

static void give_back(unsigned i)
{
	prctl(PR_SET_NAME, "scheduler");
	switch_stacks(&contexts[i], home);
}

static void top(void) { for (;;) { prctl(PR_SET_NAME, "top"); sink = top_leaf(); give_back(0); } }
static void low(void) { for (;;) { prctl(PR_SET_NAME, "low"); sink = low_leaf(); give_back(1); } }
static void end(void) { for (;;) { prctl(PR_SET_NAME, "end"); sink = end_leaf(); give_back(2); } }
static void midst(void) { for (;;) { prctl(PR_SET_NAME, "midst"); sink = midst_leaf(); give_back(3); } }

KNOWN static unsigned scheduler(void)
{
	unsigned nr = 0;

	ENTER();
	known_print();
	known_ready();
	for (; !known_done; nr++)
		switch_stacks(&home, contexts[nr % NR_COROUTINES]);
	return nr;
}

/* `ret` is that many words below the end of the pages. */
static int prepare(unsigned i, void (*body)(void), void *ret, unsigned nr_below)
{
	void **at = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return -1;
	at += STACK_BYTES / sizeof(*at) - nr_below;
	*at = ret;
	*--at = (void *)body;
	contexts[i] = at - 6;
	return 0;
}

int main(int argc, char **argv)
{
	ENTER();
	if (argc < 2 || prepare(0, top, NULL, 1) || prepare(1, low, NULL, 3) || prepare(2, end, (void *)leave_process, 1) ||
	    prepare(3, midst, (char *)scheduler + 9, 1))
		return 2;
	prctl(PR_SET_NAME, "scheduler");
	known_start(argv[1]);
	sink = scheduler();
	return 0;
}
