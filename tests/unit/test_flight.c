// SPDX-License-Identifier: Apache-2.0
/* The flight recorder: what a trigger says, what the ring keeps, what a file's number is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "flight/file_watch.h"
#include "flight/ring.h"
#include "flight/trigger.h"

static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 8;
}

/* --- triggers ------------------------------------------------------------------------------------------------------------------------- */

static void what_triggers_say(void **state)
{
	static const struct {
		const char *text;
		enum trigger_kind kind;
		double limit;
		uint32_t over_s;
		const char *path;
	} wanted[] = {
		{ "cpu>80%/10s", TRIGGER_CPU, 80, 10, NULL },
		{ "psi.memory>0.5%/10m", TRIGGER_PSI_MEMORY, 0.5, 600, NULL },
		{ "psi.io>20%/1s", TRIGGER_PSI_IO, 20, 1, NULL },
		{ "runq.p99>20ms/10s", TRIGGER_RUNQ_P99, 20, 10, NULL },
		{ "file:/a b>c/d>200.25/2m", TRIGGER_FILE, 200.25, 120, "/a b>c/d" },
		{ "oom", TRIGGER_OOM, 0, 0, NULL },
		{ "crash", TRIGGER_CRASH, 0, 0, NULL },
		{ "signal", TRIGGER_SIGNAL, 0, 0, NULL },
	};
	struct triggers triggers = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		const struct trigger *trigger = &triggers.list[i];

		assert_int_equal(triggers_add(&triggers, wanted[i].text, NULL), 0);
		assert_int_equal(triggers.nr, i + 1);
		assert_int_equal(trigger->kind, wanted[i].kind);
		assert_true(trigger->limit == wanted[i].limit); /* all of them are sums of powers of two */
		assert_int_equal(trigger->over_s, wanted[i].over_s);
		if (wanted[i].path)
			assert_string_equal(trigger->path, wanted[i].path);
	}
	triggers_done(&triggers);
}

static void refused(const char *text, const char *words)
{
	struct triggers triggers = { 0 };
	struct diag diag = { 0 };

	assert_int_equal(triggers_add(&triggers, text, &diag), -EINVAL);
	assert_int_equal(triggers.nr, 0);
	if (!strstr(diag.text, words))
		fail_msg("%s: %s", text, diag.text);
}

static void what_is_none(void **state)
{
	refused("", "at character 1: there is no ''");
	refused("psi.cpus>1%/1s", "did you mean psi.cpu?");
	refused("cpu>80.%/1s", "at character 5: a number");
	refused("cpu>.5%/1s", "at character 5: a number");
	refused("cpu>1.2.3%/1s", "at character 5: a number");
	refused("cpu>80%/0s", "at character 9: a time");
	refused("cpu>80%/601s", "at character 9: a time");
	refused("cpu>80%/99999999999999999999s", "at character 9: a time");
	refused("runq.p99>20us/1s", "at character 12: ms stands here");
	refused("runq.p99>0.05ms/1s", "the least is 0.1 ms");
	refused("runq.p99>9999999999999999ms/1s", "at character 10: a number");
	refused("file:/a/b", "'>' and a number are missing");
	refused("crash>1", "nothing stands here any more");
}

static void two_run_queues(void **state)
{
	struct triggers triggers = { 0 };

	assert_int_equal(triggers_add(&triggers, "runq.p99>1ms/1s", NULL), 0);
	assert_int_equal(triggers_add(&triggers, "runq.p99>2ms/1s", NULL), -EINVAL);
	triggers_done(&triggers);
}

/* Any text of these pieces is a trigger or refused. */
static void texts_of_pieces(void **state)
{
	static const char *const pieces[] = { "cpu", "psi.", "io", "file:", "/", ">",	 "80", ".",
					      "%",   "10",   "s",  "m",	    "runq.p99", "ms", " ", "\xff" };
	uint32_t seed = 1;

	for (uint32_t i = 0; i < 20000; i++) {
		struct triggers triggers = { 0 };
		struct diag diag = { 0 };
		char text[64] = "";

		for (uint32_t k = next_random(&seed) % 8; k; k--)
			strcat(text, pieces[next_random(&seed) % ARRAY_SIZE(pieces)]);
		if (triggers_add(&triggers, text, &diag))
			assert_true(*diag.text);
		else
			assert_int_equal(triggers.nr, 1);
		triggers_done(&triggers);
	}
}

