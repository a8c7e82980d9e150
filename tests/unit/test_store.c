// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/store.h"

struct place {
	char directory[64];
};

static int make(void **state)
{
	struct place *place = calloc(1, sizeof(*place));

	assert_non_null(place);
	strcpy(place->directory, "/tmp/sonde-store-XXXXXX");
	assert_non_null(mkdtemp(place->directory));
	*state = place;
	return 0;
}

static int drop(void **state)
{
	struct place *place = *state;
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", place->directory);
	free(place);
	return system(command);
}

static struct store *open_store(struct place *place, enum store_mode mode)
{
	struct store *store = NULL;
	char *aside = NULL;

	assert_int_equal(store_open(place->directory, mode, NULL, &aside, &store), 0);
	assert_null(aside);
	return store;
}

static void add_of(struct store *store, uint64_t second, char *type)
{
	uint8_t body[100];
	struct store_row row = { .start_ns = second, .end_ns = second + 1, .body = body, .body_bytes = sizeof(body), .type = type };

	for (size_t i = 0; i < sizeof(body); i++) /* cannot be compressed */
		body[i] = (uint8_t)((i + 1) * (i + 7) * 2654435761u >> 13);
	body[99] = (uint8_t)second;
	memset(row.profile_id, (int)second, sizeof(row.profile_id));
	assert_int_equal(store_add(store, &row, NULL), 0);
}

static void add(struct store *store, uint64_t second)
{
	char type[] = "cpu";

	add_of(store, second, type);
}

