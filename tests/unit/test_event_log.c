// SPDX-License-Identifier: Apache-2.0
/* Switches and wake-ups in, a file of JSON lines out. */
#include <errno.h>
#include <unistd.h>

#include "closed_window.h"
#include "kernel_records.h"
#include "offcpu/event_log.h"

#define START_NS 1000000u
#define KERNEL_STACK 77u
#define USER_STACK 78u

static struct profile *profile;
static struct stack_recorder *stacks;
static struct process_table *processes;
static struct event_log *events;
static struct account account;
static char folder[64], path[96];
static char text[1 << 20]; /* of the file */

static int set_up(void **state)
{
	struct diag diag = { 0 };

	snprintf(folder, sizeof(folder), "/tmp/sonde-test-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/events", folder);
	profile = profile_new();
	stacks = stack_recorder_new(false, &account);
	processes = process_table_new(NULL);
	if (!profile || !stacks || !processes || event_log_new(path, &diag, &events))
		return -1;
	event_log_begin(events, START_NS, "sonde offcpu");
	return 0;
}

static int tear_down(void **state)
{
	event_log_free(events);
	stack_recorder_free(stacks, processes);
	process_table_free(processes);
	profile_free(profile);
	unlink(path);
	return rmdir(folder); /* the folder holds nothing else */
}

/* Sends the two stacks that key_of() refers to. */
static void send_stacks(void)
{
	const uint64_t pc = 0x1000;

	send_stack_record(stacks, (struct sonde_stack_record){ .tgid = TGID, .hash = USER_STACK, .nr_frames = 1 }, &pc);
	send_stack_record(stacks, (struct sonde_stack_record){ .hash = KERNEL_STACK, .nr_frames = 1 }, &pc);
}

static struct sonde_wait_key key_of(uint32_t tid, const char *comm, uint16_t wait_state)
{
	return wait_key(tid, comm, wait_state, USER_STACK, KERNEL_STACK);
}

static void send_switch(uint64_t time_ns, struct sonde_wait_key prev, uint32_t next_tid, const char *next_comm)
{
	struct sonde_switch_record record = {
		.type = SONDE_RECORD_SWITCH, .cpu = 1, .time_ns = START_NS + time_ns, .prev = prev, .next_tgid = TGID, .next_tid = next_tid
	};

	snprintf(record.next_comm, sizeof(record.next_comm), "%s", next_comm);
	assert_int_equal(event_log_record(events, &record), 0);
}

static void send_wakeup(uint64_t time_ns, uint32_t tid, uint64_t waker)
{
	const struct sonde_wakeup_record record = {
		.type = SONDE_RECORD_WAKEUP, .cpu = 2, .time_ns = START_NS + time_ns, .tgid = TGID, .tid = tid, .waker = waker
	};

	assert_int_equal(event_log_record(events, &record), 0);
}

static void send_waker(uint64_t hash, struct sonde_wait_key waker)
{
	const struct sonde_waker_record record = waker_record(hash, waker);

	assert_int_equal(event_log_record(events, &record), 0);
}

/* Ends the file and reads it. */
static void finish(void)
{
	const struct stack_walker walker = { 0 };
	CLEANUP(fclosep) FILE *file = NULL;
	struct diag diag = { 0 };
	const struct event_end end = { .end_ns = START_NS + 5000, .unix_offset_ns = 100, .nr_lost = 3 };
	struct closed closed;

	assert_int_equal(stack_recorder_resolve(stacks, processes, &walker), 0);
	close_recorder(&closed, stacks, processes, &account);
	assert_int_not_equal(access(path, F_OK), 0);
	assert_int_equal(event_log_end(events, closed_builder(&closed, profile), profile, &end, &diag), 0);
	closed_done(&closed);
	file = fopen(path, "re");
	assert_non_null(file);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
}

/* When two wakers have the same hash, it refers to neither. */
static void test_waker_hash_of_two(void **state)
{
	send_stacks();
	send_waker(500, key_of(6, "two", 0));
	send_wakeup(20, 5, 500);
	send_waker(500, key_of(7, "three", 0));
	finish();
	assert_non_null(strstr(text, "{\"record\":\"waker\",\"waker\":0,\"thread\":null,\"user_stack\":null,\"kernel_stack\":null}\n"));
	assert_int_equal(profile_account(profile)->missed_collided, 1);
}

