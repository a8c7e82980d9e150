// SPDX-License-Identifier: Apache-2.0
#include "debuginfod/fetch_serve.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "base/number.h"
#include "base/rights.h"
#include "base/spawn.h"
#include "curl/curl_api.h"
#include "debuginfod/fetch_message.h"

#define MAX_MEMORY_BYTES   ((rlim_t)512 << 20) /* TLS and its certificates; eight threads that resolve host names */
#define MAX_REDIRECTS      3L
#define CONNECT_MS         5000L
#define DEFAULT_STALL_S    30
#define STALL_BYTES_PER_S  1024L
#define LOOK_MS            1000
#define URL_BYTES          2048u

/* A transfer in progress; fd -1: none. */
struct transfer {
	const struct server *server;
	void *easy;
	int fd;
	uint32_t number;
	uint64_t size;
	const char *rest;        /* the URLs not tried yet */
	bool failed, is_large;   /* a server could not be asked; the file is larger than max_bytes */
	char build_id[FETCH_ID_CHARS + 1];
	char error[CURL_ERROR_BYTES], text[FETCH_TEXT_BYTES]; /* curl's text; the text of the first failure */
};

struct server {
	struct curl_api curl;
	void *multi;
	const char *urls;
	long stall_s;
	uint64_t max_bytes;      /* the limit for a file */
	struct transfer transfers[FETCH_MAX_AT_ONCE];
};

static int send_answer(const struct fetch_answer *answer)
{
	ssize_t sent;

	do
		sent = send(SPAWN_SOCKET, answer, sizeof(*answer), MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

/* --- one transfer --------------------------------------------------------------------------------------------------------------------- */

static size_t take_bytes(char *bytes, size_t size, size_t nr, void *arg)
{
	struct transfer *transfer = arg;
	size_t left = size * nr; /* size is 1 */

	if (left > transfer->server->max_bytes - transfer->size) {
		transfer->is_large = true;
		return 0;
	}
	while (left) {
		ssize_t written = pwrite(transfer->fd, bytes, left, (off_t)transfer->size);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0) {
			snprintf(transfer->error, sizeof(transfer->error), "it cannot be written: %s", strerror(errno));
			return 0;
		}
		bytes += written;
		left -= (size_t)written;
		transfer->size += (uint64_t)written;
	}
	return size * nr;
}

/* Returns the next URL; blanks separate them. Skips other words (Fedora's "ima:enforcing"). */
static bool next_url(struct transfer *transfer, char url[URL_BYTES])
{
	while (*(transfer->rest += strspn(transfer->rest, " \t\n"))) {
		const char *word = transfer->rest;
		int length = (int)strcspn(word, " \t\n");

		transfer->rest += length;
		if (!strncmp(word, "ima:", 4))
			continue;
		while (length && word[length - 1] == '/')
			length--;
		if (snprintf(url, URL_BYTES, "%.*s/buildid/%s/debuginfo", length, word, transfer->build_id) < (int)URL_BYTES)
			return true;
	}
	return false;
}

/* Sets all options but the URL. */
static int set_options(struct server *server, struct transfer *transfer)
{
	int (*set)(void *easy, int option, ...) = server->curl.easy_setopt;
	void *easy = transfer->easy;
	long protocols = CURL_PROTOCOL_HTTP | CURL_PROTOCOL_HTTPS;

	return set(easy, CURL_PROTOCOLS, protocols) || set(easy, CURL_REDIR_PROTOCOLS, protocols) || set(easy, CURL_FOLLOWLOCATION, 1L) ||
		       set(easy, CURL_MAXREDIRS, MAX_REDIRECTS) || set(easy, CURL_NOSIGNAL, 1L) || set(easy, CURL_FAILONERROR, 1L) ||
		       set(easy, CURL_CONNECTTIMEOUT_MS, CONNECT_MS) || set(easy, CURL_LOW_SPEED_LIMIT, STALL_BYTES_PER_S) ||
		       set(easy, CURL_LOW_SPEED_TIME, server->stall_s) || set(easy, CURL_MAXFILESIZE_LARGE, (int64_t)server->max_bytes) ||
		       set(easy, CURL_USERAGENT, "sonde/" SONDE_VERSION) || set(easy, CURL_WRITEFUNCTION, take_bytes) ||
		       set(easy, CURL_WRITEDATA, transfer) || set(easy, CURL_PRIVATE, transfer) ||
		       set(easy, CURL_ERRORBUFFER, transfer->error)
		   ? -EIO
		   : 0;
}

static int start(struct server *server, struct transfer *transfer, const char *url)
{
	int err;

	if (ftruncate(transfer->fd, 0))
		return -errno;
	transfer->size = 0;
	transfer->is_large = false;
	transfer->error[0] = '\0';
	transfer->easy = server->curl.easy_init();
	if (!transfer->easy)
		return -ENOMEM;
	err = set_options(server, transfer);
	if (!err && server->curl.easy_setopt(transfer->easy, CURL_URL, url))
		err = -ENOMEM;
	if (!err && server->curl.multi_add_handle(server->multi, transfer->easy))
		err = -EIO;
	if (err)
		server->curl.easy_cleanup(transfer->easy);
	return err;
}

static int finish(struct transfer *transfer, int status, const char *text)
{
	struct fetch_answer answer = { .number = transfer->number, .status = status, .size = status ? 0 : transfer->size };

	snprintf(answer.text, sizeof(answer.text), "%s", text);
	close(transfer->fd);
	transfer->fd = -1;
	return send_answer(&answer);
}

/* Tries the next server; if there is none, answers. */
static int ask_next(struct server *server, struct transfer *transfer)
{
	char url[URL_BYTES];
	int err;

	if (!next_url(transfer, url))
		return transfer->failed ? finish(transfer, -EIO, transfer->text) : finish(transfer, -ENOENT, "");
	err = start(server, transfer, url);
	return err ? finish(transfer, err, strerror(-err)) : 0;
}

static void note_failure(struct server *server, struct transfer *transfer, int result)
{
	const char *text = transfer->error[0] ? transfer->error : server->curl.easy_strerror(result);

	if (!transfer->failed && transfer->is_large)
		snprintf(transfer->text, sizeof(transfer->text), "it is larger than %llu MiB",
			 (unsigned long long)(server->max_bytes >> 20));
	else if (!transfer->failed)
		snprintf(transfer->text, sizeof(transfer->text), "%.199s", result ? text : "an empty answer");
	transfer->failed = true;
}

static int end_transfer(struct server *server, const struct curl_message *message)
{
	void *easy = message->easy;
	int result = message->data.result;
	struct transfer *transfer = NULL;
	long code = 0;

	server->curl.easy_getinfo(easy, CURL_INFO_PRIVATE, &transfer);
	server->curl.easy_getinfo(easy, CURL_INFO_RESPONSE_CODE, &code);
	server->curl.multi_remove_handle(server->multi, easy);
	server->curl.easy_cleanup(easy);
	if (!result && code == 200 && transfer->size)
		return finish(transfer, 0, "");
	if (code != 404 && code != 410)
		note_failure(server, transfer, result);
	return ask_next(server, transfer);
}

/* --- requests ------------------------------------------------------------------------------------------------------------------------- */

/* The descriptor in a message; -1: none. */
static int fd_of(struct msghdr *message)
{
	struct cmsghdr *header = CMSG_FIRSTHDR(message);
	int fd = -1;

	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS && header->cmsg_len == CMSG_LEN(sizeof(fd)))
		memcpy(&fd, CMSG_DATA(header), sizeof(fd));
	return fd;
}

