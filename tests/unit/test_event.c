// SPDX-License-Identifier: Apache-2.0
/* Names of events and lists of CPUs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/cpus.h"
#include "base/event.h"

#define CACHE(cache, op, result) \
	(PERF_COUNT_HW_CACHE_##cache + PERF_COUNT_HW_CACHE_OP_##op * 256 + PERF_COUNT_HW_CACHE_RESULT_##result * 65536)

static const struct {
	const char *name;
	uint32_t type;
	uint64_t config;
	bool is_clock;
} known[] = {
	{ "cpu-clock", 1, 0, true },
	{ "task-clock", 1, 1, true },
	{ "page-faults", 1, 2, false },
	{ "faults", 1, 2, false },
	{ "context-switches", 1, 3, false },
	{ "cs", 1, 3, false },
	{ "cpu-migrations", 1, 4, false },
	{ "migrations", 1, 4, false },
	{ "minor-faults", 1, 5, false },
	{ "major-faults", 1, 6, false },
	{ "alignment-faults", 1, 7, false },
	{ "emulation-faults", 1, 8, false },
	{ "cycles", 0, 0, false },
	{ "cpu-cycles", 0, 0, false },
	{ "instructions", 0, 1, false },
	{ "cache-references", 0, 2, false },
	{ "cache-misses", 0, 3, false },
	{ "branches", 0, 4, false },
	{ "branch-instructions", 0, 4, false },
	{ "branch-misses", 0, 5, false },
	{ "bus-cycles", 0, 6, false },
	{ "stalled-cycles-frontend", 0, 7, false },
	{ "stalled-cycles-backend", 0, 8, false },
	{ "ref-cycles", 0, 9, false },
	{ "L1-dcache-loads", 3, CACHE(L1D, READ, ACCESS), false },
	{ "L1-dcache-load-misses", 3, CACHE(L1D, READ, MISS), false },
	{ "L1-icache-load-misses", 3, CACHE(L1I, READ, MISS), false },
	{ "LLC-loads", 3, CACHE(LL, READ, ACCESS), false },
	{ "LLC-load-misses", 3, CACHE(LL, READ, MISS), false },
	{ "LLC-stores", 3, CACHE(LL, WRITE, ACCESS), false },
	{ "LLC-store-misses", 3, CACHE(LL, WRITE, MISS), false },
	{ "dTLB-load-misses", 3, CACHE(DTLB, READ, MISS), false },
	{ "iTLB-load-misses", 3, CACHE(ITLB, READ, MISS), false },
	{ "branch-load-misses", 3, CACHE(BPU, READ, MISS), false },
	{ "node-load-misses", 3, CACHE(NODE, READ, MISS), false },
	{ "r1a8", 4, 0x1a8, false },
	{ "rFFFFFFFFFFFFFFFF", 4, UINT64_MAX, false },
	{ "r0", 4, 0, false },
};

static void test_names(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		struct event event;

		assert_int_equal(event_parse(known[i].name, NULL, &event), 0);
		assert_string_equal(event.name, known[i].name);
		assert_int_equal(event.type, known[i].type);
		assert_int_equal(event.config, known[i].config);
		assert_int_equal(event.is_clock, known[i].is_clock);
		assert_false(event.exclude_user || event.exclude_kernel);
	}
}

/* Every event has one name. The names of perf and JSON mean the same event, and the JSON names of perf-utils exist. */
static void test_all_names(void **state)
{
	static const char *const in_json[] = {
		"cpu_cycles",
		"instructions",
		"cache_refs",
		"cache_misses",
		"branch_instr",
		"branch_misses",
		"bus_cycles",
		"stalled_cycles_frontend",
		"stalled_cycles_backend",
		"ref_cpu_cycles",
		"cpu_clock",
		"task_clock",
		"page_faults",
		"context_switches",
		"cpu_migrations",
		"minor_page_faults",
		"major_page_faults",
		"alignment_faults",
		"emulation_faults",
		"l1_data_read_hit",
		"l1_data_read_miss",
		"l1_data_write_hit",
		"l1_instr_read_miss",
		"last_level_read_hit",
		"last_level_read_miss",
		"last_level_write_hit",
		"last_level_write_miss",
		"data_tlb_read_hit",
		"data_tlb_read_miss",
		"data_tlb_write_hit",
		"data_tlb_write_miss",
		"instr_tlb_read_hit",
		"instr_tlb_read_miss",
		"bpu_read_hit",
		"bpu_read_miss",
		"node_read_hit",
		"node_read_miss",
		"node_write_hit",
		"node_write_miss",
	};
	struct event event, same;
	size_t nr = 0, nr_kinds[4] = { 0 };

	for (; event_at(nr, &event); nr++) {
		nr_kinds[event.kind]++;
		assert_int_equal(event_parse(event.json, NULL, &same), 0);
		assert_true(same.type == event.type && same.config == event.config && same.kind == event.kind);
		assert_int_equal(event_parse(event.name, NULL, &same), 0);
		assert_memory_equal(&same, &event, sizeof(event));
		for (size_t i = 0; i < nr; i++) {
			assert_true(event_at(i, &same));
			assert_true(same.type != event.type || same.config != event.config);
		}
	}
	assert_int_equal(nr_kinds[EVENT_HARDWARE], PERF_COUNT_HW_MAX);
	assert_int_equal(nr_kinds[EVENT_SOFTWARE], 9);
	assert_int_equal(nr_kinds[EVENT_CACHE], 32);
	for (size_t i = 0; i < ARRAY_SIZE(in_json); i++) {
		assert_int_equal(event_parse(in_json[i], NULL, &event), 0);
		assert_string_equal(event.json, in_json[i]);
	}
	assert_int_equal(event_parse("l1_data_write_hit", NULL, &event), 0);
	assert_int_equal(event.config, CACHE(L1D, WRITE, ACCESS));
}