static void test_lines(void **state)
{
	struct sonde_wait_key idle = key_of(0, "swapper/1", 0), interrupt = key_of(0, "", 0);

	interrupt.tgid = 0;
	interrupt.user_state = SONDE_STACK_NONE;
	send_stacks();
	send_switch(10, key_of(5, "one", 1), 0, "swapper/1");
	send_waker(500, key_of(6, "two", 0));
	send_waker(501, interrupt);
	send_waker(500, key_of(6, "two", 0)); /* again */
	send_wakeup(20, 5, 500);
	send_wakeup(30, 5, 501);
	send_wakeup(40, 7, 999); /* its waker record was lost */
	idle.tgid = 0;
	send_switch(50, idle, 5, "one");
	send_switch(60, key_of(5, "one", 0), 6, "two");
	send_switch(70, key_of(6, "two", 1), 7, "three"); /* the name of a thread known so far by its ids only */
	finish();
	assert_string_equal(
	    text,
	    "{\"record\":\"events\",\"format\":\"sonde-events\",\"version\":2,\"command_line\":\"sonde offcpu\"}\n"
	    "{\"time_ns\":10,\"cpu\":1,\"off\":0,\"wait\":0,\"on\":null}\n"
	    "{\"time_ns\":20,\"cpu\":2,\"wake\":0,\"waker\":0}\n"
	    "{\"time_ns\":30,\"cpu\":2,\"wake\":0,\"waker\":1}\n"
	    "{\"time_ns\":40,\"cpu\":2,\"wake\":2,\"waker\":null}\n"
	    "{\"time_ns\":50,\"cpu\":1,\"off\":null,\"wait\":null,\"on\":0}\n"
	    "{\"time_ns\":60,\"cpu\":1,\"off\":0,\"wait\":1,\"on\":1}\n"
	    "{\"time_ns\":70,\"cpu\":1,\"off\":1,\"wait\":0,\"on\":2}\n"
	    "{\"record\":\"thread\",\"thread\":0,\"pid\":2147483632,\"tid\":5,\"comm\":\"one\"}\n"
	    "{\"record\":\"thread\",\"thread\":1,\"pid\":2147483632,\"tid\":6,\"comm\":\"two\"}\n"
	    "{\"record\":\"thread\",\"thread\":2,\"pid\":2147483632,\"tid\":7,\"comm\":\"three\"}\n"
	    "{\"record\":\"wait\",\"wait\":0,\"state\":1,\"syscall\":null,\"kind\":\"other\",\"user_stack\":0,\"kernel_stack\":1}\n"
	    "{\"record\":\"wait\",\"wait\":1,\"state\":0,\"syscall\":null,\"kind\":\"preempted\",\"user_stack\":0,\"kernel_stack\":1}\n"
	    "{\"record\":\"waker\",\"waker\":0,\"thread\":1,\"user_stack\":0,\"kernel_stack\":1}\n"
	    "{\"record\":\"waker\",\"waker\":1,\"thread\":null,\"user_stack\":null,\"kernel_stack\":1}\n"
	    "{\"record\":\"stack\",\"stack\":0,\"frames\":[0]}\n"
	    "{\"record\":\"stack\",\"stack\":1,\"frames\":[1]}\n"
	    "{\"record\":\"frame\",\"frame\":0,\"name\":\"[unknown]\",\"kind\":\"native\",\"pc\":\"0x1000\"}\n"
	    "{\"record\":\"frame\",\"frame\":1,\"name\":\"[unknown]\",\"kind\":\"kernel\",\"pc\":\"0x1000\"}\n"
	    "{\"record\":\"end\",\"time_ns\":5000,\"start_unix_ns\":1000100,\"switches\":4,\"wakeups\":3,\"lost\":3}\n");
}

/* Late records are sorted by time. Records from before the start are left out. */
static void test_order(void **state)
{
	uint64_t last = 0;
	uint32_t nr = 0, seed = 1;

	for (uint64_t i = 0; i < 6000; i++) { /* over 1 s, each up to 150 ms late */
		seed = seed * 1664525 + 1013904223;
		send_wakeup(i * 166666 + (seed >> 8) % 150000000, 5, 0);
	}
	for (uint64_t i = 0; i < 9; i++)
		send_wakeup(i - 9, 5, 0); /* before the start */
	finish();
	for (const char *line = text; line; line = strchr(line, '\n')) {
		unsigned long long t;

		line += *line == '\n';
		if (sscanf(line, "{\"time_ns\":%llu,", &t) != 1)
			continue;
		assert_true(t >= last);
		last = t;
		nr++;
	}
	assert_int_equal(nr, 6000);
	assert_non_null(strstr(text, "\"switches\":0,\"wakeups\":6000,\"lost\":3}\n"));
}

