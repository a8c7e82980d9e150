// SPDX-License-Identifier: Apache-2.0
/* Requests, addresses, and a server among clients that mean harm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "serve/http_request.h"
#include "serve/http_server.h"
#include "serve/listener.h"

#define SOCKET_NAME "s"

static void requests(void **state)
{
	static const struct {
		const char *head;
		int status;
		const char *path;
		bool is_head;
	} cases[] = {
		{ "GET / HTTP/1.1\r\n\r\n", 0, "/", false },
		{ "GET / HTTP/1.0\n\n", 0, "/", false },
		{ "HEAD /metrics?a=b?c HTTP/1.1\r\nHost: x\r\n\r\n", 0, "/metrics", true },
		{ "POST / HTTP/1.1\r\n\r\n", 405, NULL, false },
		{ "GET / HTTP/2.0\r\n\r\n", 505, NULL, false },
		{ "GET / HTTP/1.x\r\n\r\n", 505, NULL, false },
		{ "GET / HTTP/1.11\r\n\r\n", 400, NULL, false },
		{ "GET /\r\n\r\n", 400, NULL, false },
		{ "GET  HTTP/1.1\r\n\r\n", 400, NULL, false },
		{ "GET x HTTP/1.1\r\n\r\n", 400, NULL, false },
		{ "GET http://x/ HTTP/1.1\r\n\r\n", 400, NULL, false },
		{ "GET /a b HTTP/1.1\r\n\r\n", 400, NULL, false },
		{ "GET /\x01 HTTP/1.1\r\n\r\n", 400, NULL, false },
		{ "GET /\xff HTTP/1.1\r\n\r\n", 400, NULL, false },
		{ "get / HTTP/1.1\r\n\r\n", 400, NULL, false },
		{ " / HTTP/1.1\r\n\r\n", 400, NULL, false },
		{ "\r\n\r\n", 400, NULL, false },
		{ "\x16\x03\x01\n\n", 400, NULL, false }, /* TLS */
		{ "GET /2345678901234567890123456789012345678901234567890123456789012345 HTTP/1.1\r\n\r\n", 404, NULL, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct http_request request = { 0 };
		size_t size = strlen(cases[i].head);

		assert_true(http_head_is_whole(cases[i].head, size));
		assert_int_equal(http_request_parse(cases[i].head, size, &request), cases[i].status);
		if (cases[i].status) {
			assert_true(*http_reason(cases[i].status));
			continue;
		}
		assert_string_equal(request.path, cases[i].path);
		assert_int_equal(request.is_head, cases[i].is_head);
	}
	assert_false(http_head_is_whole("GET / HTTP/1.1\r\nHost: x\r\n", 25));
	assert_false(http_head_is_whole("", 0));
	assert_false(http_head_is_whole("\n\r", 2));
}

