// SPDX-License-Identifier: Apache-2.0
/* Takes sums of waits and checks the profile made of them: values, the kind of wait, who ended it, histograms. */
#include <sys/syscall.h>

#include "closed_window.h"
#include "kernel_records.h"
#include "offcpu/wait_samples.h"
#include "offcpu/wait_stack.h"

static struct stack_recorder *stacks;
static struct stack_builder *builder;
static struct closed closed;
static struct account account;
static struct wait_samples *samples;
static struct process_table *processes;
static struct profile *profile;

static int set_up(void **state)
{
	profile = profile_new();
	stacks = stack_recorder_new(false, &account);
	processes = process_table_new(NULL);
	return !stacks || !processes || !profile;
}

static int tear_down(void **state)
{
	wait_samples_free(samples);
	samples = NULL;
	closed_done(&closed);
	stack_recorder_free(stacks, processes);
	process_table_free(processes);
	profile_free(profile);
	return 0;
}

static void send_stack(uint32_t tgid, uint64_t hash, uint64_t first)
{
	const uint64_t frames[] = { first, (first + 0x10) | (tgid ? SONDE_FRAME_RETURN : 0) };

	send_stack_record(stacks, (struct sonde_stack_record){ .tgid = tgid, .time_ns = 5, .hash = hash, .nr_frames = 2 }, frames);
}

/* User stack 1: 0x1000 from 0x1010, 2: 0x2000 from 0x2010; kernel stacks 3 and 4 likewise. */
static void begin(const struct wait_samples_options *options)
{
	static const struct stack_walker nobody;

	send_stack(TGID, 1, 0x1000);
	send_stack(TGID, 2, 0x2000);
	send_stack(0, 3, 0xffffffff81003000);
	send_stack(0, 4, 0xffffffff81004000);
	assert_int_equal(stack_recorder_resolve(stacks, processes, &nobody), 0);
	samples = wait_samples_new(options, profile);
	assert_non_null(samples);
	close_recorder(&closed, stacks, processes, &account);
	builder = closed_builder(&closed, profile);
}

static struct sonde_wait_key key_of(uint64_t user_stack, uint64_t kernel_stack, int syscall)
{
	struct sonde_wait_key key = wait_key(TGID + 1, "producer", 1, user_stack, kernel_stack);

	key.syscall = (uint16_t)syscall;
	return key;
}

static void add(const struct sonde_wait_key *key, uint64_t nr_waits, uint64_t off_ns, uint64_t min_ns, uint64_t max_ns)
{
	const struct wait_entry entry = {
		.key = *key,
		.user_stack = key->user_stack,
		.sum = { .nr_waits = nr_waits, .off_ns = off_ns, .whole_ns = off_ns, .min_ns = min_ns, .max_ns = max_ns }
	};

	assert_int_equal(wait_samples_sum(samples, builder, &entry), 0);
}

/* Leaf first. A frame without a name shows the last four digits of its address. */
static const char *text_of(uint32_t stack)
{
	static char texts[2][1024];
	static int turn;
	char *text = texts[turn ^= 1];
	const uint32_t *locations;
	uint32_t nr;

	text[0] = '\0';
	if (stack == PROFILE_NONE)
		return "none";
	locations = profile_stack_at(profile, stack, &nr);
	for (uint32_t i = 0; i < nr; i++) {
		const struct profile_location *at = profile_location_at(profile, locations[i]);
		size_t size = strlen(text);

		if (at->kind == FRAME_MARK || at->kind == FRAME_MISSED)
			snprintf(text + size, sizeof(texts[0]) - size, "%s%s", i ? " " : "",
				 profile_string_text(profile, profile_function_at(profile, at->function)->name));
		else
			snprintf(text + size, sizeof(texts[0]) - size, "%s%04x", i ? " " : "", (unsigned)(at->pc & 0xffff));
	}
	return text;
}

static void check_stacks(uint32_t i, const char *user, const char *kernel)
{
	const struct profile_sample *sample = profile_sample_at(profile, i);

	assert_string_equal(text_of(sample->user_stack), user);
	assert_string_equal(text_of(sample->kernel_stack), kernel);
}

