// SPDX-License-Identifier: Apache-2.0
/* What belongs to one window and what to the next: samples, payloads, counts; and names that are kept across both. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "closed_window.h"
#include "kernel_records.h"
#include "naming/name_cache.h"

#define HASH 77u

static struct stack_recorder *recorder;
static struct process_table *processes;
static struct account account;

static int set_up(void **state)
{
	account = (struct account){ 0 };
	recorder = stack_recorder_new(false, &account);
	processes = process_table_new(NULL);
	return !recorder || !processes;
}

static int tear_down(void **state)
{
	stack_recorder_free(recorder, processes);
	process_table_free(processes);
	return 0;
}

static void send_stack(uint64_t hash)
{
	const uint64_t frames[] = { hash, hash + 1 };

	send_stack_record(recorder, (struct sonde_stack_record){ .tgid = TGID, .hash = hash, .nr_frames = 2 }, frames);
}

static void send_sample(enum sonde_stack_state state, uint64_t stack, uint64_t time_ns)
{
	send_sample_record(recorder, (struct sonde_sample_record){ .time_ns = time_ns,
								   .user_stack = stack,
								   .tgid = TGID,
								   .tid = TGID,
								   .user_state = (uint8_t)state });
}

static int walk(void *arg, const struct sonde_deferred_record *record, struct deferred_stack *ret_stack)
{
	static const uint64_t frames[] = { 1, 2, 3 };

	*ret_stack = (struct deferred_stack){ .frames = frames, .hash = 4711, .nr_walked = 3, .nr_frames = 3 };
	return 0;
}

static void resolve(void)
{
	const struct stack_walker walker = { .walk = walk };

	assert_int_equal(stack_recorder_resolve(recorder, processes, &walker), 0);
}

static struct closed_window end_window(uint64_t border_ns)
{
	struct closed_window window;

	assert_int_equal(stack_recorder_cut(recorder, border_ns), 0);
	resolve();
	assert_int_equal(stack_recorder_close(recorder, processes, &window), 0);
	return window;
}

/* Checks a window's number of samples, then frees it. */
static void check_window(struct closed_window window, uint64_t nr_samples, bool has_stack)
{
	assert_int_equal(samples_count(window.samples), nr_samples);
	assert_int_equal(stack_table_find(window.store->stacks, HASH) != NULL, has_stack);
	samples_free(window.samples);
	stack_recorder_done(recorder, window.store, processes);
}

/* Samples belong to the window of their time, whenever they arrive. */
static void samples_are_of_the_window_that_they_were_taken_in(void **state)
{
	struct closed_window first, second;

	send_stack(HASH);
	send_sample(SONDE_STACK_STORED, HASH, 10);
	resolve();
	send_sample(SONDE_STACK_STORED, HASH, 101); /* of the next window: it arrives while this one is cut */
	send_sample(SONDE_STACK_STORED, HASH, 99);
	first = end_window(100);
	send_sample(SONDE_STACK_STORED, HASH, 98); /* too late: it is still counted once */
	resolve();
	second = end_window(200);
	check_window(first, 2, true);
	check_window(second, 2, true);
}

/* Samples that are read after the border, but before the window is cut, wait for the next window. */
static void samples_wait_for_their_window(void **state)
{
	struct closed_window first;

	send_stack(HASH);
	stack_recorder_set_border(recorder, 100);
	send_sample(SONDE_STACK_STORED, HASH, 99);
	send_sample(SONDE_STACK_STORED, HASH, 100);
	resolve();
	send_sample(SONDE_STACK_STORED, HASH, 105);
	resolve();
	first = end_window(100);
	send_sample(SONDE_STACK_STORED, HASH, 106);
	resolve();
	check_window(first, 1, true);
	stack_recorder_set_border(recorder, 200);
	send_sample(SONDE_STACK_STORED, HASH, 201); /* if the recording ends before the window is cut, it has them all */
	resolve();
	assert_int_equal(stack_recorder_give_up(recorder, processes), 0);
	check_window(end_window(UINT64_MAX), 4, true);
}

/* A thread is requested to send its stack, and sleeps in the kernel for hours. The other payloads of its sample are gone by then. */
static void a_deferred_stack_is_not_waited_for_longer_than_its_bodies_are_kept(void **state)
{
	struct closed_window window;

	send_stack(HASH);
	send_sample_record(recorder, (struct sonde_sample_record){ .time_ns = 10,
								   .user_stack = 5,
								   .kernel_stack = HASH,
								   .tgid = TGID,
								   .tid = TGID,
								   .user_state = SONDE_STACK_DEFERRED,
								   .kernel_state = SONDE_STACK_STORED });
	resolve();
	check_window(end_window(NS_PER_S), 0, true);
	window = end_window(2 * NS_PER_S);
	assert_int_equal(samples_nr(window.samples), 1);
	assert_int_equal(samples_at(window.samples, 0)->key.ids.user_state, SONDE_STACK_LOST);
	check_window(window, 1, true);
}

