// SPDX-License-Identifier: Apache-2.0
/* The program whose unwind tables test_cfi_libdw reads, built in several ways: frames of all kinds that a compiler makes. Never run. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int many(int a, int b, int c, int d, int e, int f, int g);
int realigned(int depth);
int of_variable_size(int depth);
int realigned_of_variable_size(int depth);
int early_out(const char *text, int depth);
int with_arguments(const char *format, ...);

static int (*volatile next)(int depth) = realigned;

int many(int a, int b, int c, int d, int e, int f, int g)
{
	int x = next(a) + next(b), y = next(c) - next(d), z = next(e) * next(f);

	return x * y * z * g + next(x) + next(y) + next(z);
}

int realigned(int depth)
{
	volatile char room[64] __attribute__((aligned(64)));

	room[depth & 63] = 1;
	return next(depth) + room[depth & 31];
}

int of_variable_size(int depth)
{
	volatile char *room = __builtin_alloca((size_t)depth);

	room[0] = (char)next(depth);
	return next(depth + 1) + room[depth / 2];
}

int realigned_of_variable_size(int depth)
{
	volatile char fixed[64] __attribute__((aligned(64)));
	volatile char *room = __builtin_alloca((size_t)depth);

	room[0] = fixed[depth & 63] = (char)next(depth);
	return next(depth + 1) + room[depth / 2] + fixed[1];
}

int early_out(const char *text, int depth)
{
	if (!depth)
		return 0;
	if (depth > 5)
		return (int)strlen(text);
	return next(depth) + next(depth - 1) + early_out(text + 1, depth - 1);
}

int with_arguments(const char *format, ...)
{
	char text[100];
	va_list args;
	int size;

	va_start(args, format);
	size = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return early_out(text, size);
}

int main(int argc, char **argv)
{
	return many(argc, 1, 2, 3, 4, 5, 6) + of_variable_size(argc) + realigned_of_variable_size(argc) +
	       with_arguments("%d %s", argc, argv[0]);
}