/* A thread with two names is two threads. A thread whose name is not known yet is the one that gets a name later. */
static void test_names(void **state)
{
	send_wakeup(1, 5, 0);
	send_switch(2, key_of(6, "a", 0), 5, "sh");
	send_switch(3, key_of(5, "sh", 0), 6, "a");
	send_switch(4, key_of(6, "a", 0), 5, "program");
	send_wakeup(5, 5, 0);
	finish();
	assert_non_null(strstr(text, "{\"time_ns\":1,\"cpu\":2,\"wake\":0,"));
	assert_non_null(strstr(text, "{\"time_ns\":3,\"cpu\":1,\"off\":0,"));
	assert_non_null(strstr(text, "\"on\":2}\n{\"time_ns\":5,\"cpu\":2,\"wake\":2,"));
	assert_non_null(strstr(text, "{\"record\":\"thread\",\"thread\":0,\"pid\":2147483632,\"tid\":5,\"comm\":\"sh\"}\n"));
	assert_non_null(strstr(text, "{\"record\":\"thread\",\"thread\":2,\"pid\":2147483632,\"tid\":5,\"comm\":\"program\"}\n"));
	assert_null(strstr(text, "\"thread\":3,"));
}

/* Missing stacks do not make every wait a separate one. */
static void test_missed_stacks(void **state)
{
	for (uint64_t i = 0; i < 20; i++) {
		struct sonde_wait_key key = key_of(5, "one", 1);

		key.user_stack = key.kernel_stack = i;
		key.user_state = key.kernel_state = SONDE_STACK_FULL;
		key.waker = i;
		send_switch(i, key, 6, "two");
	}
	finish();
	assert_non_null(strstr(text, "\"record\":\"wait\",\"wait\":0,"));
	assert_null(strstr(text, "\"wait\":1,"));
	assert_non_null(strstr(text, "[Missed User Stack]"));
}

/* Threads beyond the limit get no number, but recording goes on. */
static void test_many_threads(void **state)
{
	for (uint32_t i = 0; i < (1u << 20) + 100; i++)
		send_switch(i * 1000ull, key_of(5, "one", 1), 10 + i, "many");
	send_switch(2ull << 30, key_of(7, "late", 1), 5, "one");
}

/* A recording that was not ended leaves no file. */
static void test_not_ended(void **state)
{
	for (uint64_t i = 0; i < 20000; i++)
		send_wakeup(i * 1000000, 5, 0);
	assert_int_not_equal(access(path, F_OK), 0);
}

static void test_refused(void **state)
{
	struct event_log *other;
	struct diag diag = { 0 };

	assert_int_equal(event_log_new("/nowhere/at/all", &diag, &other), -ENOENT);
	assert_non_null(strstr(diag.text, "/nowhere/at/all"));
}

/* A full disk loses the file; the end of the recording reports it. */
static void test_full_disk(void **state)
{
	struct event_log *full;
	struct closed closed;
	struct diag diag = { 0 };
	const struct sonde_wakeup_record record = { .type = SONDE_RECORD_WAKEUP, .time_ns = START_NS, .tgid = TGID, .tid = 5 };

	assert_int_equal(event_log_new("/dev/full", &diag, &full), 0);
	event_log_begin(full, START_NS, "");
	for (uint32_t i = 0; i < 100000; i++)
		assert_int_equal(event_log_record(full, &record), 0);
	close_recorder(&closed, stacks, processes, &account);
	assert_int_equal(event_log_end(full, closed_builder(&closed, profile), profile, &(struct event_end){ .end_ns = START_NS }, &diag),
			 -ENOSPC);
	closed_done(&closed);
	assert_string_equal(diag.text, "cannot write /dev/full: No space left on device");
	event_log_free(full);
}

#define test(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(test_lines),	 test(test_waker_hash_of_two), test(test_order),   test(test_names),	 test(test_missed_stacks),
		test(test_many_threads), test(test_not_ended),	       test(test_refused), test(test_full_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
