// SPDX-License-Identifier: Apache-2.0
#include "agent/agent_status.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <sonde/sonde.h>

#include "agent/agent_server.h"
#include "base/file.h"
#include "base/plain_text.h"
#include "cli/output.h"
#include "serve/listener.h"

#define MAX_ANSWER_BYTES ((size_t)1 << 20)
#define ANSWER_S	 10
#define OK		 "HTTP/1.1 200 "

static int read_all(int fd, struct buffer *answer)
{
	char bytes[16384];
	ssize_t size;

	while ((size = recv(fd, bytes, sizeof(bytes), 0)) > 0 && !answer->err)
		buffer_append(answer, bytes, (size_t)size);
	return size < 0 ? -errno : answer->err;
}

static int ask(const char *store, const char *path, struct buffer *answer)
{
	CLEANUP(closep) int fd = listener_connect_in(store, AGENT_SOCKET);
	const struct timeval limit = { .tv_sec = ANSWER_S };
	char request[128];
	int size;

	if (fd < 0)
		return fd;
	size = snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: sonde\r\n\r\n", path);
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) || send(fd, request, (size_t)size, MSG_NOSIGNAL) != size)
		return -errno;
	return read_all(fd, answer);
}

/* Whoever has the directory has written this: no line of it may command a terminal. */
static void make_plain(char *text, struct buffer *result)
{
	for (char *line = text, *end; *line; line = end) {
		end = line + strcspn(line, "\n");
		if (*end)
			*end++ = '\0';
		plain_make(line);
		buffer_printf(result, "%s\n", line);
	}
}

int agent_status(const char *store, bool json)
{
	CLEANUP(buffer_done) struct buffer answer = BUFFER_INIT(MAX_ANSWER_BYTES), result = BUFFER_INIT(2 * MAX_ANSWER_BYTES);
	int err = ask(store, json ? "/status.json" : "/status", &answer);
	char *body = err || !answer.data ? NULL : strstr(answer.data, "\r\n\r\n");

	if (err == -ENOENT || err == -ECONNREFUSED)
		output_say("no agent has the store %s: --store names another", store);
	else if (err)
		output_say("cannot ask the agent of the store %s: %s", store, err == -EAGAIN ? "it does not answer" : strerror(-err));
	else if (!body || strncmp(answer.data, OK, strlen(OK)) != 0)
		output_say("the agent of the store %s does not say its status", store);
	else
		make_plain(body + strlen("\r\n\r\n"), &result);
	return result.size ? output_result(&result) : SONDE_EXIT_FAILED;
}