static void test_values(void **state)
{
	struct sonde_wait_key key = key_of(1, 3, SYS_futex);
	const struct profile_value_type *types;
	const struct profile_sample *sample;
	uint32_t nr;

	begin(&(struct wait_samples_options){ .kernel_stacks = true });
	add(&key, 3, 600, 100, 300);
	key.state = 2; /* another sum, equal in a report */
	add(&key, 2, 1000, 50, 950);
	types = profile_value_types(profile, &nr);
	assert_int_equal(nr, WAIT_VALUE_COUNT);
	assert_string_equal(profile_string_text(profile, types[WAIT_VALUE_SHORTEST].type), "shortest");
	assert_int_equal(profile_shown_value(profile), WAIT_VALUE_BLOCKED);
	assert_int_equal(profile_nr_samples(profile), 1);
	sample = profile_sample_at(profile, 0);
	assert_int_equal(sample->values[WAIT_VALUE_WAITS], 5);
	assert_int_equal(sample->values[WAIT_VALUE_BLOCKED], 1600);
	assert_int_equal(sample->values[WAIT_VALUE_SHORTEST], 50);
	assert_int_equal(sample->values[WAIT_VALUE_LONGEST], 950);
	assert_int_equal(sample->tid, TGID + 1);
	assert_int_equal(profile_account(profile)->stopped[SONDE_STOP_COMPLETE], 5);
}

static void test_count_is_shown(void **state)
{
	begin(&(struct wait_samples_options){ .show_count = true });
	assert_int_equal(profile_shown_value(profile), WAIT_VALUE_WAITS);
}

/* The mark is at the leaf end of what is shown. */
static void test_mark(void **state)
{
	struct sonde_wait_key key = key_of(1, 3, SYS_futex);

	begin(&(struct wait_samples_options){ .kernel_stacks = true });
	add(&key, 1, 1, 1, 1);
	check_stacks(0, "1000 1010", "[futex] 3000 3010");
	key = key_of(0, 3, SONDE_NO_SYSCALL);
	add(&key, 1, 1, 1, 1);
	check_stacks(1, "none", "[other] 3000 3010");
	key = key_of(1, 0, SYS_nanosleep);
	add(&key, 1, 1, 1, 1);
	check_stacks(2, "[sleep] 1000 1010", "none");
	key = key_of(1, 99, SYS_nanosleep); /* that stack's payload never arrived */
	key.state = SONDE_WAIT_PREEMPTED;
	add(&key, 1, 1, 1, 1);
	check_stacks(3, "[preempted] 1000 1010", "[Missed Kernel Stack]");
	key = key_of(0, 0, SYS_wait4);
	add(&key, 1, 1, 1, 1);
	check_stacks(4, "none", "[children]");
	key = key_of(98, 99, SYS_wait4);
	add(&key, 1, 1, 1, 1);
	check_stacks(5, "[Missed User Stack]", "[Missed Kernel Stack]");
}

static void test_without_kernel_stacks(void **state)
{
	const struct sonde_wait_key key = key_of(1, 3, SYS_nanosleep);

	begin(&(struct wait_samples_options){ 0 });
	add(&key, 1, 1, 1, 1);
	check_stacks(0, "[sleep] 1000 1010", "none");
}

static void send_waker(uint64_t hash, const struct sonde_wait_key *key)
{
	const struct sonde_waker_record record = waker_record(hash, *key);

	assert_int_equal(waker_table_record(closed.window.store->wakers, &record), 0);
}

/* Root first, as in flame graphs and folded lines: the wait's frames, the mark, the waker's frames from leaf to root, its name. */
static void test_waker(void **state)
{
	struct sonde_wait_key key = key_of(1, 3, SYS_futex), waker = key_of(2, 4, SYS_futex);

	begin(&(struct wait_samples_options){ .kernel_stacks = true, .wake = true });
	strcpy(waker.comm, "consumer");
	send_waker(7, &waker);
	send_waker(7, &waker); /* sent again */
	key.waker = 7;
	add(&key, 1, 1, 1, 1);
	check_stacks(0, "1000 1010", "consumer 2010 2000 4010 4000 -- [futex] 3000 3010");
	key.waker = 8; /* its record was lost */
	add(&key, 1, 1, 1, 1);
	check_stacks(1, "1000 1010", "[waker not known] -- [futex] 3000 3010");
	waker = (struct sonde_wait_key){ .kernel_stack = 4, .kernel_state = SONDE_STACK_STORED, .comm = "swapper/0" };
	send_waker(9, &waker);
	key.waker = 9;
	add(&key, 1, 1, 1, 1);
	check_stacks(2, "1000 1010", "[interrupt] 4010 4000 -- [futex] 3000 3010");
	waker = key_of(97, 4, SYS_futex);
	send_waker(10, &waker);
	key.waker = 10;
	add(&key, 1, 1, 1, 1);
	check_stacks(3, "1000 1010", "producer [Missed User Stack] 4010 4000 -- [futex] 3000 3010");
	key.waker = 0; /* no waker: it was preempted, or still waits */
	add(&key, 1, 1, 1, 1);
	check_stacks(4, "1000 1010", "[futex] 3000 3010");
	assert_int_equal(profile_account(profile)->stopped[SONDE_STOP_COMPLETE], 5); /* counts waits, not wakers */
}

