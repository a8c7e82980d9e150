// SPDX-License-Identifier: Apache-2.0
#include "agent/agent_server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/metrics_page.h"
#include "agent/status_page.h"
#include "cli/output.h"
#include "cli/session_end.h"
#include "serve/http_server.h"
#include "serve/listener.h"

struct agent_server {
	struct agent_sources sources;
	struct store_report store; /* the server thread's */
	struct http_server *http;
	const char *listen;        /* NULL: only the socket */
	int listen_fd, socket_fd;  /* -1: none */
};

/* --- pages ---------------------------------------------------------------------------------------------------------------------------- */

static void write_metrics(const struct agent_report *report, struct http_page *page)
{
	page->type = METRICS_PAGE_TYPE;
	metrics_page_write(report, &page->body);
}

static void write_health(const struct agent_report *report, struct http_page *page)
{
	page->status = report->is_healthy ? 200 : 503;
	buffer_printf(&page->body, "%s\n", report->health);
}

static void write_status(const struct agent_report *report, struct http_page *page)
{
	status_page_text(report, &page->body);
}

static void write_json(const struct agent_report *report, struct http_page *page)
{
	page->type = "application/json";
	status_page_json(report, &page->body);
}

static void write_index(const struct agent_report *report, struct http_page *page)
{
	buffer_text(&page->body, "/metrics\n/healthz\n/status\n/status.json\n");
}

static const struct {
	const char *path;
	void (*write)(const struct agent_report *report, struct http_page *page);
} pages[] = {
	{ "/", write_index },	  { "/metrics", write_metrics },   { "/healthz", write_health },
	{ "/status", write_status }, { "/status.json", write_json },
};

static bool make_page(void *arg, const char *path, struct http_page *page)
{
	struct agent_server *server = arg;
	struct agent_report report;

	for (size_t i = 0; i < ARRAY_SIZE(pages); i++) {
		if (strcmp(path, pages[i].path) != 0)
			continue;
		agent_report_make(&server->sources, &server->store, &report);
		pages[i].write(&report, page);
		return true;
	}
	return false;
}

/* --- its life ------------------------------------------------------------------------------------------------------------------------- */

/* Without it the agent goes on. */
static void open_socket(struct agent_server *server)
{
	struct diag diag = { 0 };

	if (store_is_in_memory(server->sources.store))
		return;
	server->socket_fd = listener_open_in(server->sources.store, AGENT_SOCKET, &diag);
	if (server->socket_fd < 0)
		output_say("warning: no --status of this agent: %s", failure_text(&diag, server->socket_fd));
}

static int open_address(struct agent_server *server, const char *listen, struct diag *diag)
{
	char bound[LISTENER_ADDRESS_BYTES];

	server->listen_fd = listener_open(listen, bound, diag);
	if (server->listen_fd < 0)
		return server->listen_fd;
	server->listen = listen;
	output_say("Listening on %s", bound);
	return 0;
}

static int start(struct agent_server *server, struct diag *diag)
{
	const int fds[] = { server->listen_fd, server->socket_fd };
	struct http_server_options options = { .page = make_page, .arg = server };

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		if (fds[i] >= 0)
			options.listeners[options.nr_listeners++] = fds[i];
	}
	return http_server_start(&options, diag, &server->http);
}

int agent_server_start(const struct agent_sources *sources, const char *listen, struct diag *diag, struct agent_server **ret_server)
{
	struct agent_server *server = calloc(1, sizeof(*server));
	int err;

	if (!server)
		return -ENOMEM;
	server->sources = *sources;
	server->listen_fd = server->socket_fd = -1;
	err = listen ? open_address(server, listen, diag) : 0;
	if (!err) {
		open_socket(server);
		err = start(server, diag);
	}
	if (err)
		agent_server_end(server);
	else
		*ret_server = server;
	return err;
}

void agent_server_end(struct agent_server *server)
{
	if (!server)
		return;
	http_server_end(server->http);
	if (server->listen_fd >= 0)
		listener_close(server->listen_fd, server->listen);
	if (server->socket_fd >= 0)
		listener_close_in(server->socket_fd, server->sources.store, AGENT_SOCKET);
	free(server);
}
