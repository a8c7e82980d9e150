// SPDX-License-Identifier: Apache-2.0
#include "settings/agent_settings.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/runtimes_option.h"
#include "send/parca_push.h"
#include "serve/listener.h"
#include "store/store.h"
#include "store/store_path.h"

static int parse_env(const struct option_texts *given, struct env_names *names, struct diag *diag)
{
	size_t size = 0;
	uint32_t nr = 0;

	for (uint32_t i = 0; i < given->nr; i++) {
		size_t bytes = strlen(given->texts[i]) + 1;
		char *rest = names->texts + size, *name;

		if (bytes > sizeof(names->texts) - size)
			return diag_errno(diag, EINVAL, "env: the names are too long");
		memcpy(rest, given->texts[i], bytes);
		size += bytes;
		while ((name = strsep(&rest, ","))) {
			if (nr == MAX_NAMES)
				return diag_errno(diag, EINVAL, "env: too many names");
			names->list[nr++] = name;
		}
	}
	names->list[nr] = NULL;
	return 0;
}

static int parse_sky_names(const struct agent_arguments *arguments, struct agent_settings *settings, struct diag *diag)
{
	if (gethostname(settings->host, sizeof(settings->host)))
		snprintf(settings->host, sizeof(settings->host), "unknown");
	settings->sky_names = (struct sky_names){ .layer = arguments->skywalking_layer,
					      .service = arguments->skywalking_service,
					      .instance = arguments->skywalking_instance,
					      .process = arguments->skywalking_process,
					      .host = settings->host };
	return sky_names_check(&settings->sky_names, diag);
}

static int parse_otlp(const struct agent_arguments *arguments, struct agent_settings *settings, struct diag *diag)
{
	return otlp_endpoint_parse(arguments->otlp.address, arguments->disable_tls, &settings->otlp, diag) ?:
	       otlp_push_init(&settings->otlp_push, settings->otlp.is_grpc, arguments->otlp_compression, arguments->otlp_version, diag);
}

static int parse_pyroscope(const struct agent_arguments *arguments, struct agent_settings *settings, struct diag *diag)
{
	const char *address = arguments->pyroscope.address;

	/* --otlp may have the same address, and has a position of its own */
	snprintf(settings->pyroscope_name, sizeof(settings->pyroscope_name), "pyroscope:%s", address);
	return pyroscope_endpoint_parse(address, settings->pyroscope_url, diag) ?:
	       pyroscope_labels_init(&settings->pyroscope_labels, arguments->pyroscope_labels.texts, arguments->pyroscope_labels.nr, diag);
}

static int parse_parca(const struct agent_arguments *arguments, struct agent_settings *settings, struct diag *diag)
{
	const char *address = arguments->parca.address;

	snprintf(settings->parca_name, sizeof(settings->parca_name), "parca:%s", address);
	return parca_endpoint_parse(address, arguments->disable_tls, &settings->parca, diag) ?:
	       parca_labels_init(&settings->parca_labels, arguments->parca_labels.texts, arguments->parca_labels.nr, diag);
}

static int parse_clickhouse(const struct agent_arguments *arguments, struct agent_settings *settings, struct diag *diag)
{
	const char *address = arguments->clickhouse.address;

	snprintf(settings->clickhouse_name, sizeof(settings->clickhouse_name), "clickhouse:%s", address);
	return clickhouse_endpoint_parse(address, &settings->clickhouse, diag);
}

enum { SYMBOLS_NAMES, SYMBOLS_ADDRESS, SYMBOLS_COUNT };
static const char *const symbols[SYMBOLS_COUNT] = { [SYMBOLS_NAMES] = "names", [SYMBOLS_ADDRESS] = "address" };

const char *agent_symbols_at(uint32_t i)
{
	return i < SYMBOLS_COUNT ? symbols[i] : NULL;
}