/* If two wakers have one hash, neither is shown. */
static void test_waker_hash_of_two(void **state)
{
	struct sonde_wait_key key = key_of(1, 3, SYS_futex), waker = key_of(2, 4, SYS_futex);

	begin(&(struct wait_samples_options){ .wake = true, .kernel_stacks = true });
	send_waker(7, &waker);
	strcpy(waker.comm, "impostor");
	send_waker(7, &waker);
	key.waker = 7;
	add(&key, 3, 1, 1, 1);
	check_stacks(0, "1000 1010", "[waker not known] -- [futex] 3000 3010");
	assert_int_equal(profile_account(profile)->missed_collided, 3);
}

/* A wait whose stacks belong to another process, or to the process's earlier program. */
static void test_hash_of_another(void **state)
{
	struct sonde_wait_key key = key_of(1, 3, SYS_futex);

	begin(&(struct wait_samples_options){ .kernel_stacks = true });
	key.tgid++;
	add(&key, 2, 1, 1, 1);
	check_stacks(0, PROFILE_MISSED_USER, "[futex] 3000 3010");
	key.tgid--;
	key.generation++;
	add(&key, 1, 1, 1, 1);
	check_stacks(1, PROFILE_MISSED_USER, "[futex] 3000 3010");
	assert_int_equal(profile_account(profile)->missed_collided, 3);
}

static void test_waker_without_kernel_stacks(void **state)
{
	struct sonde_wait_key key = key_of(1, 3, SYS_futex), waker = key_of(2, 4, SYS_futex);

	begin(&(struct wait_samples_options){ .wake = true });
	send_waker(7, &waker);
	key.waker = 7;
	add(&key, 1, 1, 1, 1);
	check_stacks(0, "producer 2010 2000 -- [futex] 1000 1010", "none");
}

static void test_histograms(void **state)
{
	struct sonde_wait_key key = key_of(1, 3, SYS_futex), other = key_of(2, 3, SYS_futex);
	const struct profile_histogram *whole, *of_stack;

	begin(&(struct wait_samples_options){ .kernel_stacks = true, .histograms = true });
	add(&key, 3, 29600, 9000, 11000); /* the parts below a microsecond do not add up */
	add(&other, 1, 5700, 5700, 5700);
	assert_int_equal(wait_samples_slot(samples, &(struct wait_slot_entry){ .slot = { .key = key, .slot = 3 }, .nr_waits = 3 }), 0);
	assert_int_equal(wait_samples_slot(samples, &(struct wait_slot_entry){ .slot = { .key = other, .slot = 2 }, .nr_waits = 1 }), 0);
	key.waker = 5; /* a sum that found no room */
	assert_int_equal(wait_samples_slot(samples, &(struct wait_slot_entry){ .slot = { .key = key, .slot = 200 }, .nr_waits = 1 }), 0);
	assert_int_equal(profile_nr_histograms(profile), 3);
	whole = profile_histogram_at(profile, 0);
	of_stack = profile_histogram_at(profile, 1);
	assert_int_equal(whole->user_stack, PROFILE_NONE);
	assert_int_equal(histogram_count(&whole->histogram), 5);
	assert_int_equal(whole->histogram.sum, 35);
	assert_int_equal(of_stack->user_stack, profile_sample_at(profile, 0)->user_stack);
	assert_int_equal(of_stack->histogram.slots[3], 3);
	assert_int_equal(histogram_count(&of_stack->histogram), 3);
	assert_int_equal(of_stack->histogram.sum, 30);
}

/* --- kinds ------------------------------------------------------------------------------------------------------------------- */

static const char *word_at(const void *words, uint32_t i)
{
	return ((const char *const *)words)[i];
}

#define CHECK_KIND(want, the_state, the_syscall, ...) \
	assert_string_equal( \
	    wait_kind_name(wait_kind_of(&(struct wait_facts){ .state = the_state, \
							      .syscall = the_syscall, \
							      .function_at = word_at, \
							      .functions = (const char *const[]){ __VA_ARGS__ __VA_OPT__(, ) NULL } })), \
	    want)