/* --- the ring ------------------------------------------------------------------------------------------------------------------------- */

static struct ring_window window_of(uint32_t number, size_t size, uint64_t duration_ns)
{
	return (struct ring_window){ .start_ns = number, .duration_ns = duration_ns, .packed = malloc(size), .size = size };
}

/* It has the newest windows, one after the other; never more bytes than its bound, never one more than the span needs; and it says how many
 * went that the span needed. */
static void what_the_ring_keeps(void **state)
{
	for (uint32_t seed = 1; seed <= 300; seed++) {
		uint32_t random = seed;
		struct ring ring = { .max_bytes = 1500 + next_random(&random) % 5000, .span_ns = 1 + next_random(&random) % 50 };
		uint32_t nr_early = 0, nr_by_time = 0;

		for (uint32_t number = 1; number <= 200; number++) {
			struct ring_window window = window_of(number, 1 + next_random(&random) % 1500, 1 + next_random(&random) % 4);
			uint64_t duration_ns = 0, bytes = 0;
			uint32_t before = ring.nr, early = ring_add(&ring, &window);

			nr_early += early;
			nr_by_time += before + 1 - ring.nr - early;
			for (uint32_t i = 0; i < ring.nr; i++) {
				assert_int_equal(ring.list[i].start_ns, ring.list[0].start_ns + i);
				duration_ns += ring.list[i].duration_ns;
				bytes += ring.list[i].size;
			}
			assert_int_equal(ring.bytes, bytes);
			assert_int_equal(ring.duration_ns, duration_ns);
			assert_true(bytes <= ring.max_bytes);
			assert_true(ring.nr < 2 || duration_ns - ring.list[0].duration_ns < ring.span_ns);
			assert_true(early || duration_ns >= ring.span_ns || nr_early || number == ring.nr);
		}
		assert_int_equal(nr_early + nr_by_time + ring.nr, 200);
		ring_done(&ring);
	}
}

/* One that is larger than the bound takes no other with it. */
static void a_window_without_room(void **state)
{
	struct ring ring = { .max_bytes = 100, .span_ns = 1000 };
	struct ring_window small = window_of(1, 60, 1), large = window_of(2, 101, 1), other = window_of(3, 60, 1), taken;

	assert_int_equal(ring_add(&ring, &small), 0);
	assert_int_equal(ring_add(&ring, &large), 1);
	assert_int_equal(ring.nr, 1);
	assert_int_equal(ring_add(&ring, &other), 1);
	assert_true(ring_take(&ring, &taken));
	assert_int_equal(taken.start_ns, 3);
	assert_false(ring_take(&ring, &large));
	ring_window_done(&taken);
	ring_done(&ring);
}

/* --- files ---------------------------------------------------------------------------------------------------------------------------- */

static char path[] = "/tmp/sonde-flight-XXXXXX";

/* What is read of a file with this text. */
static const char *read_text(const char *text, size_t size, double *ret_value)
{
	struct file_watch *watch;
	const char *trouble;
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, size, file), size);
	fclose(file);
	assert_int_equal(file_watch_start(path, NULL, &watch), 0);
	while ((trouble = file_watch_take(watch, ret_value)) && !strcmp(trouble, "it does not answer"))
		usleep(1000);
	file_watch_end(watch);
	return trouble;
}

static void numbers_in_files(void **state)
{
	static const char *const none[] = { "", "\n", "abc", "-1", "1 2", "1e3", "0x10", "nan", "1,5", "9999999999999999", "1.0000000001" };
	double value;

	assert_null(read_text("200", 3, &value));
	assert_true(value == 200);
	assert_null(read_text(" 0.5\r\n", 6, &value));
	assert_true(value == 0.5);
	for (size_t i = 0; i < ARRAY_SIZE(none); i++) {
		if (!read_text(none[i], strlen(none[i]), &value))
			fail_msg("'%s' is %f", none[i], value);
	}
	assert_non_null(read_text("1\0002", 3, &value));
}

static int make_file(void **state)
{
	int fd = mkstemp(path);

	return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_triggers_say),
		cmocka_unit_test(what_is_none),
		cmocka_unit_test(two_run_queues),
		cmocka_unit_test(texts_of_pieces),
		cmocka_unit_test(what_the_ring_keeps),
		cmocka_unit_test(a_window_without_room),
		cmocka_unit_test_setup_teardown(numbers_in_files, make_file, remove_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
