// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "symbolize/kallsyms.h"

/* Reads a list in memory as if it were a file. */
static int read_text(const char *text, size_t size, struct kallsyms **ret_kallsyms)
{
	CLEANUP(closep) int fd = memfd_create("kallsyms", MFD_CLOEXEC);
	char path[64];

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, size), size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return kallsyms_read(path, ret_kallsyms);
}

static void assert_name(const struct kallsyms *kallsyms, uint64_t kaddr, const char *want, uint64_t want_start)
{
	const char *name = NULL;
	uint64_t start = 0;

	if (!want) {
		assert_int_equal(kallsyms_find(kallsyms, kaddr, &name, &start), -ENOENT);
		return;
	}
	assert_int_equal(kallsyms_find(kallsyms, kaddr, &name, &start), 0);
	assert_string_equal(name, want);
	assert_true(start == want_start);
}

static const char a_kernel[] = "0000000000000000 A fixed_percpu_data\n"
			       "ffffffff81000000 T _stext\n"
			       "ffffffff81000000 T _text\n"
			       "ffffffff81000000 T startup\n"
			       "ffffffff81000100 t local_alias\n"
			       "ffffffff81000100 W weak_alias\n"
			       "ffffffff81000100 T global_alias_longer\n"
			       "ffffffff81000100 T global_alias_b\n"
			       "ffffffff81000100 T global_alias_a\n"
			       "ffffffff81000200 t __entry_text_end\n"
			       "ffffffff81080000 t _save_context\n" /* ends in "text", but is no text symbol */
			       "ffffffff81080100 T _etext\n"
			       "ffffffff81080200 D a_table\n"
			       "ffffffff81080300 W weak_function\n"
			       "ffffffffc0001000 t module_function\t[xfs]\n"
			       "ffffffffc0000000 t earlier_function\t[ext4]\n"
			       "ffffffffc0000080 d module_data\t[ext4]\n"
			       "ffffffffc0101000 t bpf_prog_0123456789abcdef_dump\t[bpf]\n"
			       "ffffffffc0102000 t bpf_trampoline_1\t[bpf]\n";

static void addresses_get_names(void **state)
{
	CLEANUP(kallsyms_freep) struct kallsyms *kallsyms = NULL;

	assert_int_equal(read_text(a_kernel, sizeof(a_kernel) - 1, &kallsyms), 0);
	assert_name(kallsyms, 0xffffffff81000000, "startup", 0xffffffff81000000);
	assert_name(kallsyms, 0xffffffff810000ff, "startup", 0xffffffff81000000);
	assert_name(kallsyms, 0xffffffff81000100, "global_alias_a", 0xffffffff81000100);
	assert_name(kallsyms, 0xffffffff810800ff, "_save_context", 0xffffffff81080000);
	assert_name(kallsyms, 0xffffffff81080310, "weak_function", 0xffffffff81080300);
	assert_name(kallsyms, 0xffffffffc0000010, "earlier_function [ext4]", 0xffffffffc0000000);
	assert_name(kallsyms, 0xffffffffc0001010, "module_function [xfs]", 0xffffffffc0001000);
	assert_name(kallsyms, 0xffffffffc0101fff, "bpf_prog_0123456789abcdef_dump [bpf]", 0xffffffffc0101000);
	assert_name(kallsyms, 0xffffffffc0102000, "bpf_trampoline_1 [bpf]", 0xffffffffc0102000);
}

static void nothing_is_given_to_a_far_neighbour(void **state)
{
	CLEANUP(kallsyms_freep) struct kallsyms *kallsyms = NULL;

	assert_int_equal(read_text(a_kernel, sizeof(a_kernel) - 1, &kallsyms), 0);
	assert_name(kallsyms, 0, NULL, 0);
	assert_name(kallsyms, 0x401000, NULL, 0);
	assert_name(kallsyms, 0xffffffff80ffffff, NULL, 0);
	assert_name(kallsyms, 0xffffffff81000200, NULL, 0); /* after __entry_text_end */
	assert_name(kallsyms, 0xffffffff81080100, NULL, 0); /* after _etext */
	assert_name(kallsyms, 0xffffffff81080200, NULL, 0); /* data */
	assert_name(kallsyms, 0xffffffffc0000080, NULL, 0); /* a module's data */
	assert_name(kallsyms, 0xffffffffc0001000 + KALLSYMS_MAX_FUNCTION_BYTES - 1, "module_function [xfs]", 0xffffffffc0001000);
	assert_name(kallsyms, 0xffffffffc0001000 + KALLSYMS_MAX_FUNCTION_BYTES, NULL, 0);
	assert_name(kallsyms, UINT64_MAX, NULL, 0);
}

