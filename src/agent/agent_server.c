// SPDX-License-Identifier: Apache-2.0
#include "agent/agent_server.h"

#include <errno.h>
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

static void add_socket(const char *store, struct http_server_options *options)
{
	struct diag diag = { 0 };
	int fd = listener_open_in(store, AGENT_SOCKET, &diag);

	if (fd < 0)
		output_say("warning: no --status of this agent: %s", failure_text(&diag, fd));
	else
		options->listeners[options->nr_listeners++] = fd;
}

static int add_address(const char *listen, struct http_server_options *options, struct diag *diag)
{
	char bound[LISTENER_ADDRESS_BYTES];
	int fd = listener_open(listen, bound, diag);

	if (fd < 0)
		return fd;
	options->listeners[options->nr_listeners++] = fd;
	output_say("Listening on %s", bound);
	return 0;
}

int agent_server_start(const struct agent_sources *sources, const char *listen, struct diag *diag, struct agent_server **ret_server)
{
	struct agent_server *server = calloc(1, sizeof(*server));
	struct http_server_options options = { .page = make_page, .arg = server };
	int err = server && listen ? add_address(listen, &options, diag) : server ? 0 : -ENOMEM;

	if (!err) {
		server->sources = *sources;
		add_socket(sources->store, &options);
		err = http_server_start(&options, diag, &server->http);
	}
	if (err)
		free(server);
	else
		*ret_server = server;
	return err;
}

void agent_server_end(struct agent_server *server)
{
	if (!server)
		return;
	http_server_end(server->http);
	listener_remove_in(server->sources.store, AGENT_SOCKET);
	free(server);
}
