// SPDX-License-Identifier: Apache-2.0
/* The native methods of JavaSpin.java. No header of a JDK is needed: the numbers are those of the functions in the JNI specification's
 * table (chapter 4). */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef void *const **env_t;

#define GET_OBJECT_CLASS 31
#define GET_METHOD_ID 33
#define CALL_VOID_METHOD 61

static void run(env_t env, void *work)
{
	void *(*get_class)(env_t, void *) = (*env)[GET_OBJECT_CLASS];
	void *(*get_method)(env_t, void *, const char *, const char *) = (*env)[GET_METHOD_ID];
	void (*call)(env_t, void *, void *, ...) = (*env)[CALL_VOID_METHOD];

	call(env, work, get_method(env, get_class(env, work), "run", "()V"));
}

/* Calls the function, and if there is none spins. No unwind information, no frame pointer, and no way to tell the frame's size by reading
 * the code on; its own return address is far from sp. It runs in memory without a file, as code of a JIT compiler does. */
extern const char broken[], broken_end[];
__asm__(".pushsection .text\n.type broken, @function\nbroken: push %rbp; push %rbx; push %r12\n"
	"mov %rsp, %r12; mov %rdi, %rax; mov $1, %ebp; and $-4096, %rsp; sub $16384, %rsp\n"
	"test %rax, %rax; je 2f\n"
	"mov %rsi, %rdi; mov %rdx, %rsi; call *%rax\n"
	"1: mov %r12, %rsp; pop %r12; pop %rbx; pop %rbp; ret\n"
	"2: mov $1000, %ecx\n3: dec %ecx; jnz 3b; jmp 2b\nbroken_end:\n.size broken, .-broken\n.popsection\n");

static void (*break_chain)(void (*function)(env_t, void *), env_t env, void *work);

__attribute__((constructor)) static void copy_code(void)
{
	size_t size = (size_t)(broken_end - broken);
	void *copy = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (copy == MAP_FAILED)
		abort();
	memcpy(copy, broken, size);
	if (mprotect(copy, size, PROT_READ | PROT_EXEC))
		abort();
	break_chain = copy;
}

/* `work` 0: spins. */
__attribute__((visibility("default"))) void Java_JavaSpin_breakChain(env_t env, void *class, void *work)
{
	break_chain(work ? run : NULL, env, work);
}

__attribute__((visibility("default"))) void Java_JavaSpin_callBack(env_t env, void *class, void *work)
{
	run(env, work);
}

static __thread env_t sort_env;
static __thread void *sort_work;

static int compare(const void *a, const void *b)
{
	run(sort_env, sort_work);
	return *(const int *)a - *(const int *)b;
}

__attribute__((visibility("default"))) void Java_JavaSpin_sort(env_t env, void *class, void *work)
{
	int numbers[] = { 2, 1 };

	sort_env = env;
	sort_work = work;
	qsort(numbers, 2, sizeof(*numbers), compare);
}
