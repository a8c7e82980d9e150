// SPDX-License-Identifier: Apache-2.0
/* slow_walks SECONDS KIND WAY [FRAMES]: a thread with a stack that takes a profiler as long as possible.
 * KIND:
 *   rows   frames with rows, each on pages of its own with a missing page behind it, called from code whose pages are not in memory
 *   code   frames in code without rows, each in another function of 340 instructions
 *   words  frames in code without rows, linked by frame pointers; between them words that look like return addresses, behind calls whose
 *          targets have no page
 * WAY:
 *   spin   in its program, on a CPU
 *   fresh  the same, each time with another return address at the leaf, so that no stack is already known; they end in no mapping, and
 *          by the thread pointer 1 MiB of the stack is in use
 *   sleep  in nanosleep, as often as it can
 *   wake   it wakes another process, as often as it can
 * Built as a shared library, for interpreters: slow_walk(kind, way, frames) and slow_walk_now() do not return. */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PAGE	   4096ull
#define MAX_FRAMES 16000
#define CALL_BYTES 5
#define FAR_BYTES  (2 * PAGE) /* from frame to frame */
#define CODE_BYTES 352	      /* of a function */
#define NR_FRESH   1000
#define NR_WORDS   126	      /* between two frames */

struct call {
	unsigned long long number, args[3];
};

/* The common start of all kinds. `sp` points to the saved rbp and the return address. `step` is added to the return address again and
 * again, up to fresh_bytes. `call`: the system call that it repeats without end; NULL: none. */
void slow_leaf(unsigned long long sp, const struct call *call, unsigned long long fresh_bytes, unsigned long long step);

/* The calls that made the frames with rows, on pages of their own. */
extern const char slow_calls[], slow_calls_end[];

__asm__(".text\n.align 4096\n"
	"slow_leaf:\n"
	"	.cfi_startproc\n"
	"	mov %rdi,%rsp\n"
	"	mov (%rsp),%rbp\n"
	"	.cfi_def_cfa rsp,16\n"
	"	.cfi_offset rbp,-16\n"
	"	mov %rsi,%rbx\n"
	"	mov %rdx,%r12\n"
	"	mov %rcx,%r15\n"
	"	mov 8(%rsp),%r13\n"
	"	xor %r14d,%r14d\n"
	"	test %rsi,%rsi\n"
	"	jnz 2f\n"
	"	test %rdx,%rdx\n"
	"	jnz 3f\n"
	"1:	pause\n"
	"	jmp 1b\n"
	"2:	mov (%rbx),%rax\n"
	"	mov 8(%rbx),%rdi\n"
	"	mov 16(%rbx),%rsi\n"
	"	mov 24(%rbx),%rdx\n"
	"	syscall\n"
	"	jmp 2b\n"
	"3:	mov $20000,%ecx\n"
	"4:	pause\n"
	"	dec %ecx\n"
	"	jnz 4b\n"
	"	add %r15,%r14\n"
	"	cmp %r12,%r14\n"
	"	jb 5f\n"
	"	xor %r14d,%r14d\n"
	"5:	lea (%r13,%r14),%rax\n"
	"	mov %rax,8(%rsp)\n"
	"	jmp 3b\n"
	"	.cfi_endproc\n"
	".align 4096\n"
	"slow_calls:\n"
	"	.cfi_startproc\n"
	"	.cfi_def_cfa rsp,8192\n" /* FAR_BYTES */
	"	.cfi_offset rbp,-8208\n" /* the end of the page before */
	"	.rept 16000\n"
	"	call slow_calls\n"
	"	.endr\n"
	"	nop\n"
	"	.cfi_endproc\n"
	".align 4096\n"
	"slow_calls_end:\n");

static unsigned char *memory(unsigned long long bytes)
{
	unsigned char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	madvise(at, bytes, MADV_NOHUGEPAGE);
	return at;
}

static void put(unsigned char *at, unsigned long long word)
{
	memcpy(at, &word, sizeof(word));
}

/* E8 rel32: a call that returns to `ret`. */
static void put_call(unsigned char *ret, const unsigned char *target)
{
	int distance = (int)(target - ret);

	ret[-5] = 0xe8;
	memcpy(ret - 4, &distance, sizeof(distance));
}

static unsigned long long call_of(int i)
{
	return (unsigned long long)slow_calls + (unsigned long long)(i + 1) * CALL_BYTES;
}

/* `end`: the return address of the outermost frame. */
static unsigned long long make_rows(int nr, unsigned long long end)
{
	unsigned char *stack = memory((unsigned long long)(nr + 3) * FAR_BYTES), *leaf = stack + PAGE - 16;

	put(leaf, 0);
	put(leaf + 8, call_of(0));
	for (int i = 0; i < nr; i++) {
		unsigned char *cfa = leaf + 16 + (unsigned long long)(i + 1) * FAR_BYTES;

		put(cfa - 16, 0);
		put(cfa - 8, i + 1 < nr ? call_of(i + 1) : end);
	}
	madvise((void *)slow_calls, (size_t)(slow_calls_end - slow_calls), MADV_DONTNEED);
	return (unsigned long long)leaf;
}

