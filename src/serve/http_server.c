// SPDX-License-Identifier: Apache-2.0
/* One thread polls the listeners and all connections. A connection reads its head, then writes its answer, then reads on until the client
 * closes: closed at once, with bytes unread, the kernel would reset it, and the client might lose the answer. */
#include "serve/http_server.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/hold_signals.h"
#include "base/stop_fd.h"
#include "serve/http_request.h"

#define MAX_CONNECTIONS 16
#define MAX_HEAD_BYTES	4096
#define MAX_PAGE_BYTES	((size_t)1 << 20)
#define MAX_HEADERS	512 /* bytes of the answer's */
#define CONNECTION_NS	(5 * NS_PER_S)
#define REST_NS		(100 * NS_PER_MS) /* when no connection can be taken: no more descriptors */

struct connection {
	int fd; /* -1: the place is free */
	uint64_t end_ns;
	char head[MAX_HEAD_BYTES];
	size_t head_bytes;
	struct buffer answer;
	size_t nr_written;
	bool is_answered; /* all was written */
};

struct http_server {
	struct http_server_options options;
	int stop_fd;
	uint64_t rest_ns; /* until then no connection is taken; 0: none */
	pthread_t thread;
	struct connection connections[MAX_CONNECTIONS];
};

static void close_connection(struct connection *connection)
{
	closep(&connection->fd);
	buffer_done(&connection->answer);
	connection->fd = -1;
}

/* --- an answer ------------------------------------------------------------------------------------------------------------------------ */

static void write_answer(struct buffer *answer, const struct http_page *page, bool is_head)
{
	buffer_printf(answer,
		      "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nConnection: close\r\nCache-Control: no-store\r\n"
		      "X-Content-Type-Options: nosniff\r\n%s\r\n",
		      page->status, http_reason(page->status), page->type, page->body.size,
		      page->status == 405 ? "Allow: GET, HEAD\r\n" : "");
	if (!is_head && page->body.size)
		buffer_append(answer, page->body.data, page->body.size);
}

/* Fills in what a request gets. `status`: 0, or why it is refused. */
static void make_answer(const struct http_server *server, struct connection *connection, int status, const struct http_request *request)
{
	struct http_page page = { .status = 200, .type = "text/plain; charset=utf-8", .body = BUFFER_INIT(MAX_PAGE_BYTES) };

	connection->answer = BUFFER_INIT(MAX_PAGE_BYTES + MAX_HEADERS);
	if (!status && !server->options.page(server->options.arg, request->path, &page))
		status = 404;
	if (!status && page.body.err)
		status = 500;
	if (status) {
		buffer_done(&page.body);
		page = (struct http_page){ .status = status, .type = "text/plain; charset=utf-8", .body = BUFFER_INIT(MAX_HEADERS) };
		buffer_printf(&page.body, "%d %s\n", status, http_reason(status));
	}
	write_answer(&connection->answer, &page, request->is_head);
	buffer_done(&page.body);
}

/* --- a connection --------------------------------------------------------------------------------------------------------------------- */

/* The following return true when the connection is over. */
static bool write_more(struct connection *connection)
{
	const struct buffer *answer = &connection->answer;
	ssize_t size;

	if (answer->err)
		return true;
	size = send(connection->fd, answer->data + connection->nr_written, answer->size - connection->nr_written, MSG_NOSIGNAL);
	if (size < 0)
		return errno != EAGAIN && errno != EINTR;
	connection->nr_written += (size_t)size;
	if (connection->nr_written == answer->size) {
		connection->is_answered = true;
		buffer_done(&connection->answer);
		shutdown(connection->fd, SHUT_WR);
	}
	return false;
}

static bool drop_input(struct connection *connection)
{
	ssize_t size = recv(connection->fd, connection->head, sizeof(connection->head), 0);

	return !size || (size < 0 && errno != EAGAIN && errno != EINTR);
}

static bool read_more(const struct http_server *server, struct connection *connection)
{
	struct http_request request = { 0 };
	size_t room = sizeof(connection->head) - connection->head_bytes;
	ssize_t size = recv(connection->fd, connection->head + connection->head_bytes, room, 0);

	if (size <= 0)
		return !size || (errno != EAGAIN && errno != EINTR);
	connection->head_bytes += (size_t)size;
	if (http_head_is_whole(connection->head, connection->head_bytes))
		make_answer(server, connection, http_request_parse(connection->head, connection->head_bytes, &request), &request);
	else if (connection->head_bytes == sizeof(connection->head))
		make_answer(server, connection, 431, &request);
	else
		return false;
	return write_more(connection);
}

static bool step(const struct http_server *server, struct connection *connection)
{
	if (connection->is_answered)
		return drop_input(connection);
	return connection->answer.size || connection->answer.err ? write_more(connection) : read_more(server, connection);
}

/* --- all of them ---------------------------------------------------------------------------------------------------------------------- */

