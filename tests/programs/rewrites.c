// SPDX-License-Identifier: Apache-2.0
/* rewrites SECONDS: behaves as a JIT compiler that puts new code where other code was. The first of two functions calls the second,
 * which spins. Every 10 ms the first is rewritten with a smaller or a larger frame; its call stays at the same address. Where the
 * smaller frame has its return address, the larger one has that of an older caller. */
#include <stdint.h>
#include <sys/mman.h>
#include <time.h>

#include "known.h"

#define OUTER 0x00 /* in the memory */
#define INNER 0x40

static const unsigned char small_code[] = {
	0x48, 0x83, 0xec, 0x08,	      /* sub $8, %rsp */
	0x48, 0x89, 0x3c, 0x24, 0x90, /* mov %rdi, (%rsp); nop */
	0xe8, 0x32, 0x00, 0x00, 0x00, /* call INNER */
	0x48, 0x83, 0xc4, 0x08, 0xc3, /* add $8, %rsp; ret */
};
static const unsigned char large_code[] = {
	0x48, 0x83, 0xec, 0x18,	      /* sub $24, %rsp */
	0x48, 0x89, 0x7c, 0x24, 0x08, /* mov %rdi, 8(%rsp) */
	0xe8, 0x32, 0x00, 0x00, 0x00, /* call INNER */
	0x48, 0x83, 0xc4, 0x18, 0xc3, /* add $24, %rsp; ret */
};
static const unsigned char inner_code[] = {
	0xb9, 0x10, 0x27, 0x00, 0x00, /* mov $10000, %ecx */
	0xff, 0xc9, 0x75, 0xfc, 0xc3, /* 1: dec %ecx; jnz 1b; ret */
};

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void write_map(const unsigned char *code)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	file = fopen(path, "w");
	if (!file) {
		perror(path);
		exit(1);
	}
	fprintf(file, "%lx 20 jit_outer\n%lx 20 jit_inner\n", (unsigned long)(code + OUTER), (unsigned long)(code + INNER));
	fclose(file);
}

KNOWN static void call(void (*outer)(void *))
{
	outer(__builtin_return_address(0));
	__asm__ volatile("");
}

/* Its frame is found by rbp, even if the unwinder has sp wrong. */
KNOWN __attribute__((optimize("no-omit-frame-pointer"))) static void run(unsigned char *code)
{
	ENTER();
	known_enter("call");
	known_enter("jit_outer");
	known_enter("jit_inner");
	known_print();
	known_ready();
	for (unsigned turn = 0; !known_done; turn++) {
		double end = now() + 0.01;

		memcpy(code + OUTER, turn & 1 ? large_code : small_code, sizeof(small_code));
		while (now() < end) {
			for (int i = 0; i < 50; i++)
				call((void (*)(void *))(uintptr_t)(code + OUTER));
		}
	}
}

int main(int argc, char **argv)
{
	unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ENTER();
	if (argc < 2 || code == MAP_FAILED)
		return 2;
	memcpy(code + INNER, inner_code, sizeof(inner_code));
	known_start(argv[1]);
	write_map(code);
	run(code);
	return 0;
}
