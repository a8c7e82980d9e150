// SPDX-License-Identifier: Apache-2.0
/* The cache of debug files, and the owner's side of the process that fetches them. This program plays that process. The build id selects
 * what it does wrong. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/spawn.h"
#include "debuginfod/debug_cache.h"
#include "debuginfod/fetch_message.h"
#include "debuginfod/fetcher.h"

#define WHOLE	"00000000000000aa"
#define ABSENT	"00000000000000bb"
#define LYING	"00000000000000cc" /* reports a wrong size */
#define DYING	"00000000000000dd"
#define FAILING "00000000000000ee"
#define SILENT	"00000000000000ff"

static char directory[64];

static void remove_directory(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", directory);
	assert_int_equal(system(command), 0);
}

static int set_up(void **state)
{
	snprintf(directory, sizeof(directory), "/tmp/sonde-debuginfod-XXXXXX");
	return mkdtemp(directory) ? 0 : -1;
}

static int tear_down(void **state)
{
	remove_directory();
	return 0;
}

/* --- the process ---------------------------------------------------------------------------------------------------------------------- */

static int fetch_one(void)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct fetch_request request;
	struct iovec part = { .iov_base = &request, .iov_len = sizeof(request) };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control) };
	struct fetch_answer answer = { .size = 5 };
	int fd;

	if (recvmsg(SPAWN_SOCKET, &message, 0) != (ssize_t)sizeof(request))
		return -1;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	answer.number = request.number;
	if (write(fd, "whole", 5) != 5 || !strcmp(request.build_id, DYING))
		return -1;
	close(fd);
	if (!strcmp(request.build_id, SILENT))
		return 0;
	if (!strcmp(request.build_id, ABSENT))
		answer.status = -ENOENT;
	if (!strcmp(request.build_id, LYING))
		answer.size = 6;
	if (!strcmp(request.build_id, FAILING)) {
		answer.status = -EIO;
		memset(answer.text, 'x', sizeof(answer.text)); /* no NUL */
	}
	return send(SPAWN_SOCKET, &answer, sizeof(answer), 0) == (ssize_t)sizeof(answer) ? 0 : -1;
}

static int play_process(void)
{
	struct fetch_answer answer = { .number = 12345 }; /* nobody requested it */

	if (send(SPAWN_SOCKET, &answer, sizeof(answer), 0) < 0)
		return 1;
	answer.number = FETCH_READY;
	if (send(SPAWN_SOCKET, &answer, sizeof(answer), 0) < 0)
		return 1;
	while (!fetch_one())
		;
	return 0;
}

/* --- the cache ------------------------------------------------------------------------------------------------------------------------ */

static struct debug_cache *open_cache(const char *servers, uint64_t max_bytes)
{
	struct debug_cache *cache;

	assert_int_equal(debug_cache_open(directory, servers, max_bytes, NULL, &cache), 0);
	return cache;
}

static void keep(struct debug_cache *cache, const char *build_id, size_t size)
{
	CLEANUP(closep) int fd = debug_cache_create(cache);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	debug_cache_keep(cache, build_id, fd);
}

static bool is_there(struct debug_cache *cache, const char *build_id)
{
	CLEANUP(closep) int fd = debug_cache_find(cache, build_id);

	return fd >= 0;
}

static void build_ids(void **state)
{
	char text[FETCH_ID_CHARS + 3];

	assert_true(debug_cache_is_build_id(WHOLE));
	assert_false(debug_cache_is_build_id(""));
	assert_false(debug_cache_is_build_id("00000000000000a"));
	assert_false(debug_cache_is_build_id("00000000000000aaa"));
	assert_false(debug_cache_is_build_id("00000000000000AA"));
	assert_false(debug_cache_is_build_id("../../../../../etc/"));
	memset(text, 'a', sizeof(text));
	text[FETCH_ID_CHARS] = '\0';
	assert_true(debug_cache_is_build_id(text));
	memset(text, 'a', sizeof(text));
	text[FETCH_ID_CHARS + 2] = '\0';
	assert_false(debug_cache_is_build_id(text));
}

static void cache_keeps(void **state)
{
	CLEANUP(debug_cache_freep) struct debug_cache *cache = open_cache("one", 1 << 20);
	CLEANUP(closep) int fd = debug_cache_create(cache);

	assert_int_equal(debug_cache_find(cache, WHOLE), -ENOENT);
	assert_int_equal(write(fd, "x", 1), 1);
	assert_int_equal(debug_cache_find(cache, WHOLE), -ENOENT); /* not before it is complete */
	debug_cache_keep(cache, WHOLE, fd);
	assert_true(is_there(cache, WHOLE));
	debug_cache_refuse(cache, WHOLE);
	assert_int_equal(debug_cache_find(cache, WHOLE), -ENODATA);
}

static void cache_forgets_what_is_missing(void **state)
{
	CLEANUP(debug_cache_freep) struct debug_cache *one = open_cache("one", 1 << 20);
	CLEANUP(debug_cache_freep) struct debug_cache *two = open_cache("two", 1 << 20);
	char command[256];

	debug_cache_refuse(one, ABSENT);
	assert_int_equal(debug_cache_find(one, ABSENT), -ENODATA);
	assert_int_equal(debug_cache_find(two, ABSENT), -ENOENT); /* other servers */
	snprintf(command, sizeof(command), "touch -d '%d seconds ago' %s/*.missing", DEBUG_CACHE_MISSING_S + 60, directory);
	assert_int_equal(system(command), 0);
	assert_int_equal(debug_cache_find(one, ABSENT), -ENOENT);
}

