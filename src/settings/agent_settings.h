/* SPDX-License-Identifier: Apache-2.0 */
/* agent_settings: what of the agent's arguments needs more than to be stored: durations, addresses, lists. */
#pragma once
#include <limits.h>
#include <stdint.h>

#include "base/diag.h"
#include "flight/trigger.h"
#include "send/endpoint.h"
#include "send/otlp_push.h"
#include "send/pyroscope_push.h"
#include "settings/agent_measures.h"
#include "settings/agent_options.h"
#include "skywalking/sky_names.h"

#define MAX_NAMES      64 /* the library takes less, and says so */
#define MAX_NAME_BYTES 8192

/* Names of variables, as the library takes them. */
struct env_names {
	const char *list[MAX_NAMES + 1];
	char texts[MAX_NAME_BYTES];
};

struct agent_settings {
	uint64_t max_age_ns;
	struct agent_measures measures;
	bool addresses; /* no names of code in files */
	struct endpoint otlp, parca, clickhouse, skywalking; /* where they are given */
	struct otlp_push otlp_push;
	/* with --pyroscope */
	char pyroscope_url[ENDPOINT_URL_BYTES], pyroscope_name[ENDPOINT_URL_BYTES];
	struct series_labels pyroscope_labels;
	/* names of destinations in the store: two may have the same address, and have a position each */
	char parca_name[ENDPOINT_URL_BYTES], clickhouse_name[ENDPOINT_URL_BYTES];
	struct series_labels parca_labels;
	char host[HOST_NAME_MAX + 1];
	struct sky_names sky_names;
	struct env_names env;
	struct triggers triggers; /* with --recorder */
};

const char *agent_symbols_at(uint32_t i); /* the words of --symbols; NULL ends */
void agent_settings_done(struct agent_settings *settings);

/* Borrows the arguments' texts. 0; -EINVAL, or another error, with a line. */
MUST_CHECK int agent_settings_parse(const struct agent_arguments *arguments, struct agent_settings *ret_settings, struct diag *diag);