static void hidden_addresses_are_told_apart(void **state)
{
	static const char hidden[] = "0000000000000000 T _text\n0000000000000000 T startup\n";
	static const char data[] = "ffffffff81080200 D a_table\n";
	static const char garbage[] =
	    "\n\n   \nzz\nffffffff81000000\nffffffff81000000 T\nffffffff81000000  T x\n11112222333344445 T long\n";
	struct kallsyms *kallsyms = NULL;

	assert_int_equal(read_text(hidden, sizeof(hidden) - 1, &kallsyms), -EACCES);
	assert_int_equal(read_text(data, sizeof(data) - 1, &kallsyms), -ENODATA);
	assert_int_equal(read_text(garbage, sizeof(garbage) - 1, &kallsyms), -ENODATA);
	assert_int_equal(read_text("", 0, &kallsyms), -ENODATA);
	assert_int_equal(kallsyms_read("/nonexistent/kallsyms", &kallsyms), -ENOENT);
	assert_null(kallsyms);
}

/* Every text symbol of this machine's list, in any order, is found under its own name or an alias. BPF programs appear and vanish
 * meanwhile, so they are skipped. */
static void this_kernels_list_is_found_again(void **state)
{
	CLEANUP(kallsyms_freep) struct kallsyms *kallsyms = NULL;
	CLEANUP(fclosep) FILE *file = fopen("/proc/kallsyms", "re");
	unsigned int nr_found = 0, nr_same = 0;
	char line[1024];
	int err = kallsyms_read("/proc/kallsyms", &kallsyms);

	if (err == -EACCES || !file) {
		print_message("SKIPPED: /proc/kallsyms hides its addresses from this user\n");
		skip();
	}
	assert_int_equal(err, 0);
	while (fgets(line, sizeof(line), file)) {
		const char *name;
		uint64_t kaddr, start;
		char type, want[512];

		if (sscanf(line, "%lx %c %511s", &kaddr, &type, want) != 3 || !strchr("tTwW", type) || strstr(want, "text") ||
		    strstr(line, "[bpf]"))
			continue;
		assert_int_equal(kallsyms_find(kallsyms, kaddr, &name, &start), 0);
		assert_true(start == kaddr);
		nr_found++;
		nr_same += strncmp(name, want, strlen(want)) == 0;
	}
	print_message("%u functions, %u under this very name, the others under an alias; %u entries\n", nr_found, nr_same,
		      kallsyms_size(kallsyms));
	assert_true(nr_found > 1000 && nr_same > nr_found / 10 * 9);
}

/* Where the linker script puts them. In a list without these symbols, nothing is the scheduler's. */
static void the_scheduler_has_bounds(void **state)
{
	static const char text[] = "ffffffff81000000 T _stext\n"
				   "ffffffff81000100 T __sched_text_start\n"
				   "ffffffff81000100 t __schedule\n"
				   "ffffffff81000200 t do_nanosleep\n"
				   "ffffffff81000300 T __sched_text_end\n"
				   "ffffffff81000300 T try_to_wake_up\n"
				   "ffffffff81000400 T __lock_text_start\n"
				   "ffffffff81000400 T _raw_spin_lock\n"
				   "ffffffff81000500 T __lock_text_end\n";
	static const struct {
		uint64_t kaddr;
		bool is_scheduler;
	} want[] = { { 0xffffffff810000ff, false }, { 0xffffffff81000100, true }, { 0xffffffff810002ff, true },
		     { 0xffffffff81000300, false }, { 0xffffffff81000400, true }, { 0xffffffff81000500, false } };
	CLEANUP(kallsyms_freep) struct kallsyms *kallsyms = NULL, *without = NULL;

	assert_int_equal(kallsyms_parse(text, sizeof(text) - 1, &kallsyms), 0);
	assert_int_equal(kallsyms_parse(a_kernel, sizeof(a_kernel) - 1, &without), 0);
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		assert_int_equal(kallsyms_is_scheduler(kallsyms, want[i].kaddr), want[i].is_scheduler);
		assert_false(kallsyms_is_scheduler(without, want[i].kaddr));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_get_names),
		cmocka_unit_test(nothing_is_given_to_a_far_neighbour),
		cmocka_unit_test(hidden_addresses_are_told_apart),
		cmocka_unit_test(this_kernels_list_is_found_again),
		cmocka_unit_test(the_scheduler_has_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