static struct transfer *find_free(struct server *server)
{
	for (size_t i = 0; i < FETCH_MAX_AT_ONCE; i++) {
		if (server->transfers[i].fd < 0)
			return &server->transfers[i];
	}
	return NULL;
}

/* 0; -EAGAIN: no request now; any other value ends the process. */
static int take_request(struct server *server)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct fetch_request request;
	struct iovec part = { .iov_base = &request, .iov_len = sizeof(request) };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control) };
	struct transfer *transfer = find_free(server);
	ssize_t got = transfer ? recvmsg(SPAWN_SOCKET, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) : -1;

	if (!transfer)
		return -EAGAIN; /* the owner does not send so many at once */
	if (got < 0)
		return errno == EINTR ? 0 : -errno;
	if (got != (ssize_t)sizeof(request))
		return got ? -EBADMSG : -EPIPE;
	*transfer = (struct transfer){ .server = server, .fd = fd_of(&message), .number = request.number, .rest = server->urls };
	if (transfer->fd < 0)
		return -EBADMSG;
	memcpy(transfer->build_id, request.build_id, FETCH_ID_CHARS);
	return ask_next(server, transfer);
}

static int step(struct server *server)
{
	struct curl_wait wait = { .fd = SPAWN_SOCKET, .events = 1 /* readable, in curl's numbers */ };
	struct curl_message *message;
	int running, left, err = 0;

	if (server->curl.multi_perform(server->multi, &running))
		return -EIO;
	while (!err && (message = server->curl.multi_info_read(server->multi, &left)))
		err = message->kind == CURL_MESSAGE_DONE ? end_transfer(server, message) : 0;
	while (!err)
		err = take_request(server);
	if (err != -EAGAIN)
		return err;
	return server->curl.multi_poll(server->multi, &wait, 1, LOOK_MS, NULL) ? -EIO : 0;
}

/* --- the process ---------------------------------------------------------------------------------------------------------------------- */

static int set_up(struct server *server)
{
	const char *stall = getenv("DEBUGINFOD_TIMEOUT");
	uint64_t stall_s;
	int err = rights_limit(RLIMIT_CORE, 0);

	if (!err)
		err = rights_limit(RLIMIT_FSIZE, server->max_bytes);
#ifndef __SANITIZE_ADDRESS__ /* its shadow memory counts */
	if (!err)
		err = rights_limit(RLIMIT_DATA, MAX_MEMORY_BYTES);
#endif
	if (!err)
		err = rights_give_up();
	if (!err)
		err = curl_api_load(&server->curl);
	if (err)
		return err;
	server->stall_s = stall && !number_u64(stall, 86400, &stall_s) ? (long)stall_s : DEFAULT_STALL_S;
	server->urls = getenv("DEBUGINFOD_URLS");
	if (!server->urls || server->curl.global_init(CURL_GLOBAL_ALL))
		return -EINVAL;
	server->multi = server->curl.multi_init();
	return server->multi ? 0 : -ENOMEM;
}

bool serve_as_fetcher(int argc, char **argv, int *ret_code)
{
	struct server server = { 0 };
	struct fetch_answer ready = { .number = FETCH_READY };
	int err;

	if (argc != 2 || strcmp(argv[0], FETCH_NAME) || number_u64(argv[1], INT64_MAX, &server.max_bytes))
		return false;
	prctl(PR_SET_NAME, FETCH_NAME); /* as worker/serve.c does */
	close_range(SPAWN_SOCKET + 1, ~0u, 0);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	for (size_t i = 0; i < FETCH_MAX_AT_ONCE; i++)
		server.transfers[i].fd = -1;
	err = ready.status = set_up(&server);
	if (!err)
		err = send_answer(&ready);
	else if (send_answer(&ready))
		err = -EPIPE;
	while (!err)
		err = step(&server);
	*ret_code = err != -EPIPE; /* the owner has closed */
	return true;
}
