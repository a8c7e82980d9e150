/* SPDX-License-Identifier: Apache-2.0 */
/* agent_options: what can be said to the agent: its options, which are also the keys of its file of settings (config.h). */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "cli/option.h"

/* Of --otlp, --otlp-header, ...; with the same fields for each kind of destination. */
struct destination_arguments {
	const char *address, *ca, *cert, *key;
	struct option_texts headers;
};

struct agent_arguments {
	uint64_t freq_hz, window_s, duration_s, store_max_bytes;
	uint64_t max_cpu_percent; /* 0: no limit */
	uint64_t max_memory_mib;  /* 0: no limit */
	uint64_t audit_every;     /* 0: none */
	const char *counters;     /* NULL: none */
	const char *store, *store_max_age, *config;
	const char *runtimes; /* NULL: all */
	const char *symbols;
	const char *measure;
	struct destination_arguments otlp, pyroscope, parca, clickhouse, skywalking;
	struct option_texts pyroscope_labels, parca_labels, env;
	const char *skywalking_authentication, *skywalking_period;
	const char *skywalking_layer, *skywalking_service, *skywalking_instance, *skywalking_process;
	uint64_t skywalking_heartbeat_s, skywalking_check_s, skywalking_flush_s;
	uint64_t recorder_s, recorder_after_s, recorder_max_bytes; /* recorder_s 0: none */
	struct option_texts triggers;
	const char *listen, *format;
	const char *otlp_compression, *otlp_version;
	bool disable_tls;
	bool print_config, status;
};

#define AGENT_NR_OPTIONS 62
extern const struct option_spec agent_options[AGENT_NR_OPTIONS];
/* What holds where nothing is given: in the arguments, zeros are not given. */
extern const struct agent_arguments agent_defaults;
/* The defaults that depend on other settings: after all the others. */
void agent_options_finish(struct agent_arguments *arguments);