/* A payload sent just before the border is in both windows. Two windows later no sample may refer to it, and it is freed. */
static void bodies_go_on_as_long_as_they_are_named(void **state)
{
	send_stack(HASH);
	send_sample(SONDE_STACK_STORED, HASH, 10);
	resolve();
	check_window(end_window(100), 1, true);
	send_sample(SONDE_STACK_STORED, HASH, 110); /* if the kernel side had seen the border, the payload would have been sent again */
	resolve();
	check_window(end_window(200), 1, true);
	check_window(end_window(300), 0, false);
	send_sample(SONDE_STACK_STORED, HASH, 310);
	resolve();
	check_window(end_window(400), 1, false);
}

/* A wait that spans many windows has its stack in each of them. */
static void what_goes_on_is_kept(void **state)
{
	const struct stack_ids ids = { .user_stack = HASH, .user_state = SONDE_STACK_STORED, .tgid = TGID };

	send_stack(HASH);
	resolve();
	for (uint64_t i = 1; i < 8; i++) {
		struct closed_window window;

		assert_int_equal(stack_recorder_cut(recorder, i * 100), 0);
		assert_int_equal(stack_recorder_keep(recorder, &ids, 0, processes), 0);
		assert_int_equal(stack_recorder_keep_on(recorder, &ids, 0, processes), 0);
		assert_int_equal(stack_recorder_close(recorder, processes, &window), 0);
		check_window(window, 0, true);
	}
}

/* A sample that waits for its thread to send the stack is not lost at the border, and not counted twice. */
static void raw_samples_wait_over_the_border(void **state)
{
	struct closed_window second;

	send_sample(SONDE_STACK_DEFERRED, 5, 10);
	resolve();
	check_window(end_window(100), 0, false);
	send_deferred_record(recorder, 5);
	resolve();
	second = end_window(200);
	assert_int_equal(samples_at(second.samples, 0)->key.ids.user_state, SONDE_STACK_STORED);
	assert_non_null(stack_table_find(second.store->stacks, 4711));
	check_window(second, 1, false);
}

/* A deferred stack that arrived before the border is also found after it. */
static void deferred_stacks_are_found_behind_the_border(void **state)
{
	struct closed_window second;

	send_deferred_record(recorder, 5);
	resolve();
	check_window(end_window(100), 0, false);
	send_sample(SONDE_STACK_DEFERRED, 5, 110);
	resolve();
	second = end_window(200);
	assert_int_equal(samples_at(second.samples, 0)->key.ids.user_state, SONDE_STACK_STORED);
	check_window(second, 1, false);
}

static void stores_that_are_read_stay(void **state)
{
	struct closed_window windows[5];

	for (uint64_t i = 0; i < 5; i++) {
		send_stack(HASH + i);
		resolve();
		windows[i] = end_window((i + 1) * 100);
	}
	for (uint64_t i = 0; i < 5; i++) {
		assert_non_null(stack_table_find(windows[i].store->stacks, HASH + i));
		samples_free(windows[i].samples);
		stack_recorder_done(recorder, windows[i].store, processes);
	}
}

static void counts_are_differences(void **state)
{
	struct account_counts told = { 0 }, all = { .ticks = 10, .nr_frames_unnamed = 3 }, since = account_counts_since(&told, &all),
			      sum = since;

	assert_int_equal(since.ticks, 10);
	all.ticks = 25;
	all.nr_frames_unnamed = 1; /* two got their names after all */
	since = account_counts_since(&told, &all);
	assert_int_equal(since.ticks, 15);
	assert_int_equal(since.nr_frames_unnamed, 0);
	account_counts_add(&sum, &since);
	all.nr_frames_unnamed = 4;
	since = account_counts_since(&told, &all);
	assert_int_equal(since.nr_frames_unnamed, 1); /* since the last report */
	account_counts_add(&sum, &since);
	assert_int_equal(sum.ticks, 25);
	assert_int_equal(sum.nr_frames_unnamed, 4);
}

#define CACHE_BYTES (1u << 20)

static struct name_cache_key key_of(uint64_t address)
{
	return (struct name_cache_key){ .file = 3, .address = address };
}

static void add_name(struct name_cache *cache, uint64_t address)
{
	char text[64];
	const struct symbol_name names[] = {
		{ .name = text, .system_name = "inner", .file = "x.c", .start = address, .line = 7, .start_line = 5 },
		{ .name = "outer", .system_name = "", .file = "" }
	};
	const struct name_cache_key key = key_of(address);
	const struct symbol_extent alone = { 0 };

	snprintf(text, sizeof(text), "function_%llu", (unsigned long long)address);
	name_cache_add(cache, &key, &alone, names, 2);
}

