// SPDX-License-Identifier: Apache-2.0
/* How long a name is used, and how much memory names may take. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "stacks/known_names.h"

static struct frame_table window;

static int set_up(void **state)
{
	window = FRAME_TABLE_INIT(64 << 20);
	*state = known_names_new();
	return *state ? 0 : -1;
}

static int tear_down(void **state)
{
	frame_table_done(&window);
	known_names_free(*state);
	return 0;
}

static struct frame_key key_of(uint64_t code)
{
	return (struct frame_key){ .code = code, .tgid = 7, .generation = 3 };
}

/* Returns its number in the window. */
static uint32_t add(uint64_t code, const char *name, uint32_t caller, bool is_lasting)
{
	struct named_frame frame = { .key = key_of(code), .caller = caller, .is_named = true, .is_lasting = is_lasting };

	assert_int_equal(frame_table_set_name(&window, &frame, name, "file"), 0);
	return interned_add(&window.frames, &frame);
}

static const char *name_of(const struct known_names *names, uint64_t code)
{
	const struct frame_key key = key_of(code);
	const struct frame_table *table;
	const struct named_frame *frame = known_names_find(names, &key, &table);

	return frame ? texts_at(&table->texts, frame->name) : NULL;
}

/* However often a name is used and learned again, the process is asked after twice the time. */
static void names_are_asked_for_again(void **state)
{
	CLEANUP(frame_table_done) struct frame_table empty = FRAME_TABLE_INIT(1 << 20);
	uint64_t now_ns = NS_PER_S, first_ns = now_ns;

	add(1, "name", INTERNED_NONE, true);
	known_names_learn(*state, &window, now_ns);
	known_names_learn(*state, &empty, now_ns);
	while (name_of(*state, 1)) {
		assert_string_equal(name_of(*state, 1), "name");
		now_ns += 10 * NS_PER_S;
		known_names_learn(*state, &window, now_ns);
		known_names_learn(*state, &empty, now_ns); /* whose names are those of the last window */
		assert_in_range(now_ns - first_ns, 0, 2 * KNOWN_NAMES_NS + 20 * NS_PER_S);
	}
	assert_in_range(now_ns - first_ns, KNOWN_NAMES_NS, 2 * KNOWN_NAMES_NS + 20 * NS_PER_S);
}

/* A mark, and a name that may be another function's at any time, are those of the last window alone. */
static void what_does_not_last_is_not_kept(void **state)
{
	CLEANUP(frame_table_done) struct frame_table next = FRAME_TABLE_INIT(1 << 20);

	add(1, "[a mark]", INTERNED_NONE, false);
	known_names_learn(*state, &window, NS_PER_S);
	assert_string_equal(name_of(*state, 1), "[a mark]");
	known_names_learn(*state, &next, 2 * NS_PER_S);
	assert_null(name_of(*state, 1));
}

/* A full table never has a frame without all functions that it is inlined into. */
static void frames_are_kept_whole(void **state)
{
	CLEANUP(frame_table_done) struct frame_table empty = FRAME_TABLE_INIT(1 << 20);
	const struct frame_table *table;
	uint32_t nr_known = 0;

	for (uint64_t code = 0; code < 100000; code += 3) {
		uint32_t outer = add(code + 2, "outer", INTERNED_NONE, true), middle = add(code + 1, "middle", outer, true);

		add(code, "inner", middle, true);
	}
	known_names_learn(*state, &window, NS_PER_S);
	known_names_learn(*state, &empty, NS_PER_S);
	for (uint64_t code = 0; code < 100000; code += 3) {
		const struct frame_key key = key_of(code);
		const struct named_frame *frame = known_names_find(*state, &key, &table);

		if (!frame)
			continue;
		nr_known++;
		frame = interned_at(&table->frames, frame->caller);
		assert_string_equal(texts_at(&table->texts, frame->name), "middle");
		frame = interned_at(&table->frames, frame->caller);
		assert_string_equal(texts_at(&table->texts, frame->name), "outer");
		assert_int_equal(frame->caller, INTERNED_NONE);
	}
	assert_in_range(nr_known, 1000, 30000);
}

/* Nor is what was learned with it; what comes later is. */
static void what_has_no_room_is_not_kept(void **state)
{
	const size_t size = 3 << 20;
	CLEANUP(freep) char *name = calloc(1, size + 1);

	assert_non_null(name);
	memset(name, 'x', size);
	add(7, "before it", INTERNED_NONE, true);
	add(1, name, INTERNED_NONE, true);
	for (uint64_t i = 1; i < 5; i++)
		known_names_learn(*state, &window, i * NS_PER_S);
	frame_table_done(&window);
	window = FRAME_TABLE_INIT(64 << 20);
	add(2, "name", INTERNED_NONE, true);
	known_names_learn(*state, &window, 5 * NS_PER_S);
	assert_string_equal(name_of(*state, 2), "name");
}

#define test(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = { test(names_are_asked_for_again), test(what_does_not_last_is_not_kept),
					    test(frames_are_kept_whole), test(what_has_no_room_is_not_kept) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
