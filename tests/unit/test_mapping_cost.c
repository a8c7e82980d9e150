// SPDX-License-Identifier: Apache-2.0
/* The cost of many mappings of one process in the process table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <time.h>

#include "process/process_table.h"

#define PAGE 0x1000ULL

static struct process_table *table;

static int set_up(void **state)
{
	table = process_table_new(NULL);
	return !table;
}

static int tear_down(void **state)
{
	process_table_free(table);
	return 0;
}

static void map(uint32_t tgid, uint64_t start_pc, uint64_t end_pc, uint64_t time_ns)
{
	const struct mapping_event event = {
		.tgid = tgid, .start_pc = start_pc, .size_bytes = end_pc - start_pc, .time_ns = time_ns, .path = "//anon"
	};

	assert_int_equal(process_table_mmap(table, &event), 0);
}

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

#define COVERED 16000u

/* CPU time for this many processes with this many mappings each. A new mapping then covers all of them, repeatedly. The number of events is
 * the same however they are divided. */
static uint64_t cover_ns(uint32_t first_tgid, uint32_t nr_processes, uint32_t nr_each)
{
	uint64_t from_ns = cpu_ns(), time_ns = 0;

	for (uint32_t turn = 0; turn < 8; turn++) {
		for (uint32_t i = 0; i < nr_processes * nr_each; i++)
			map(first_tgid + i / nr_each, (i % nr_each + 1) * PAGE, (i % nr_each + 2) * PAGE, ++time_ns);
		for (uint32_t i = 0; i < nr_processes; i++)
			map(first_tgid + i, PAGE, (nr_each + 1) * PAGE, ++time_ns);
	}
	return cpu_ns() - from_ns;
}

/* A mapping that covers thousands, and a process with thousands, cost as much as many processes do, not their square. */
static void test_cost_of_many_mappings(void **state)
{
	uint64_t apart_ns = cover_ns(1000, COVERED / 16, 16), together_ns = cover_ns(100000, 1, COVERED);

	print_message("%.1f ms apart, %.1f ms together\n", (double)apart_ns / 1e6, (double)together_ns / 1e6);
	assert_true(together_ns < 8 * apart_ns);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test_setup_teardown(test_cost_of_many_mappings, set_up, tear_down) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
