// SPDX-License-Identifier: Apache-2.0
/* handlers SECONDS MODE: a signal handler on top of
 *   alt      an undefined instruction, the handler on an alternate stack
 *   nested   a system call, the handler on an alternate stack, and on top of it another handler, for an undefined instruction
 *   read     read() of an empty pipe, SA_RESTART
 *   raw      the same by our own system call, without the C library
 *   sleep    nanosleep()
 *   clock    clock_gettime() in a loop
 *   return   the system call kill, of itself; the handler returns at once, so a good part of the time goes into the return
 *   storm    short-lived functions, interrupted at any instruction, 2,000 times a second
 * The printed chain has only this program's functions. */
#define _GNU_SOURCE
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>

#include "known.h"

static volatile unsigned long sink;
static int never[2];
static bool is_storm, is_nested;

KNOWN static unsigned long handler_leaf(void)
{
	ENTER();
	known_print();
	known_ready();
	return known_spin();
}

static void on_trap(int signo)
{
	(void)signo;
	ENTER();
	sink = handler_leaf();
	_exit(0);
}

void trigger(void);
__asm__(".text\n.p2align 4\n.type trigger,@function\ntrigger:\n.cfi_startproc\nud2\nret\n.cfi_endproc\n.size trigger,.-trigger\n");

/* At most a quarter of a millisecond at 4 GHz: about half a period at 2,000 signals a second. */
KNOWN static unsigned long storm_leaf(void)
{
	unsigned long state = 1;

	for (unsigned i = 0; i < 250000; i++) {
		state = state * 6364136223846793005UL + 1442695040888963407UL;
		__asm__ volatile("" : "+r"(state));
	}
	return state;
}

static void on_timer(int signo)
{
	(void)signo;
	if (is_storm) {
		sink = storm_leaf();
		return;
	}
	ENTER();
	if (is_nested) {
		known_enter("trigger");
		trigger();
	}
	sink = handler_leaf();
	_exit(0);
}

static void start_timer(long first_ns, long period_ns)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	struct itimerspec times = {{0, period_ns}, {0, first_ns}};
	timer_t timer;

	if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &times, NULL))
		_exit(2);
}

KNOWN static long trapper(void)
{
	ENTER();
	known_enter("trigger");
	trigger();
	return 1;
}

KNOWN static long reader(void)
{
	char byte;

	ENTER();
	return read(never[0], &byte, 1) + 1;
}

static inline __attribute__((always_inline)) long raw_call(long number, long a, long b, long c)
{
	__asm__ volatile("syscall" : "+a"(number) : "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return number;
}

KNOWN static long raw_reader(void)
{
	char byte;

	ENTER();
	return raw_call(SYS_read, never[0], (long)&byte, 1) + 1;
}

KNOWN static long sleeper(void)
{
	struct timespec long_time = {1000, 0};

	ENTER();
	return nanosleep(&long_time, NULL) + 1;
}

KNOWN static long clock_loop(void)
{
	struct timespec now;
	long nr = 0;

	ENTER();
	for (; !known_done; nr++)
		clock_gettime(CLOCK_MONOTONIC, &now);
	return nr;
}

static void on_usr2(int signo)
{
	(void)signo;
}

KNOWN static long killer(void)
{
	long pid = getpid(), nr = 0;

	signal(SIGUSR2, on_usr2);
	ENTER();
	known_print();
	known_ready();
	for (; !known_done; nr++)
		raw_call(SYS_kill, pid, SIGUSR2, 0);
	return nr;
}

KNOWN static long busy(long n)
{
	volatile char room[40];
	long a = n * 3, b = n * 5, c = n * 7;

	room[n % 40] = 1;
	__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c));
	return n ? busy(n - 1) + (a ^ b ^ c) + room[n % 40] : 1;
}

KNOWN static long storm(void)
{
	long nr = 0;

	is_storm = true;
	ENTER();
	known_print();
	known_ready();
	for (; !known_done; nr++)
		sink = (unsigned long)busy(nr & 7);
	return nr;
}

static const struct {
	const char *name;
	long (*body)(void);
} modes[] = {{"alt", trapper}, {"nested", raw_reader}, {"read", reader}, {"raw", raw_reader}, {"sleep", sleeper}, {"clock", clock_loop},
	     {"return", killer}, {"storm", storm}};

KNOWN static long outer(const char *mode)
{
	ENTER();
	for (unsigned i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (!strcmp(modes[i].name, mode)) {
			long (*volatile body)(void) = modes[i].body;

			return body() + 1;
		}
	return 0;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 2 ? argv[2] : "alt";
	struct sigaction on_usr1 = {.sa_handler = on_timer, .sa_flags = SA_RESTART}, on_ill = {.sa_handler = on_trap};
	stack_t other = {.ss_size = 1 << 18};

	ENTER();
	known_start(argv[1]);
	is_nested = !strcmp(mode, "nested");
	if (is_nested || !strcmp(mode, "alt")) {
		other.ss_sp = malloc(other.ss_size);
		if (!other.ss_sp || sigaltstack(&other, NULL))
			return 2;
		on_usr1.sa_flags |= SA_ONSTACK;
		on_ill.sa_flags |= SA_ONSTACK;
	}
	if (pipe(never) || sigaction(SIGUSR1, &on_usr1, NULL) || sigaction(SIGILL, &on_ill, NULL))
		return 2;
	if (!strcmp(mode, "storm"))
		start_timer(500000, 500000);
	else if (strcmp(mode, "alt") && strcmp(mode, "return"))
		start_timer(50000000, 0);
	return outer(mode) ? 0 : 2;
}