static void types_are_apart(void **state)
{
	struct store *store = open_store(*state, STORE_OWN);
	char names[][32] = { "offcpu", "cpu", "offcpu", "cpu", "WALL\x1b[2J", "wall", "" }, types[STORE_MAX_TYPES][STORE_TYPE_BYTES];
	struct store_row row = { 0 };
	uint64_t after = 0;

	for (uint64_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		add_of(store, i + 10, names[i]);
	assert_int_equal(store_types(store, 0, UINT64_MAX, NULL, types), 3);
	assert_string_equal(types[0], "offcpu");
	assert_string_equal(types[1], "cpu");
	assert_string_equal(types[2], "wall");
	assert_int_equal(store_types(store, 11, 12, NULL, types), 1);
	assert_string_equal(types[0], "cpu");
	for (uint64_t second = 10; second <= 12; second += 2) {
		assert_int_equal(store_next(store, "offcpu", after, 0, UINT64_MAX, NULL, &row), 1);
		assert_int_equal(row.start_ns, second);
		after = row.id;
		store_row_done(&row);
	}
	assert_int_equal(store_next(store, "offcpu", after, 0, UINT64_MAX, NULL, &row), 0);
	store_close(store);
}

static void rows_come_back_in_their_order(void **state)
{
	struct store *store = open_store(*state, STORE_OWN), *reader;
	struct store_row row = { 0 };

	for (uint64_t second = 10; second < 20; second++)
		add(store, second);
	reader = open_store(*state, STORE_READ);
	for (uint64_t second = 13, after = 0; second < 16; second++, after = row.id) {
		store_row_done(&(struct store_row){ .body = row.body, .type = row.type });
		assert_int_equal(store_next(reader, "cpu", after, 13, 16, NULL, &row), 1);
		assert_int_equal(row.start_ns, second);
		assert_int_equal(row.profile_id[15], second);
		assert_int_equal(((uint8_t *)row.body)[99], second);
		assert_string_equal(row.type, "cpu");
	}
	assert_int_equal(store_next(reader, "cpu", row.id, 13, 16, NULL, &(struct store_row){ 0 }), 0);
	store_row_done(&row);
	store_close(reader);
	store_close(store);
}

static void what_is_evicted_undelivered_is_counted(void **state)
{
	struct store *store = open_store(*state, STORE_OWN), *sender = open_store(*state, STORE_DELIVER);
	struct store_row row = { 0 };
	struct store_evicted evicted = { 0 };
	uint64_t nr = 0, bytes = 0;

	for (uint64_t second = 1; second <= 10; second++)
		add(store, second);
	assert_int_equal(store_next_undelivered(sender, "a", NULL, &row), 1);
	assert_int_equal(row.start_ns, 1);
	assert_int_equal(store_mark_delivered(sender, "a", row.id + 1, NULL), 0);
	store_row_done(&row);
	assert_int_equal(store_evict(store, 0, 720, NULL, &evicted), 0); /* six bodies of 100 bytes fit, each with its frame of zstd */
	assert_int_equal(evicted.nr, 4);
	assert_int_equal(evicted.nr_unsent, 2);
	assert_int_equal(store_size(sender, NULL, &nr, &bytes), 0);
	assert_int_equal(nr, 6);
	assert_in_range(bytes, 600, 720);
	assert_int_equal(store_evicted(store, "a", NULL, &nr), 0);
	assert_int_equal(nr, 2);
	assert_int_equal(store_next_undelivered(sender, "a", NULL, &row), 1);
	assert_int_equal(row.start_ns, 5);
	store_row_done(&row);
	assert_int_equal(store_evict(store, 9, UINT64_MAX, NULL, &evicted), 0); /* the last that ended before is 7 */
	assert_int_equal(store_next(store, "cpu", 0, 0, UINT64_MAX, NULL, &row), 1);
	assert_int_equal(row.start_ns, 8);
	store_row_done(&row);
	store_close(sender);
	store_close(store);
}

/* Its handles see each other's rows, and the last one that is closed takes them along. */
static void in_memory(void **state)
{
	struct place place = { .directory = STORE_IN_MEMORY };
	struct store *store = open_store(&place, STORE_OWN);
	struct store *first = open_store(&place, STORE_DELIVER), *second = open_store(&place, STORE_DELIVER);
	struct store_row row = { 0 };
	struct store_evicted evicted;
	uint64_t nr = 0, bytes = 0;

	for (uint64_t second_ns = 1; second_ns <= 10; second_ns++)
		add(store, second_ns);
	assert_int_equal(store_forget_delivered(store, NULL), 0); /* nobody has received anything */
	assert_int_equal(store_mark_delivered(first, "a", 4, NULL), 0);
	assert_int_equal(store_mark_delivered(second, "b", 3, NULL), 0);
	assert_int_equal(store_forget_delivered(store, NULL), 0);
	assert_int_equal(store_size(second, NULL, &nr, &bytes), 0);
	assert_int_equal(nr, 7);
	assert_int_equal(store_evict(store, 0, 720, NULL, &evicted), 0); /* six fit */
	assert_int_equal(evicted.nr, 1);
	assert_int_equal(evicted.nr_unsent, 1); /* by the second alone */
	assert_int_equal(store_next_undelivered(second, "b", NULL, &row), 1);
	assert_int_equal(row.start_ns, 5);
	store_row_done(&row);
	store_close(first);
	store_close(second);
	store_close(store);
	store = open_store(&place, STORE_OWN);
	assert_int_equal(store_size(store, NULL, &nr, &bytes), 0);
	assert_int_equal(nr, 0);
	store_close(store);
}

static void a_second_owner_is_refused_by_name(void **state)
{
	struct place *place = *state;
	struct store *store = open_store(place, STORE_OWN), *second = NULL;
	struct diag diag = { 0 };
	char *aside = NULL, name[32];

	snprintf(name, sizeof(name), "process %d", getpid());
	assert_int_equal(store_open(place->directory, STORE_OWN, &diag, &aside, &second), -EBUSY);
	assert_non_null(strstr(diag.text, name));
	store_close(store);
	store_close(open_store(place, STORE_OWN));
}

static void a_corrupt_store_is_moved_aside(void **state)
{
	struct place *place = *state;
	struct store *store = NULL;
	char *aside = NULL, path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/profiles.db", place->directory);
	file = fopen(path, "w");
	assert_non_null(file);
	for (int i = 0; i < 2000; i++)
		fputs("no database", file);
	fclose(file);
	assert_int_equal(store_open(place->directory, STORE_READ, NULL, &aside, &store), -EUCLEAN);
	assert_int_equal(store_open(place->directory, STORE_OWN, NULL, &aside, &store), 0);
	assert_int_equal(access(aside, F_OK), 0);
	add(store, 1);
	store_close(store);
	free(aside);
}

/* Adds rows until it is killed. Tells each that was stored. */
static void write_rows(struct place *place, uint64_t second, int told_fd)
{
	struct store *store = open_store(place, STORE_OWN);

	for (;; second++) {
		add(store, second);
		if (write(told_fd, &second, sizeof(second)) != sizeof(second))
			_exit(1);
	}
}

/* The last second that a writer told before it was killed, that time after it had told so many; `before`: it told none. */
static uint64_t kill_writer(struct place *place, uint64_t before, uint32_t nr_told, useconds_t after_us)
{
	uint64_t second, last = before;
	int told[2], status;
	pid_t pid;

	assert_int_equal(pipe(told), 0);
	pid = fork();
	if (!pid)
		write_rows(place, before + 1, told[1]);
	close(told[1]);
	for (uint32_t i = 0; i < nr_told; i++, last = second)
		assert_int_equal(read(told[0], &second, sizeof(second)), sizeof(second));
	usleep(after_us);
	kill(pid, SIGKILL);
	while (read(told[0], &second, sizeof(second)) == sizeof(second))
		last = second;
	close(told[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	return last;
}

/* The owner checks the database when it opens it, and no row that was told is lost. 50 times, from the open to many rows later. */
static void a_writer_is_killed_at_any_moment(void **state)
{
	uint64_t told = 0, total_bytes, nr;

	for (uint32_t turn = 0; turn < 50; turn++) {
		struct store *store;

		told = kill_writer(*state, told, turn % 5, turn * 1237 % 29 * 1000);
		store = open_store(*state, STORE_OWN);
		assert_int_equal(store_size(store, NULL, &nr, &total_bytes), 0);
		assert_in_range(nr, told, told + 1);
		told = nr; /* the last one may not have been told */
		store_close(store);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(rows_come_back_in_their_order, make, drop),
		cmocka_unit_test_setup_teardown(types_are_apart, make, drop),
		cmocka_unit_test_setup_teardown(what_is_evicted_undelivered_is_counted, make, drop),
		cmocka_unit_test(in_memory),
		cmocka_unit_test_setup_teardown(a_second_owner_is_refused_by_name, make, drop),
		cmocka_unit_test_setup_teardown(a_corrupt_store_is_moved_aside, make, drop),
		cmocka_unit_test_setup_teardown(a_writer_is_killed_at_any_moment, make, drop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
