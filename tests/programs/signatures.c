// SPDX-License-Identifier: Apache-2.0
/* signatures NR: at a line on standard input, calls functions of unlike signatures NR times, and passes USDT probes of many arguments and
 * of one that cannot be read. Then a function that is in progress on two stacks at once (coroutines), one that recurses 100 deep, and one
 * that is left by longjmp. What each gets and returns is in tests/system/verb_trace_truth.py. */
#include <complex.h>
#include <setjmp.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "known.h"

#define STACK_BYTES (256 << 10)
#define PAUSE_US    60000

struct large {
	long a, b, c;
};
enum sign { MINUS = -3, NONE, PLUS };

static volatile long sink;

/* As SystemTap's sys/sdt.h does it, without a semaphore. */
#define POINT(name, arguments, ...)                                                                                                       \
	__asm__ volatile("990: nop\n"                                                                                                      \
			 ".pushsection .note.stapsdt,\"\",\"note\"\n"                                                                     \
			 ".balign 4\n"                                                                                                     \
			 ".4byte 992f-991f, 994f-993f, 3\n"                                                                                \
			 "991: .asciz \"stapsdt\"\n"                                                                                      \
			 "992: .balign 4\n"                                                                                                \
			 "993: .8byte 990b, _.stapsdt.base, 0\n"                                                                           \
			 ".asciz \"signatures\"\n"                                                                                        \
			 ".asciz \"" name "\"\n"                                                                                          \
			 ".asciz \"" arguments "\"\n"                                                                                     \
			 "994: .balign 4\n"                                                                                                \
			 ".popsection\n"                                                                                                   \
			 ".ifndef _.stapsdt.base\n"                                                                                        \
			 ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"                                          \
			 ".weak _.stapsdt.base\n"                                                                                          \
			 ".hidden _.stapsdt.base\n"                                                                                        \
			 "_.stapsdt.base: .space 1\n"                                                                                      \
			 ".size _.stapsdt.base, 1\n"                                                                                       \
			 ".popsection\n"                                                                                                   \
			 ".endif\n" ::__VA_ARGS__)

KNOWN struct large returns_large(int first, int second)
{
	return (struct large){ first, second, sink };
}

KNOWN int after_complex(float _Complex both, int behind)
{
	return behind + (int)creal(both);
}

KNOWN int of_an_enum(enum sign sign)
{
	return sign + 1;
}

KNOWN int negative(int number)
{
	return -number;
}

/* The register's other bits are anything, as the ABI allows. */
KNOWN bool is_negative(long number)
{
	bool result;

	__asm__("mov $0x7700, %%eax\n\ttest %1, %1\n\tsets %%al" : "=a"(result) : "r"(number));
	return result;
}

KNOWN void takes_text(const char *what)
{
	sink += what != NULL;
}

KNOWN void takes_number(long what)
{
	sink += what;
}

static inline __attribute__((always_inline)) long copied(long n)
{
	return n * 7 + syscall(SYS_getppid); /* LINE: in two functions, of which one is called */
}

KNOWN long never(long n)
{
	return copied(n) + 1;
}

KNOWN long always(long n)
{
	return copied(n) + 2;
}

static void call_each(void)
{
	struct large large = returns_large(7, 9);

	sink += large.a + after_complex(1.0f, 33) + of_an_enum(MINUS) + negative(5) + is_negative(-1) + is_negative(1) + always(3);
	takes_text("a text"); /* nobody reads it, so it may not be in memory */
	takes_text(NULL);
	takes_number(1234567);
	POINT("many", "4@$1 4@$2 4@$3 4@$4 4@$5 4@$6 4@$7 -4@$-8", "r"(0));
	POINT("nowhere", "8@(%0) -4@$-2", "r"(16L));
}

/* --- calls that do not end in the order in which they began ------------------------------------------------------------------------ */

static ucontext_t contexts[2], leave;
static char stacks[2][STACK_BYTES] __attribute__((aligned(16)));

/* On the lower stack for PAUSE_US before the other begins and for as long after it, so for twice that. */
KNOWN void crosses(int number)
{
	if (!number)
		usleep(PAUSE_US);
	swapcontext(&contexts[number], &contexts[!number]);
	usleep(PAUSE_US);
	sink++;
}

static void lower(void)
{
	crosses(0);
	swapcontext(&contexts[0], &leave); /* the other call is not resumed: the kernel's probes expect another order of returns */
}

static void upper(void)
{
	crosses(1);
}

static void call_crossing(void)
{
	for (int i = 0; i < 2; i++) {
		getcontext(&contexts[i]);
		contexts[i].uc_stack.ss_sp = stacks[i];
		contexts[i].uc_stack.ss_size = STACK_BYTES;
		makecontext(&contexts[i], i ? upper : lower, 0);
	}
	swapcontext(&leave, &contexts[0]);
}

KNOWN long recurses(int left)
{
	long below = left ? recurses(left - 1) : 0;

	return below + sink;
}

static jmp_buf back;

KNOWN void leaves(int number)
{
	sink++;
	if (number)
		longjmp(back, 1);
}

KNOWN static void call_deeper(int left)
{
	volatile char room[64];

	room[0] = (char)left;
	if (left)
		call_deeper(left - 1);
	else
		leaves(1);
	sink += room[0];
}

int main(int argc, char **argv)
{
	int nr = argc > 1 ? atoi(argv[1]) : 1;
	char line[8];

	printf("ready\n");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	for (int i = 0; i < nr; i++)
		call_each();
	call_crossing();
	recurses(99);
	for (int i = 0; i < 40; i++) {
		if (!setjmp(back))
			call_deeper(i % 20);
	}
	for (int i = 0; i < nr; i++)
		leaves(0);
	if (nr < 0)
		never(sink);
	return 0;
}