static unsigned long long make_code(int nr, unsigned long long end)
{
	unsigned char *code = memory((unsigned long long)(nr + 2) * CODE_BYTES), *stack = memory((unsigned long long)(nr + 4) * 16);

	for (int i = 0; i < nr; i++) {
		unsigned char *ret = code + (unsigned long long)(i + 1) * CODE_BYTES;

		memset(ret, 0x90, CODE_BYTES - 10); /* nop */
		put_call(ret, code);
		memcpy(ret + CODE_BYTES - 10, "\x48\x83\xc4\x08\xc3", 5); /* add $8,%rsp; ret */
		put(stack + 8 + (unsigned long long)i * 16, (unsigned long long)ret);
	}
	put(stack + 8 + (unsigned long long)nr * 16, end);
	mprotect(code, (size_t)(nr + 2) * CODE_BYTES, PROT_READ | PROT_EXEC);
	return (unsigned long long)stack;
}

static unsigned long long make_words(int nr, unsigned long long end)
{
	unsigned long long frame_bytes = (NR_WORDS + 2) * 8;
	unsigned char *code = memory(4 * PAGE), *stack = memory((unsigned long long)(nr + 2) * frame_bytes), *begin = code + PAGE,
		      *ret = begin + 256, *word = code + 3 * PAGE;

	memcpy(begin, "\x55\x48\x89\xe5", 4); /* push rbp; mov rbp,rsp */
	put_call(ret, begin);
	memcpy(ret, "\xff\xe0", 2); /* jmp *rax: says nothing */
	put_call(word, code);
	for (int i = 0; i < nr; i++) {
		unsigned char *frame = stack + (unsigned long long)i * frame_bytes;

		put(frame, (unsigned long long)frame + frame_bytes);
		put(frame + 8, i + 1 < nr ? (unsigned long long)ret : end);
		for (int k = 0; k < NR_WORDS; k++)
			put(frame + 16 + 8 * k, (unsigned long long)word);
	}
	mprotect(code, 4 * PAGE, PROT_READ | PROT_EXEC);
	mprotect(code, PAGE, PROT_NONE);
	return (unsigned long long)stack;
}

/* Starts a child that waits for each byte; returns the descriptor to write to. */
static int start_reader(void)
{
	int pipes[2];
	char byte;

	if (pipe(pipes)) {
		perror("pipe");
		exit(1);
	}
	if (!fork()) {
		close(pipes[1]); /* the child dies with its parent */
		while (read(pipes[0], &byte, 1) > 0)
			;
		_exit(0);
	}
	return pipes[1];
}

static int is(const char *a, const char *b)
{
	return !strcmp(a, b);
}

__attribute__((visibility("default"))) int slow_walk(const char *kind, const char *way, int nr)
{
	static const struct timespec moment = { .tv_nsec = 1000 };
	static struct call call = { .number = SYS_nanosleep, .args = { (unsigned long long)&moment } };
	unsigned long long end = PAGE, sp, step = is(kind, "rows") ? CALL_BYTES : CODE_BYTES;

	if (nr <= 0 || nr > MAX_FRAMES)
		nr = MAX_FRAMES;
	sp = is(kind, "rows") ? make_rows(nr, end) : is(kind, "code") ? make_code(nr, end) : make_words(nr, end);
	if (is(way, "fresh"))
		syscall(SYS_arch_prctl, ARCH_SET_FS, sp + (1 << 20) - 4 * PAGE);
	if (is(way, "wake"))
		call = (struct call){ .number = SYS_write, .args = { (unsigned long long)start_reader(), (unsigned long long)kind, 1 } };
	slow_leaf(sp, is(way, "sleep") || is(way, "wake") ? &call : NULL, is(way, "fresh") ? NR_FRESH * step : 0, step);
	return 0;
}

/* The same for callers that cannot pass arguments: the environment variable SLOW_WALK is KIND. */
__attribute__((visibility("default"))) int slow_walk_now(void)
{
	return slow_walk(getenv("SLOW_WALK"), "spin", 0);
}

int main(int argc, char **argv)
{
	if (argc < 4)
		return fprintf(stderr, "usage: slow_walks SECONDS rows|code|words spin|fresh|sleep|wake [FRAMES]\n"), 2;
	alarm((unsigned)atoi(argv[1]));
	printf("pid %d\nready\n", (int)getpid());
	fflush(stdout);
	return slow_walk(argv[2], argv[3], argc > 4 ? atoi(argv[4]) : 0);
}
