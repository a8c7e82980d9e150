// SPDX-License-Identifier: Apache-2.0
/* All of a thread's time, under the frame that says how it was spent. */
#include "closed_window.h"
#include "kernel_records.h"
#include "offcpu/wall.h"

#define USER 77u
#define KERNEL 78u

static struct profile *profile;
static struct stack_recorder *recorder;
static struct process_table *processes;
static struct stack_builder *builder;
static struct closed closed;
static struct account account;
static struct wall *wall;

static void begin(bool kernel_stacks)
{
	profile = profile_new();
	recorder = stack_recorder_new(false, &account);
	processes = process_table_new(NULL);
	wall = wall_new(kernel_stacks, false, profile);
	assert_true(profile && recorder && processes && wall);
}

static int set_up(void **state)
{
	begin(true);
	return 0;
}

static int tear_down(void **state)
{
	wall_free(wall);
	closed_done(&closed);
	stack_recorder_free(recorder, processes);
	process_table_free(processes);
	profile_free(profile);
	return 0;
}

static void send_sample(enum sonde_stack_state kernel_state)
{
	send_sample_record(recorder, (struct sonde_sample_record){ .cpu = 1,
								   .user_stack = USER,
								   .kernel_stack = KERNEL,
								   .tgid = TGID,
								   .tid = 5,
								   .user_state = SONDE_STACK_STORED,
								   .kernel_state = (uint8_t)kernel_state,
								   .comm = "one" });
}

/* All stacks are known. */
static void resolve(void)
{
	const struct stack_walker walker = { 0 };

	send_stack_record(recorder, (struct sonde_stack_record){ .tgid = TGID, .hash = USER, .nr_frames = 1 }, &(uint64_t){ USER });
	send_stack_record(recorder, (struct sonde_stack_record){ .hash = KERNEL, .nr_frames = 1 }, &(uint64_t){ KERNEL });
	assert_int_equal(stack_recorder_resolve(recorder, processes, &walker), 0);
	close_recorder(&closed, recorder, processes, &account);
	builder = closed_builder(&closed, profile);
}

static void add_wait(const struct sonde_wait_key *key, uint64_t user_stack, uint64_t off_ns, uint64_t queued_ns)
{
	const struct wait_entry entry = {
		.key = *key, .user_stack = user_stack, .sum = { .nr_waits = 3, .off_ns = off_ns, .queued_ns = queued_ns }
	};

	assert_int_equal(wall_sum(wall, builder, &entry), 0);
}

static void send_sum(enum sonde_wait_what what, uint32_t tid, const char *comm, uint16_t wait_state, uint64_t off_ns, uint64_t queued_ns)
{
	bool is_off = what == SONDE_WAIT_OFF;
	struct sonde_wait_key key = wait_key(tid, comm, wait_state, is_off ? USER : 0, is_off ? KERNEL : 0);

	key.what = (uint8_t)what;
	add_wait(&key, key.user_stack, off_ns, queued_ns);
}

static void append_names(uint32_t stack, char *to, size_t size)
{
	const uint32_t *locations;
	uint32_t nr = 0;

	if (stack != PROFILE_NONE)
		locations = profile_stack_at(profile, stack, &nr);
	for (uint32_t i = nr; i-- > 0;) {
		const struct profile_location *location = profile_location_at(profile, locations[i]);

		snprintf(to + strlen(to), size - strlen(to), ";%s%s",
			 profile_string_text(profile, profile_function_at(profile, location->function)->name),
			 location->kind == FRAME_KERNEL ? "_[k]" : "");
	}
}

/* As folded: "comm/tid;root;...;leaf" has that many nanoseconds. */
static void check_time(const char *want, int64_t ns)
{
	for (uint32_t i = 0; i < profile_nr_samples(profile); i++) {
		const struct profile_sample *sample = profile_sample_at(profile, i);
		char line[256];

		snprintf(line, sizeof(line), "%s/%u", profile_string_text(profile, sample->comm), sample->tid);
		append_names(sample->user_stack, line, sizeof(line));
		append_names(sample->kernel_stack, line, sizeof(line));
		if (!strcmp(line, want)) {
			assert_int_equal(sample->tgid, TGID);
			assert_int_equal(sample->values[0], ns);
			return;
		}
	}
	fail_msg("nothing of %s", want);
}

static void test_parts(void **state)
{
	uint32_t nr;
	const struct profile_value_type *types = profile_value_types(profile, &nr);

	assert_int_equal(nr, 1);
	assert_string_equal(profile_string_text(profile, types[0].unit), "nanoseconds");
	send_sample(SONDE_STACK_NONE);
	send_sample(SONDE_STACK_STORED);
	send_sample(SONDE_STACK_STORED);
	resolve();
	send_sum(SONDE_WAIT_RUNNING, 5, "one", 0, 3000, 0);
	send_sum(SONDE_WAIT_RUNNING, 6, "two", 0, 7, 0);
	send_sum(SONDE_WAIT_OFF, 5, "one", 1, 1000, 10);
	send_sum(SONDE_WAIT_OFF, 5, "one", 1, 100, 1); /* the same stacks with another waker */
	send_sum(SONDE_WAIT_OFF, 5, "one", 0, 500, 500);
	send_sum(SONDE_WAIT_OFF, 6, "two", 2, 50, 90); /* the time in a queue cannot exceed the time off the CPU */
	assert_int_equal(wall_finish(wall, builder, closed.window.samples), 0);
	check_time("one/5;[on-cpu];[unknown]", 1000);
	check_time("one/5;[on-cpu];[unknown];[unknown]_[k]", 2000);
	check_time("one/5;[blocked: other];[unknown];[unknown]_[k]", 990 + 99);
	check_time("one/5;[runnable];[unknown];[unknown]_[k]", 10 + 1 + 500);
	check_time("two/6;[on-cpu];[not sampled]", 7);
	check_time("two/6;[runnable];[unknown];[unknown]_[k]", 50);
	assert_int_equal(profile_nr_samples(profile), 6);
}

static void test_without_kernel_stacks(void **state)
{
	tear_down(NULL);
	begin(false);
	send_sample(SONDE_STACK_STORED);
	resolve();
	send_sum(SONDE_WAIT_RUNNING, 5, "one", 0, 3000, 0);
	send_sum(SONDE_WAIT_OFF, 5, "one", 1, 1000, 0);
	assert_int_equal(wall_finish(wall, builder, closed.window.samples), 0);
	check_time("one/5;[on-cpu];[unknown]", 3000);
	check_time("one/5;[blocked: other];[unknown]", 1000);
}

/* A kernel thread has no user stack: the frame that says how its time was spent is there alone. A side that was lost is reported, too. */
static void test_one_side(void **state)
{
	struct sonde_wait_key key = wait_key(5, "k", 1, 0, KERNEL);

	resolve();
	add_wait(&key, 0, 10, 0);
	key.user_state = SONDE_STACK_FULL;
	add_wait(&key, 0, 20, 0);
	key.user_state = SONDE_STACK_STORED; /* a stack from before the recording was found elsewhere */
	add_wait(&key, USER, 30, 0);
	assert_int_equal(wall_finish(wall, builder, closed.window.samples), 0);
	check_time("k/5;[blocked: other];[unknown];[unknown]_[k]", 30);
	check_time("k/5;[blocked: other];[unknown]_[k]", 10);
	check_time("k/5;[blocked: other];" PROFILE_MISSED_USER ";[unknown]_[k]", 20);
}

#define test(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = { test(test_parts), test(test_without_kernel_stacks), test(test_one_side) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
