// SPDX-License-Identifier: Apache-2.0
/* The program that step_oracle steps through: functions with every kind of frame, tail calls, jumps out, signals. Exits with success. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone_if_gcc))
#ifdef __clang__
#define noclone_if_gcc noinline
#else
#define noclone_if_gcc noclone
#endif

static volatile int keep;
static jmp_buf jump;
static sigjmp_buf signal_jump;
static int (*volatile callee)(int depth);

NOINLINE static int leaf(int x)
{
	return x * 3 + keep;
}

NOINLINE static int plain(int depth)
{
	keep++;
	return depth ? plain(depth - 1) + leaf(depth) : leaf(0);
}

NOINLINE static int many(int a, int b, int c, int d, int e, int f, int g, int h)
{
	int x = callee(a) + callee(b), y = callee(c) - callee(d), z = callee(e) * callee(f);

	return x * y + z * g + callee(x) * h + callee(y) + callee(z);
}

NOINLINE static int of_variable_size(int depth)
{
	volatile char *room = __builtin_alloca((size_t)depth * 24 + 1);

	room[0] = (char)callee(depth);
	return callee(depth + 1) + room[depth / 2];
}

NOINLINE static int realigned(int depth)
{
	volatile char room[64] __attribute__((aligned(64)));

	room[depth & 63] = 1;
	return callee(depth) + room[depth & 31];
}

NOINLINE static int realigned_of_variable_size(int a, int b, int c, int d, int e, int f, int depth, int h)
{
	volatile char fixed[64] __attribute__((aligned(64)));
	int list[depth + 1];

	memset(list, 0, sizeof(list));
	fixed[depth & 63] = (char)callee(depth);
	list[depth] = callee(a + b + c + d + e + f + h);
	return list[depth / 2] + fixed[1] + callee(list[depth]);
}

NOINLINE static int early_out(const char *text, int depth)
{
	if (!depth)
		return 0;
	if (depth > 5)
		return (int)strlen(text);
	return callee(depth) + callee(depth - 1) + early_out(text + 1, depth - 1);
}

NOINLINE static int tail_target(int x)
{
	keep = x;
	return leaf(x) + 1;
}

NOINLINE static int tail(int x)
{
	keep += x;
	return tail_target(x + 1);
}

NOINLINE static int tail_by_pointer(int x)
{
	keep += leaf(x);
	return callee(x);
}

NOINLINE static int with_arguments(const char *format, ...)
{
	char text[100];
	va_list args;
	int size;

	va_start(args, format);
	size = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return early_out(text, size & 3);
}

NOINLINE static void jumper(int depth)
{
	if (depth)
		jumper(depth - 1);
	else
		longjmp(jump, 1);
	keep++;
}

NOINLINE static int jumps(void)
{
	if (setjmp(jump))
		return keep;
	jumper(4);
	return 0;
}

static void on_signal(int number)
{
	keep += plain(2);
}

static void on_signal_jump(int number, siginfo_t *info, void *context)
{
	siglongjmp(signal_jump, leaf(number));
}

NOINLINE static int signals(void)
{
	struct sigaction action = { .sa_handler = on_signal }, away = { .sa_sigaction = on_signal_jump, .sa_flags = SA_SIGINFO };
	static char other[65536];
	stack_t stack = { .ss_sp = other, .ss_size = sizeof(other) };

	sigaction(SIGUSR1, &action, NULL);
	kill(getpid(), SIGUSR1);
	raise(SIGUSR1);
	action.sa_flags = SA_ONSTACK;
	sigaltstack(&stack, NULL);
	sigaction(SIGUSR1, &action, NULL);
	kill(getpid(), SIGUSR1);
	sigaction(SIGUSR2, &away, NULL);
	if (!sigsetjmp(signal_jump, 1))
		kill(getpid(), SIGUSR2);
	return keep;
}

static int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b + 0 * leaf(1);
}

NOINLINE static int library(void)
{
	int values[] = { 5, 3, 9, 1, 7, 2 };
	char text[64], *end;

	qsort(values, 6, sizeof(*values), compare);
	snprintf(text, sizeof(text), "%d %s %g", values[0], "text", 1.5);
	free(malloc((size_t)values[1]));
	memset(text + 40, 1, sizeof(text) - 40);
	memmove(text + 1, text, strlen(text) + 1);
	return (int)strtol(text, &end, 10) + (strchr(text, 'x') != NULL) + (getenv("HOME") != NULL) + (*end == 0);
}

static void at_exit(void)
{
	keep += plain(1);
}

int main(int argc, char **argv)
{
	int sum = 0;

	atexit(at_exit);
	callee = leaf;
	sum += plain(5) + many(1, 2, 3, 4, 5, 6, 7, 8) + of_variable_size(3) + realigned(3) +
	       realigned_of_variable_size(1, 2, 3, 4, 5, 6, 7, 8);
	callee = tail;
	sum += early_out("text", 4) + tail(3) + of_variable_size(5) + realigned(7) + realigned_of_variable_size(8, 7, 6, 5, 4, 3, 2, 1);
	callee = leaf;
	sum += tail_by_pointer(2) + with_arguments("%d %s", argc, "name") + jumps() + signals();
	if (argc > 1)
		sum += library();
	keep = sum;
	return 0;
}