static void addresses(void **state)
{
	static const char *const good[] = { ":0", "127.0.0.1:0", "localhost:0", "[::1]:0", "0.0.0.0:9090", "unix:/run/x" };
	static const char *const bad[] = { "", "9090", ":", ":x", ":65536", "host:1", "[::1:1", "[]:1", "[:1", "::1:1", "1.2.3:1", "unix:",
					   "127.0.0.1:-1" };
	char bound[LISTENER_ADDRESS_BYTES];
	struct diag diag = { 0 };
	int fd;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_int_equal(listener_check(good[i], NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(listener_check(bad[i], NULL), -EINVAL);
	fd = listener_open(":0", bound, &diag);
	assert_true(fd >= 0);
	assert_int_equal(strncmp(bound, "127.0.0.1:", 10), 0);
	assert_true(strcmp(bound, "127.0.0.1:0"));
	assert_int_equal(listener_open(bound, bound, &diag), -EADDRINUSE);
	assert_non_null(strstr(diag.text, "cannot listen on 127.0.0.1:"));
	close(fd);
}

/* --- a server ------------------------------------------------------------------------------------------------------------------------- */

static bool page(void *arg, const char *path, struct http_page *page)
{
	if (!strcmp(path, "/large")) {
		for (int i = 0; i < 100000; i++)
			buffer_text(&page->body, "0123456");
		return true;
	}
	if (!strcmp(path, "/too-large")) {
		for (int i = 0; i < 200000; i++)
			buffer_text(&page->body, "0123456");
		return true;
	}
	if (!strcmp(path, "/ill"))
		page->status = 503;
	buffer_printf(&page->body, "this is %s\n", path);
	return strcmp(path, "/none") != 0;
}

static char directory[] = "/tmp/sonde-test-XXXXXX";
static int listener;

static int start(void **state)
{
	struct http_server_options options = { .page = page, .nr_listeners = 1 };

	strcpy(directory + sizeof(directory) - 7, "XXXXXX");
	assert_non_null(mkdtemp(directory));
	listener = options.listeners[0] = listener_open_in(directory, SOCKET_NAME, NULL);
	assert_true(listener >= 0);
	return http_server_start(&options, NULL, (struct http_server **)state);
}

static int end(void **state)
{
	http_server_end(*state);
	listener_close_in(listener, directory, SOCKET_NAME);
	return rmdir(directory);
}

static int connected(void)
{
	int fd = listener_connect_in(directory, SOCKET_NAME);

	assert_true(fd >= 0);
	return fd;
}

/* The answer to what was sent, up to its end; within two seconds. */
static char *answer_of(int fd)
{
	static char answer[1 << 20];
	size_t size = 0;
	ssize_t more;

	do {
		struct pollfd wish = { .fd = fd, .events = POLLIN };

		assert_int_equal(poll(&wish, 1, 2000), 1);
		more = read(fd, answer + size, sizeof(answer) - 1 - size);
		assert_true(more >= 0);
		size += (size_t)more;
	} while (more);
	answer[size] = '\0';
	close(fd);
	return answer;
}

static char *asked(const char *request)
{
	int fd = connected();

	assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
	return answer_of(fd);
}

static void pages(void **state)
{
	struct stat status;
	char path[64], *answer;

	snprintf(path, sizeof(path), "%s/" SOCKET_NAME, directory);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0600);
	answer = asked("GET /x HTTP/1.1\r\n\r\n");
	assert_int_equal(strncmp(answer, "HTTP/1.1 200 OK\r\n", 17), 0);
	assert_non_null(strstr(answer, "Content-Length: 11\r\n"));
	assert_non_null(strstr(answer, "\r\n\r\nthis is /x\n"));
	answer = asked("HEAD /x HTTP/1.1\r\n\r\n");
	assert_non_null(strstr(answer, "Content-Length: 11\r\n"));
	assert_string_equal(strstr(answer, "\r\n\r\n"), "\r\n\r\n");
	assert_non_null(strstr(asked("GET /none HTTP/1.1\r\n\r\n"), "\r\n\r\n404 Not Found\n"));
	assert_non_null(strstr(asked("GET /ill HTTP/1.1\r\n\r\n"), "HTTP/1.1 503 Service Unavailable\r\n"));
	assert_non_null(strstr(asked("DELETE / HTTP/1.1\r\n\r\n"), "Allow: GET, HEAD\r\n"));
	assert_non_null(strstr(asked("GET /too-large HTTP/1.1\r\n\r\n"), "HTTP/1.1 500 "));
	answer = asked("GET /large HTTP/1.1\r\n\r\n");
	assert_int_equal(strlen(strstr(answer, "\r\n\r\n")), 4 + 700000);
}

static void a_body_is_not_read(void **state)
{
	char request[65536] = "POST /x HTTP/1.1\r\nContent-Length: 60000\r\n\r\n";

	memset(request + strlen(request), 'x', sizeof(request) - 1 - strlen(request));
	assert_non_null(strstr(asked(request), "HTTP/1.1 405 "));
}

static void heads_without_end(void **state)
{
	char request[4200] = "GET /";
	int fd = connected();

	memset(request + strlen(request), 'x', sizeof(request) - 1 - strlen(request));
	assert_non_null(strstr(asked(request), "HTTP/1.1 431 "));
	for (size_t i = 0; i < 40; i++) /* in small pieces */
		assert_int_equal(send(fd, request + 100 * i, 100, MSG_NOSIGNAL), 100);
	assert_int_equal(send(fd, "\r\n\r\n", 4, MSG_NOSIGNAL), 4);
	assert_non_null(strstr(answer_of(fd), "HTTP/1.1 400 "));
}

static void silent_clients(void **state)
{
	int fds[50];

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = connected();
		if (i % 2)
			assert_int_equal(send(fds[i], "GET /", 5, MSG_NOSIGNAL), 5);
		assert_non_null(strstr(asked("GET /x HTTP/1.1\r\n\r\n"), "this is /x\n"));
	}
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		close(fds[i]);
	assert_non_null(strstr(asked("GET /x HTTP/1.1\r\n\r\n"), "this is /x\n"));
}

/* They ask and do not read. */
static void deaf_clients(void **state)
{
	int fds[20];

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = connected();
		assert_int_equal(send(fds[i], "GET /large HTTP/1.1\r\n\r\n", 23, MSG_NOSIGNAL), 23);
	}
	assert_non_null(strstr(asked("GET /x HTTP/1.1\r\n\r\n"), "this is /x\n"));
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		close(fds[i]);
}

/* The socket of a killed process is replaced, one on which somebody listens is not, and no file of another kind. */
static void what_was_there(void **state)
{
	char path[64];
	FILE *file;
	int fd;

	assert_int_equal(listener_connect_in(directory, "no"), -ENOENT);
	fd = listener_open_in(directory, "t", NULL);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(listener_connect_in(directory, "t"), -ECONNREFUSED);
	fd = listener_open_in(directory, "t", NULL);
	assert_true(fd >= 0);
	assert_int_equal(listener_open_in(directory, "t", NULL), -EADDRINUSE);
	listener_close_in(fd, directory, "t");
	assert_int_equal(listener_connect_in(directory, "t"), -ENOENT);
	snprintf(path, sizeof(path), "%s/t", directory);
	file = fopen(path, "w");
	assert_non_null(file);
	fclose(file);
	assert_int_equal(listener_open_in(directory, "t", NULL), -EADDRINUSE);
	assert_int_equal(unlink(path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests),
		cmocka_unit_test(addresses),
		cmocka_unit_test_setup_teardown(pages, start, end),
		cmocka_unit_test_setup_teardown(a_body_is_not_read, start, end),
		cmocka_unit_test_setup_teardown(heads_without_end, start, end),
		cmocka_unit_test_setup_teardown(silent_clients, start, end),
		cmocka_unit_test_setup_teardown(deaf_clients, start, end),
		cmocka_unit_test_setup_teardown(what_was_there, start, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