static void test_modifiers(void **state)
{
	struct event event;

	assert_int_equal(event_parse("cycles:u", NULL, &event), 0);
	assert_true(event.exclude_kernel && !event.exclude_user);
	assert_string_equal(event.name, "cycles:u");
	assert_int_equal(event_parse("cpu-clock:k", NULL, &event), 0);
	assert_true(event.exclude_user && !event.exclude_kernel && event.is_clock);
	assert_int_equal(event_parse("r1a8:k", NULL, &event), 0);
	assert_true(event.config == 0x1a8 && event.exclude_user);
}

static void test_nonsense(void **state)
{
	static const char *const names[] = { "",
					     ":",
					     ":u",
					     "cycles:",
					     "cycles:x",
					     "cycles:uk",
					     "cycles:u:k",
					     "cycles ",
					     " cycles",
					     "Cycles",
					     "cycle",
					     "r",
					     "r:u",
					     "rxyz",
					     "r1x",
					     "r-1",
					     "r0x1",
					     "r11111111111111111",
					     "1a8",
					     "cpu-clock\n",
					     "cycles,instructions",
					     "an-event-whose-name-is-longer-than-any-that-there-is-and-does-not-fit-in" };
	struct event before = { .name = "before" }, event = before;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct diag diag = { 0 };

		if (event_parse(names[i], &diag, &event) != -EINVAL)
			fail_msg("taken: '%s'", names[i]);
		assert_non_null(strstr(diag.text, "no such event"));
	}
	assert_memory_equal(&event, &before, sizeof(event));
}

static void check_cpus(const char *text, uint32_t nr, const uint32_t *ids)
{
	CLEANUP(cpus_done) struct cpus cpus = { 0 };

	assert_int_equal(cpus_parse(text, &cpus), 0);
	assert_int_equal(cpus.nr, nr);
	assert_memory_equal(cpus.ids, ids, nr * sizeof(*ids));
}

static void test_cpu_lists(void **state)
{
	CLEANUP(cpus_done) struct cpus cpus = { 0 };

	check_cpus("0\n", 1, (const uint32_t[]){ 0 });
	check_cpus("0-3", 4, (const uint32_t[]){ 0, 1, 2, 3 });
	check_cpus("1,3-4,8191\n", 4, (const uint32_t[]){ 1, 3, 4, 8191 });
	assert_int_equal(cpus_read("online", NULL, &cpus), 0);
	assert_true(cpus.nr >= 1);
}

static void test_cpu_lists_that_make_no_sense(void **state)
{
	static const char *const lists[] = { "",
					     "\n",
					     "x",
					     "-",
					     "0-",
					     "-3",
					     "3-1",
					     "0,",
					     ",0",
					     "0,,1",
					     "0 1",
					     "8192",
					     "0-8192",
					     "0-4294967296",
					     "1-2-3",
					     "+1",
					     "00000000000000000001",
					     "3,1",
					     "1,1",
					     "0-3,2" };
	struct cpus cpus = { 0 };
	struct diag diag = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		if (cpus_parse(lists[i], &cpus) != -EBADMSG)
			fail_msg("taken: '%s'", lists[i]);
		assert_null(cpus.ids);
	}
	assert_int_equal(cpus_read("no-such-list", &diag, &cpus), -ENOENT);
	assert_non_null(strstr(diag.text, "no-such-list"));
}

/* Each look has the list: those who follow CPUs read their rings by the way, and open again what could not be opened before. */
static void test_list_is_there_at_each_look(void **state)
{
	CLEANUP(cpus_watch_done) struct cpus_watch watch = { 0 };
	CLEANUP(cpus_done) struct cpus online = { 0 };

	(void)state;
	assert_int_equal(cpus_read("online", NULL, &online), 0);
	for (int i = 0; i < 3; i++) {
		const struct cpus *seen = NULL;

		assert_int_equal(cpus_watch_look(&watch, &seen), 0);
		assert_int_equal(seen->nr, online.nr);
		assert_memory_equal(seen->ids, online.ids, online.nr * sizeof(*online.ids));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_list_is_there_at_each_look),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_all_names),
		cmocka_unit_test(test_modifiers),
		cmocka_unit_test(test_nonsense),
		cmocka_unit_test(test_cpu_lists),
		cmocka_unit_test(test_cpu_lists_that_make_no_sense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
