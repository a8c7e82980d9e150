/* SPDX-License-Identifier: Apache-2.0 */
/* agent_server: what an agent says of itself, over HTTP: /metrics, /healthz, /status and /status.json, on the socket `status` in the
 * store's directory and on the address that was asked for. On a thread of its own. */
#pragma once
#include "agent/agent_report.h"
#include "base/cleanup.h"
#include "base/diag.h"

#define AGENT_SOCKET "status"

struct agent_server;
/* `listen`: NULL: only the socket. Says what cannot be: without the socket the agent goes on, without the address it does not begin. */
MUST_CHECK int agent_server_start(const struct agent_sources *sources, const char *listen, struct diag *diag,
				  struct agent_server **ret_server);
void agent_server_end(struct agent_server *server); /* takes NULL */
