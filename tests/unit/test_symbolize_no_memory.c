// SPDX-License-Identifier: Apache-2.0
/* Every allocation of the symbolizer fails once: the first, the second, ... No crash, no leak (ASan checks), and the answer is right or
 * an error. The linker redirects the allocators to this file (--wrap). */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "symbolize/symbolizer.h"

static int nr_until_failure = -1; /* -1: never */

static int fails(void)
{
	if (nr_until_failure < 0)
		return 0;
	return nr_until_failure-- == 0;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t nr, size_t size);
void *__real_realloc(void *old, size_t size);
void *__real_reallocarray(void *old, size_t nr, size_t size);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t nr, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_reallocarray(void *old, size_t nr, size_t size);
char *__wrap_strdup(const char *text);

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t nr, size_t size)
{
	return fails() ? NULL : __real_calloc(nr, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	return fails() ? NULL : __real_realloc(old, size);
}

void *__wrap_reallocarray(void *old, size_t nr, size_t size)
{
	return fails() ? NULL : __real_reallocarray(old, nr, size);
}

char *__wrap_strdup(const char *text)
{
	return fails() ? NULL : __real_strdup(text);
}

static const char kernel_text[] = "ffffffff81000000 T start_kernel\nffffffffc0000000 t _RNvC6_123foo3bar\t[ext4]\n";

/* Makes each kind of request once. Returns whether all were answered. */
static int ask_all(const struct symbolizer_options *options, const struct elf_file *elf, int map_fd)
{
	struct jit_names *jit = jit_names_new();
	struct symbolizer *symbolizer = symbolizer_new(options);
	struct symbol_name name;
	uint32_t nr;
	int nr_answered = 0;

	if (!symbolizer || !jit) {
		symbolizer_free(symbolizer);
		jit_names_free(jit);
		return 0;
	}
	if (symbolizer_kernel(symbolizer, 0xffffffffc0000001, &name) == 0) {
		assert_string_equal(name.system_name, "_RNvC6_123foo3bar [ext4]");
		nr_answered++;
	}
	for (uint64_t elf_vaddr = 0; elf_vaddr < elf_file_size(elf); elf_vaddr += 16) {
		if (symbolizer_object(symbolizer, 3, elf, NULL, elf_vaddr, &name, 1, &nr) == 0) {
			nr_answered++;
			break;
		}
	}
	assert_int_equal(lseek(map_fd, 0, SEEK_SET), 0);
	if (jit_names_read_fd(jit, map_fd) == 0 && symbolizer_jit(symbolizer, jit, 0x1004, &name) == 0) {
		assert_string_equal(name.system_name, "_ZN3foo3barEv");
		nr_answered++;
	}
	symbolizer_free(symbolizer);
	jit_names_free(jit);
	return nr_answered == 3;
}

static void every_allocation_may_fail(void **state)
{
	CLEANUP(closep) int kernel_fd = memfd_create("kallsyms", MFD_CLOEXEC);
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	struct symbolizer_options options = { 0 };
	char kernel_path[64];
	int failing = -1, all = 0;
	static const char map_text[] = "1000 10 _ZN3foo3barEv\n";
	CLEANUP(closep) int map_fd = memfd_create("map", MFD_CLOEXEC);

	assert_int_equal(elf_file_open_fd(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), NULL, &elf), 0);
	assert_int_equal(write(kernel_fd, kernel_text, sizeof(kernel_text) - 1), sizeof(kernel_text) - 1);
	snprintf(kernel_path, sizeof(kernel_path), "/proc/self/fd/%d", kernel_fd);
	options.kallsyms_path = kernel_path;
	assert_int_equal(write(map_fd, map_text, sizeof(map_text) - 1), sizeof(map_text) - 1);
	while (nr_until_failure < 0) { /* until none is left to fail */
		nr_until_failure = ++failing;
		all = ask_all(&options, elf, map_fd);
		if (nr_until_failure >= 0)
			break;
	}
	nr_until_failure = -1;
	print_message("%d allocations failed in turn\n", failing);
	assert_true(all);
	assert_true(failing > 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(every_allocation_may_fail) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