/* Names in use stay, others are dropped, and all together have a limit. */
static void names_are_kept_up_to_a_limit(void **state)
{
	struct name_cache *cache = name_cache_new(CACHE_BYTES);
	const struct name_cache_key wanted = key_of(1), other = { .file = 4, .address = 1 },
				    fetched = { .file = 3, .fetched = 1, .address = 1 }, old = key_of(2);
	const struct symbol_extent everything = { .end = UINT64_MAX };
	struct symbol_name names[4];
	uint32_t nr;

	assert_non_null(cache);
	add_name(cache, 1);
	add_name(cache, 2);
	for (uint64_t i = 3; i < 100000; i++) {
		add_name(cache, i);
		assert_true(name_cache_find(cache, &wanted, names, 4, &nr));
		assert_true(name_cache_bytes(cache) <= 2 * CACHE_BYTES);
	}
	assert_int_equal(nr, 2);
	assert_string_equal(names[0].name, "function_1");
	assert_string_equal(names[0].file, "x.c");
	assert_int_equal(names[0].line, 7);
	assert_string_equal(names[1].name, "outer");
	assert_false(name_cache_find(cache, &old, names, 4, &nr));
	assert_false(name_cache_find(cache, &other, names, 4, &nr));
	assert_false(name_cache_find(cache, &fetched, names, 4, &nr));
	name_cache_add(cache, &other, &everything, NULL, 0); /* that there is no name is remembered as well */
	assert_true(name_cache_find(cache, &other, names, 4, &nr));
	assert_int_equal(nr, 0);
	name_cache_free(cache);
}

/* An address between two that are known has the name of neither, unless the file said so. */
static void names_are_those_of_their_extents(void **state)
{
	struct name_cache *cache = name_cache_new(CACHE_BYTES);
	const struct symbol_extent extents[] = { { 100, 200 }, { 150, 400 }, { 50, 120 }, { 500, 501 } };
	const uint64_t addresses[] = { 150, 300, 60, 600 }; /* of the last one not */
	static const char *const expected[1000] = { [50] = "2",	 [99] = "2",  [100] = "0", [199] = "0",
						    [200] = "1", [399] = "1", [600] = "3" };
	struct symbol_name names[4];
	uint32_t nr;

	for (uint32_t i = 0; i < ARRAY_SIZE(addresses); i++) {
		const char text[] = { (char)('0' + i), '\0' };
		const struct symbol_name name = { .name = text, .system_name = "", .file = "" };
		const struct name_cache_key key = key_of(addresses[i]);

		name_cache_add(cache, &key, &extents[i], &name, 1);
	}
	for (uint64_t address = 0; address < 1000; address++) {
		const struct name_cache_key key = key_of(address);
		bool is_found = name_cache_find(cache, &key, names, 4, &nr);

		assert_int_equal(is_found, (address >= 50 && address < 400) || address == 600);
		if (expected[address])
			assert_string_equal(names[0].name, expected[address]);
	}
	name_cache_free(cache);
}

/* A file without names may have a debug file by then; what was asked for meanwhile is not older for that. */
static void that_there_is_no_name_is_asked_for_again(void **state)
{
	struct name_cache *cache = name_cache_new(CACHE_BYTES);
	const struct symbol_extent everything = { .end = UINT64_MAX }, symbol = { 100, 200 };
	const struct symbol_name name = { .name = "late", .system_name = "", .file = "" };
	const struct name_cache_key in = key_of(150), out = key_of(300);
	struct symbol_name names[4];
	uint32_t nr;

	name_cache_now(cache, NS_PER_S);
	name_cache_add(cache, &in, &everything, NULL, 0);
	for (uint64_t i = 0; i < 100000; i++) { /* the part becomes the older one, and the answer is copied */
		const struct name_cache_key other = { .file = 5 + i / 100, .address = i };

		name_cache_add(cache, &other, &symbol, &name, 1);
		assert_true(name_cache_find(cache, &in, names, 4, &nr));
	}
	assert_true(name_cache_find(cache, &in, names, 4, &nr));
	assert_int_equal(nr, 0);
	name_cache_now(cache, NS_PER_S + NAME_CACHE_NAMELESS_NS);
	assert_false(name_cache_find(cache, &in, names, 4, &nr));
	name_cache_add(cache, &in, &symbol, &name, 1);
	name_cache_now(cache, 10 * NAME_CACHE_NAMELESS_NS);
	assert_true(name_cache_find(cache, &in, names, 4, &nr));
	assert_int_equal(nr, 1);
	assert_string_equal(names[0].name, "late");
	assert_false(name_cache_find(cache, &out, names, 4, &nr));
	name_cache_free(cache);
}

#define test(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(samples_are_of_the_window_that_they_were_taken_in),
		test(samples_wait_for_their_window),
		test(a_deferred_stack_is_not_waited_for_longer_than_its_bodies_are_kept),
		test(bodies_go_on_as_long_as_they_are_named),
		test(what_goes_on_is_kept),
		test(raw_samples_wait_over_the_border),
		test(deferred_stacks_are_found_behind_the_border),
		test(stores_that_are_read_stay),
		cmocka_unit_test(counts_are_differences),
		cmocka_unit_test(names_are_kept_up_to_a_limit),
		test(that_there_is_no_name_is_asked_for_again),
		test(names_are_those_of_their_extents),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
