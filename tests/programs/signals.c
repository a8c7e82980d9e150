// SPDX-License-Identifier: Apache-2.0
/* signals SECONDS: main > outer > trigger, interrupted by a signal on an undefined instruction, > (the signal frame) > handler >
 * handler_leaf. The interrupted instruction is the function's first after the entry. An unwinder that takes its address for a return
 * address looks up pc - 1 and gets the wrong function. The printed chain leaves the signal frame out. */
#include "known.h"

static volatile unsigned long sink;

KNOWN static unsigned long handler_leaf(void)
{
	ENTER();
	known_print();
	known_ready();
	return known_spin();
}

static void handler(int signo)
{
	(void)signo;
	ENTER();
	sink = handler_leaf();
	_exit(0);
}

/* In assembly, so that the trapping instruction is the very first: pc - 1 belongs to another function. */
__asm__(".text\n.p2align 4\n.type trigger,@function\ntrigger:\n.cfi_startproc\nud2\nret\n.cfi_endproc\n.size trigger,.-trigger\n");
void trigger(void);

KNOWN static unsigned long outer(unsigned long n)
{
	volatile char room[65];

	ENTER();
	room[n % sizeof(room)] = 1;
	known_enter("trigger");
	trigger();
	return n + (unsigned)room[n % sizeof(room)];
}

int main(int argc, char **argv)
{
	ENTER();
	known_start(argv[1]);
	signal(SIGILL, handler);
	sink = outer((unsigned long)argc);
	return 0;
}