static void test_kinds(void **state)
{
	CHECK_KIND("futex", 1, SYS_futex, "__schedule", "schedule", "futex_wait_queue", "do_futex");
	CHECK_KIND("futex", 1, SYS_futex); /* no names */
	CHECK_KIND("preempted", 0, SYS_futex, "__schedule", "preempt_schedule", "futex_wake");
	CHECK_KIND("yield", 0, SYS_sched_yield, "schedule", "do_sched_yield");
	CHECK_KIND("pipe", 1, SYS_read, "schedule", "pipe_read.isra.0", "vfs_read");
	CHECK_KIND("other", 1, SYS_read, "schedule", "pipe_reader", "vfs_read"); /* the prefix is not enough */
	CHECK_KIND("other", 1, SYS_read);
	CHECK_KIND("lock", 2, SYS_read, "schedule", "rwsem_down_read_slowpath", "ext4_file_read_iter");
	CHECK_KIND("disk", 2, SYS_read, "io_schedule", "folio_wait_bit_common", "filemap_update_page");
	CHECK_KIND("page fault", 2, SONDE_NO_SYSCALL, "io_schedule", "folio_wait_bit_common", "filemap_fault", "handle_mm_fault",
		   "exc_page_fault");
	/* in a system call as well */
	CHECK_KIND("page fault", 2, SYS_read, "io_schedule", "folio_wait_bit_common", "handle_mm_fault", "faultin_page");
	CHECK_KIND("lock", 2, SONDE_NO_SYSCALL, "schedule", "rwsem_down_read_slowpath", "do_user_addr_fault", "exc_page_fault");
	CHECK_KIND("poll", 1, SYS_ppoll, "schedule", "schedule_hrtimeout_range", "do_sys_poll");
	CHECK_KIND("vfork", 2, SYS_clone, "schedule_timeout", "wait_for_completion_state", "kernel_clone");
	CHECK_KIND("lock", 2, SYS_clone, "schedule", "__mutex_lock", "kernel_clone");
	CHECK_KIND("stopped", 4, SYS_read, "schedule", "pipe_read");
	CHECK_KIND("stopped", 8, SONDE_NO_SYSCALL);
	/* searched from the leaf on: other frames around the match do not count */
	CHECK_KIND("frozen", 1, SONDE_NO_SYSCALL, "schedule", "get_signal", "cgroup_enter_frozen");
	CHECK_KIND("frozen", 1, SONDE_NO_SYSCALL, "schedule", "get_signal", "exit_to_user_mode_loop");
	CHECK_KIND("exit", 2, SONDE_NO_SYSCALL, "schedule", "do_exit", "do_group_exit", "get_signal");
	CHECK_KIND("select", 1, SONDE_NO_SYSCALL, "schedule", "poll_schedule_timeout.constprop.0", "do_select");
	CHECK_KIND("exit", 0x80 | 0x10, SYS_exit);
	CHECK_KIND("kernel thread", 0x402, SONDE_NO_SYSCALL, "schedule", "worker_thread", "kthread");
	CHECK_KIND("disk", 2, SONDE_NO_SYSCALL, "io_schedule", "bit_wait_io", "worker_thread", "kthread");
	CHECK_KIND("sleep", 1, SONDE_NO_SYSCALL, "schedule", "schedule_timeout", "nobody_knows");
	/* the same with the first two missing */
	CHECK_KIND("kernel thread", 1, SONDE_NO_SYSCALL, "schedule", "schedule_timeout", "kcompactd", "kthread");
	CHECK_KIND("kernel thread", 1, SONDE_NO_SYSCALL, "kcompactd", "kthread");
}

static void test_kind_names(void **state)
{
	for (int i = 0; i < WAIT_KIND_COUNT; i++) {
		const char *name = wait_kind_name((enum wait_kind)i);

		assert_int_equal(wait_kind_by_name(name, strlen(name)), i);
	}
	assert_int_equal(wait_kind_by_name("page", 4), WAIT_KIND_COUNT);
	assert_int_equal(wait_kind_by_name("diskette", 4), WAIT_KIND_DISK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_values, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_count_is_shown, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_mark, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_without_kernel_stacks, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_waker, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_waker_hash_of_two, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_hash_of_another, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_waker_without_kernel_stacks, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_histograms, set_up, tear_down),
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_kind_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
