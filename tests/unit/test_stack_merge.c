// SPDX-License-Identifier: Apache-2.0
/* Where a run is put whose end was not found. Native frames are letters, leaf first, and 'L' is the interpreter's loop. Frames of the
 * runtime are digits, its mark is '!'. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "stacks/stack_merge.h"

#define ENTRY(at) { RUNTIME_ITEM_ENTRY, at }
#define OTHER { RUNTIME_ITEM_OTHER, 0 }
#define MERGED(natives, ...) \
	merged(natives, sizeof((struct runtime_item[]){ __VA_ARGS__ }) / sizeof(struct runtime_item), \
	       (struct runtime_item[]){ __VA_ARGS__ })

static const char *natives_shown;
static char shown[64];

static int add(char what)
{
	shown[strlen(shown)] = what;
	return 0;
}

static int take_native(void *arg, uint32_t number)
{
	return add(natives_shown[number]);
}

static bool is_loop(void *arg, uint32_t number)
{
	return natives_shown[number] == 'L';
}

static int take_end(void *arg, bool has_more)
{
	return has_more ? add('?') : 0;
}

static int take_item(void *arg, uint32_t frame)
{
	return add((char)frame);
}

static const char *merged(const char *natives, uint32_t nr, const struct runtime_item *items)
{
	const struct stack_merge_sink sink = { .native = take_native, .is_loop = is_loop, .end = take_end, .item = take_item };

	natives_shown = natives;
	memset(shown, 0, sizeof(shown));
	assert_int_equal(stack_merge((uint32_t)strlen(natives), &(struct runtime_stack){ .items = items, .nr = nr }, &sink), 0);
	return shown;
}

/* 2 called C code, which called 1. The C frames are between the two, and the mark is behind 2. */
static void test_open_run_behind_another(void **state)
{
	assert_string_equal(MERGED("aLbcLdLe", { '1', 0 }, ENTRY(1), { '2', 0 }, { '3', 0 }, { '!', 0 }), "a1bc23!dLe");
	assert_string_equal(MERGED("aLbcLdLe", { '1', 0 }, ENTRY(1), { '!', 0 }), "a1!bcLdLe");
}

static void test_open_run_at_leaf(void **state)
{
	assert_string_equal(MERGED("abLc", { '1', 0 }, { '2', 0 }, { '!', 0 }), "ab12!c");
	assert_string_equal(MERGED("Lc", { '1', 0 }, { '!', 0 }), "1!c");
	assert_string_equal(MERGED("Lc", { '!', 0 }), "!Lc");
}

/* Its activation was not walked: the frames in between are unknown. */
static void test_open_run_without_place(void **state)
{
	assert_string_equal(MERGED("aLbc", { '1', 0 }, ENTRY(1), { '2', 0 }, { '!', 0 }), "a1bc?2!");
	assert_string_equal(MERGED("aLbc", { '1', 0 }, ENTRY(RUNTIME_ITEM_UNPLACED), { '2', 0 }, { '!', 0 }), "aLbc?12!");
}

/* A runtime that calls another: each one's runs come in order, but behind those of the first runtime. */
static void test_two_runtimes(void **state)
{
	assert_string_equal(MERGED("aLbLcLd", { '1', 0 }, ENTRY(1), { '2', 0 }, ENTRY(5), OTHER, { '3', 0 }, ENTRY(3)), "a1b3c2d");
	assert_string_equal(MERGED("aLbLcLd", { '2', 0 }, ENTRY(5), OTHER, { '1', 0 }, ENTRY(RUNTIME_ITEM_AT_LEAF), { '3', 0 }, ENTRY(3)),
			    "1aLb3c2d");
	assert_string_equal(MERGED("aLbLc", { '2', 0 }, ENTRY(3), OTHER, { '1', 0 }, ENTRY(1), { '9', 0 }, ENTRY(RUNTIME_ITEM_UNPLACED)),
			    "a1b2c?9");
}

/* The first runtime's frames were not all found: its mark is behind them, not behind the other's. */
static void test_two_runtimes_one_open(void **state)
{
	assert_string_equal(MERGED("aLbLcLd", { '1', 0 }, ENTRY(3), { '2', 0 }, { '!', 0 }, OTHER, { '3', 0 }, ENTRY(1)), "a3b1c2!d");
	assert_string_equal(MERGED("aLbLc", { '1', 0 }, ENTRY(3), OTHER, { '!', 0 }), "!aLb1c");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_open_run_behind_another),
		cmocka_unit_test(test_open_run_at_leaf),
		cmocka_unit_test(test_open_run_without_place),
		cmocka_unit_test(test_two_runtimes),
		cmocka_unit_test(test_two_runtimes_one_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
