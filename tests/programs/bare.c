// SPDX-License-Identifier: Apache-2.0
/* bare SECONDS WHERE RBP: main > outer > bare_outer > bare_inner (> leaf). The two in the middle are assembly without call frame
 * information or a frame pointer. WHERE is the function that uses the time: `leaf`, which is C, or bare_spin, called by bare_inner. RBP
 * is the value of rbp there:
 *   zero      0, as in the outermost frame
 *   number    no address
 *   kept      the caller's value
 *   stale     the address of a frame above the caller's, as if it were the assembly's own */
#include <stdint.h>

#include "known.h"

static volatile unsigned long sink;

KNOWN static void leaf(void)
{
	known_enter("leaf");
	known_print();
	known_ready();
	sink = known_spin();
}

/* Declares bare_spin, which is assembly, for C callers. */
KNOWN static void announce(void)
{
	known_enter("bare_spin");
	known_print();
	known_ready();
}

void bare_outer(void (*next)(void), const volatile sig_atomic_t *done, const uintptr_t *rbp);
void bare_spin(void);
__asm__(".text\n"
	".p2align 4\n.type bare_spin,@function\nbare_spin:\n" /* done in r13 */
	"push %rax\npush %rbp\n1: pause\ncmpl $0, (%r13)\nje 1b\npop %rbp\npop %rax\nret\n.size bare_spin,.-bare_spin\n"
	".p2align 4\n.type bare_inner,@function\nbare_inner:\n" /* next in r12 */
	"push %rbx\nsub $48, %rsp\ncall *%r12\nadd $48, %rsp\npop %rbx\nret\n.size bare_inner,.-bare_inner\n"
	".p2align 4\n.globl bare_outer\n.type bare_outer,@function\nbare_outer:\n"
	"push %rbp\npush %r12\npush %r13\nsub $32, %rsp\nmov %rdi, %r12\nmov %rsi, %r13\ntest %rdx, %rdx\nje 2f\nmov (%rdx), %rbp\n"
	"2: call bare_inner\nadd $32, %rsp\npop %r13\npop %r12\npop %rbp\nret\n.size bare_outer,.-bare_outer\n");

KNOWN static unsigned outer(int in_leaf, const uintptr_t *rbp)
{
	volatile char room[65];

	ENTER();
	room[7] = 1;
	known_enter("bare_outer");
	known_enter("bare_inner");
	if (!in_leaf)
		announce();
	bare_outer(in_leaf ? leaf : bare_spin, &known_done, rbp);
	return (unsigned)room[7];
}

KNOWN static unsigned with_record(int in_leaf, const char *mode)
{
	/* What a frame pointer points to: the caller's frame pointer, then a return address behind a call of this program. */
	uintptr_t record[2] = {0, (uintptr_t)__builtin_return_address(0)}, rbp = 0;

	ENTER();
	if (!strcmp(mode, "number"))
		rbp = 0x123456789;
	else if (!strcmp(mode, "stale"))
		rbp = (uintptr_t)record;
	__asm__ volatile("" : : "r"(record) : "memory");
	return outer(in_leaf, strcmp(mode, "kept") ? &rbp : NULL) + (unsigned)record[0];
}

int main(int argc, char **argv)
{
	if (argc < 4)
		return 2;
	ENTER();
	known_start(argv[1]);
	sink = with_record(!strcmp(argv[2], "leaf"), argv[3]);
	return 0;
}