static void cache_is_bounded(void **state)
{
	CLEANUP(debug_cache_freep) struct debug_cache *cache = open_cache("one", 10000);
	char command[256];

	keep(cache, WHOLE, 4000);
	keep(cache, ABSENT, 4000);
	snprintf(command, sizeof(command), "touch -d '1 hour ago' %s/%s.debug", directory, ABSENT);
	assert_int_equal(system(command), 0);
	keep(cache, LYING, 3000);
	assert_false(is_there(cache, ABSENT)); /* unused for the longest time */
	assert_true(is_there(cache, WHOLE));
	assert_true(is_there(cache, LYING));
}

static void cache_is_ours_alone(void **state)
{
	struct debug_cache *cache = NULL;
	struct diag diag = { 0 };

	assert_int_equal(chmod(directory, 0755), 0);
	assert_int_equal(debug_cache_open(directory, "one", 1 << 20, &diag, &cache), -EPERM);
	assert_null(cache);
}

/* --- the owner ------------------------------------------------------------------------------------------------------------------------ */

static struct fetcher *open_fetcher(void)
{
	struct fetcher *fetcher;

	assert_int_equal(
	    fetcher_new(&(struct fetcher_options){ .program = "/proc/self/exe", .cache_path = directory, .urls = "http://nowhere" }, NULL,
			&fetcher),
	    0);
	return fetcher;
}

static void want(struct fetcher *fetcher, const char *build_id)
{
	assert_int_equal(fetcher_want(fetcher, build_id), 0);
}

/* Waits until all but `nr` requests are answered. */
static void wait_for_all_but(struct fetcher *fetcher, uint32_t nr)
{
	for (int i = 0; fetcher_counts(fetcher).nr_open > nr && i < 300; i++)
		fetcher_step(fetcher, 100);
	assert_int_equal(fetcher_counts(fetcher).nr_open, nr);
}

static void answers_are_checked(void **state)
{
	struct fetcher *fetcher = open_fetcher();
	char text[8] = "";

	want(fetcher, WHOLE);
	want(fetcher, WHOLE);
	want(fetcher, "no build id");
	want(fetcher, ABSENT);
	want(fetcher, LYING);
	want(fetcher, FAILING);
	want(fetcher, SILENT);
	wait_for_all_but(fetcher, 1);
	assert_int_equal(fetcher_counts(fetcher).nr_failed, 2);
	assert_true(strlen(fetcher_counts(fetcher).failure) < FETCH_TEXT_BYTES);
	assert_int_equal(pread(fetcher_fd(fetcher, WHOLE), text, sizeof(text), 0), 5);
	assert_string_equal(text, "whole");
	assert_int_equal(write(fetcher_fd(fetcher, WHOLE), text, 1), -1); /* read-only */
	assert_int_equal(fetcher_fd(fetcher, ABSENT), -1);
	assert_int_equal(fetcher_fd(fetcher, LYING), -1);
	assert_int_equal(fetcher_fd(fetcher, FAILING), -1);
	assert_int_equal(fetcher_fd(fetcher, SILENT), -1);
	fetcher_free(fetcher);

	fetcher = open_fetcher(); /* the cache answers: no process is asked */
	want(fetcher, WHOLE);
	want(fetcher, ABSENT);
	assert_int_equal(fetcher_counts(fetcher).nr_open, 0);
	assert_true(fetcher_fd(fetcher, WHOLE) >= 0);
	fetcher_refuse(fetcher, WHOLE);
	assert_int_equal(fetcher_fd(fetcher, WHOLE), -1);
	want(fetcher, LYING);
	assert_int_equal(fetcher_counts(fetcher).nr_open, 1);
	fetcher_free(fetcher);
}

static void a_process_that_ends(void **state)
{
	struct fetcher *fetcher = open_fetcher();

	want(fetcher, WHOLE);
	want(fetcher, DYING);
	want(fetcher, ABSENT);
	wait_for_all_but(fetcher, 0);
	assert_int_equal(fetcher_counts(fetcher).nr_failed, 2);
	assert_true(fetcher_fd(fetcher, WHOLE) >= 0);
	want(fetcher, FAILING);
	assert_int_equal(fetcher_counts(fetcher).nr_open, 0);
	assert_int_equal(fetcher_counts(fetcher).nr_failed, 3);
	fetcher_free(fetcher);
}

static void more_than_at_once(void **state)
{
	struct fetcher *fetcher = open_fetcher();
	char build_id[FETCH_ID_CHARS + 1];

	for (uint32_t i = 0; i < 100; i++) {
		snprintf(build_id, sizeof(build_id), "%040x", i);
		want(fetcher, build_id);
	}
	wait_for_all_but(fetcher, 0);
	for (uint32_t i = 0; i < 100; i++) {
		snprintf(build_id, sizeof(build_id), "%040x", i);
		assert_true(fetcher_fd(fetcher, build_id) >= 0);
	}
	fetcher_free(fetcher);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(build_ids),
		cmocka_unit_test_setup_teardown(cache_keeps, set_up, tear_down),
		cmocka_unit_test_setup_teardown(cache_forgets_what_is_missing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(cache_is_bounded, set_up, tear_down),
		cmocka_unit_test_setup_teardown(cache_is_ours_alone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(answers_are_checked, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_process_that_ends, set_up, tear_down),
		cmocka_unit_test_setup_teardown(more_than_at_once, set_up, tear_down),
	};

	return !strcmp(argv[0], FETCH_NAME) ? play_process() : cmocka_run_group_tests(tests, NULL, NULL);
}