static int parse_symbols(const char *word, struct agent_settings *settings, struct diag *diag)
{
	settings->addresses = !strcmp(word, symbols[SYMBOLS_ADDRESS]);
	if (settings->addresses || !strcmp(word, symbols[SYMBOLS_NAMES]))
		return 0;
	return diag_errno(diag, EINVAL, "symbols is names or address, not '%.40s'", word);
}

static int check_store(const struct agent_arguments *arguments, struct diag *diag)
{
	const char *const destinations[] = {
		arguments->otlp.address, arguments->pyroscope.address, arguments->parca.address, arguments->clickhouse.address
	};

	if (!store_is_in_memory(arguments->store))
		return 0;
	if (arguments->status)
		return diag_errno(diag, EINVAL,
				  "an agent with --store none has no socket for --status: with --listen it answers at /status");
	if (arguments->store_max_bytes > STORE_MAX_MEMORY)
		return diag_errno(diag, EINVAL, "with --store none store-max-bytes is memory: %" PRIu64 "M at most",
				  STORE_MAX_MEMORY >> 20);
	for (size_t i = 0; i < ARRAY_SIZE(destinations); i++) {
		if (destinations[i])
			return 0;
	}
	return diag_errno(diag, EINVAL, "with --store none profiles need a destination: --otlp, --pyroscope, --parca or --clickhouse");
}

static int parse_recorder(const struct agent_arguments *arguments, struct agent_settings *settings, struct diag *diag)
{
	const struct option_texts *texts = &arguments->triggers;
	int err = 0;

	if (!arguments->recorder_s)
		return texts->nr ? diag_errno(diag, EINVAL, "a trigger freezes what the recorder has: --recorder 5m") : 0;
	if (store_is_in_memory(arguments->store))
		return diag_errno(diag, EINVAL, "with --store none there is no place for what --recorder freezes");
	if (settings->measures.main != MEASURE_CPU)
		return diag_errno(diag, EINVAL, "--recorder keeps cpu profiles, which --measure does not have");
	for (uint32_t i = 0; !err && i < texts->nr; i++)
		err = triggers_add(&settings->triggers, texts->texts[i], diag);
	return err || texts->nr ? err : triggers_add(&settings->triggers, "signal", diag);
}

void agent_settings_done(struct agent_settings *settings)
{
	triggers_done(&settings->triggers);
}

int agent_settings_parse(const struct agent_arguments *arguments, struct agent_settings *ret_settings, struct diag *diag)
{
	int err = check_store(arguments, diag) ?: runtimes_option_check(arguments->runtimes, diag) ?:
		  parse_symbols(arguments->symbols, ret_settings, diag) ?:
		  agent_measures_parse(arguments->measure, &ret_settings->measures, diag);

	if (err)
		return err;
	if (store_duration_parse(arguments->store_max_age, &ret_settings->max_age_ns) || !ret_settings->max_age_ns)
		return diag_errno(diag, EINVAL, "store-max-age is a duration such as 12h or 7d, not '%.40s'", arguments->store_max_age);
	if (arguments->listen)
		err = listener_check(arguments->listen, diag);
	if (!err && arguments->otlp.address)
		err = parse_otlp(arguments, ret_settings, diag);
	if (!err && arguments->pyroscope.address)
		err = parse_pyroscope(arguments, ret_settings, diag);
	if (!err && arguments->parca.address)
		err = parse_parca(arguments, ret_settings, diag);
	if (!err && arguments->clickhouse.address)
		err = parse_clickhouse(arguments, ret_settings, diag);
	if (!err && arguments->skywalking.address)
		err = skywalking_endpoint_parse(arguments->skywalking.address, arguments->disable_tls, &ret_settings->skywalking, diag);
	if (!err)
		err = parse_recorder(arguments, ret_settings, diag);
	if (!err)
		err = parse_env(&arguments->env, &ret_settings->env, diag);
	return err ? err : parse_sky_names(arguments, ret_settings, diag);
}