/* A free place, or that of the oldest connection. */
static struct connection *make_place(struct http_server *server)
{
	struct connection *oldest = &server->connections[0];

	for (size_t i = 0; i < MAX_CONNECTIONS; i++) {
		struct connection *connection = &server->connections[i];

		if (connection->fd < 0)
			return connection;
		if (connection->end_ns < oldest->end_ns)
			oldest = connection;
	}
	close_connection(oldest);
	return oldest;
}

static void take_connection(struct http_server *server, int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct connection *connection;

	if (fd < 0) {
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			server->rest_ns = clock_ns() + REST_NS;
		return;
	}
	connection = make_place(server);
	connection->fd = fd;
	connection->end_ns = clock_ns() + CONNECTION_NS;
	connection->head_bytes = connection->nr_written = 0;
	connection->is_answered = false;
}

static void close_old(struct http_server *server, uint64_t now_ns)
{
	for (size_t i = 0; i < MAX_CONNECTIONS; i++) {
		if (server->connections[i].fd >= 0 && server->connections[i].end_ns <= now_ns)
			close_connection(&server->connections[i]);
	}
	if (server->rest_ns <= now_ns)
		server->rest_ns = 0;
}

static int timeout_ms(const struct http_server *server, uint64_t now_ns)
{
	uint64_t next_ns = server->rest_ns ? server->rest_ns : UINT64_MAX;

	for (size_t i = 0; i < MAX_CONNECTIONS; i++) {
		if (server->connections[i].fd >= 0 && server->connections[i].end_ns < next_ns)
			next_ns = server->connections[i].end_ns;
	}
	return next_ns == UINT64_MAX ? -1 : (int)((next_ns - now_ns) / NS_PER_MS) + 1;
}

static struct pollfd wish_of(const struct connection *connection)
{
	bool writes = !connection->is_answered && connection->answer.size;

	return (struct pollfd){ .fd = connection->fd, .events = writes ? POLLOUT : POLLIN }; /* poll ignores -1 */
}

/* Waits until there is something to do, and does it. False: it is over. */
static bool turn(struct http_server *server)
{
	struct pollfd wishes[MAX_CONNECTIONS + HTTP_SERVER_MAX_LISTENERS + 1];
	struct pollfd *of_listeners = wishes + MAX_CONNECTIONS, *stop = of_listeners + HTTP_SERVER_MAX_LISTENERS;
	uint64_t now_ns = clock_ns();

	close_old(server, now_ns);
	for (size_t i = 0; i < MAX_CONNECTIONS; i++)
		wishes[i] = wish_of(&server->connections[i]);
	for (size_t i = 0; i < HTTP_SERVER_MAX_LISTENERS; i++) {
		bool waits = i < server->options.nr_listeners && !server->rest_ns;

		of_listeners[i] = (struct pollfd){ .fd = waits ? server->options.listeners[i] : -1, .events = POLLIN };
	}
	*stop = (struct pollfd){ .fd = server->stop_fd, .events = POLLIN };
	if (poll(wishes, ARRAY_SIZE(wishes), timeout_ms(server, now_ns)) < 0)
		return true; /* EINTR; ENOMEM */
	for (size_t i = 0; i < MAX_CONNECTIONS; i++) {
		if (wishes[i].revents && step(server, &server->connections[i]))
			close_connection(&server->connections[i]);
	}
	for (size_t i = 0; i < HTTP_SERVER_MAX_LISTENERS; i++) {
		if (of_listeners[i].revents)
			take_connection(server, of_listeners[i].fd);
	}
	return !stop->revents;
}

static void *run(void *arg)
{
	struct http_server *server = arg;

	while (turn(server))
		;
	return NULL;
}

static void server_free(struct http_server *server)
{
	for (size_t i = 0; i < MAX_CONNECTIONS; i++)
		close_connection(&server->connections[i]);
	closep(&server->stop_fd);
	free(server);
}

static int start_thread(struct http_server *server)
{
	HOLD_SIGNALS();

	return -pthread_create(&server->thread, NULL, run, server);
}

int http_server_start(const struct http_server_options *options, struct diag *diag, struct http_server **ret_server)
{
	struct http_server *server = calloc(1, sizeof(*server));
	int err;

	if (!server)
		return -ENOMEM;
	server->options = *options;
	for (size_t i = 0; i < MAX_CONNECTIONS; i++)
		server->connections[i].fd = -1;
	server->stop_fd = stop_fd_new();
	err = server->stop_fd < 0 ? server->stop_fd : start_thread(server);
	if (err) {
		server_free(server);
		return diag_errno(diag, -err, "no thread for the server: %s", strerror(-err));
	}
	*ret_server = server;
	return 0;
}

void http_server_end(struct http_server *server)
{
	if (!server)
		return;
	stop_fd_set(server->stop_fd);
	pthread_join(server->thread, NULL);
	server_free(server);
}
