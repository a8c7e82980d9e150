// SPDX-License-Identifier: Apache-2.0
/* sonde agent: profiles the whole machine all the time, into a local store. docs/internals/agent.md */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sonde/sonde.h>

#include "agent/agent_windows.h"
#include "agent/config.h"
#include "agent/delivery.h"
#include "base/clock.h"
#include "base/hash.h"
#include "cli/output.h"
#include "cli/session_end.h"
#include "cli/signals.h"
#include "cli/verbs.h"
#include "skywalking/sky_client.h"
#include "store/store_path.h"

#define MAX_FREQ_HZ	 10000
#define MAX_WARNINGS	 100
#define REQUEST_S	 30
#define MAX_WINDOW_S	 3600
#define MAX_SKYWALKING_S 240 /* the server forgets processes after five minutes */
#define MAX_CONFIG_BYTES 65536
#define MIN_STORE_BYTES ((uint64_t)1 << 20)

struct agent_arguments {
	uint64_t freq_hz, window_s, duration_s, store_max_bytes;
	const char *store, *store_max_age, *config;
	const char *otlp, *otlp_ca, *otlp_cert, *otlp_key;
	struct option_texts otlp_headers, env;
	const char *skywalking, *skywalking_authentication, *skywalking_ca, *skywalking_cert, *skywalking_key, *skywalking_period;
	const char *skywalking_layer, *skywalking_service, *skywalking_instance, *skywalking_process;
	uint64_t skywalking_heartbeat_s, skywalking_check_s, skywalking_flush_s;
	bool disable_tls;
	bool print_config;
};

#define FIELD(field) .offset = offsetof(struct agent_arguments, field)

static const struct option_spec options[] = {
	{ .group = "What is sampled",
	  .metavar = "DURATION",
	  .kind = OPTION_NUMBER,
	  FIELD(duration_s),
	  .min = 1,
	  .max = UINT32_MAX,
	  .help = "seconds; without it until SIGTERM or Ctrl-C" },
	{ .letter = 'F',
	  .name = "frequency",
	  .metavar = "HZ",
	  .kind = OPTION_NUMBER,
	  FIELD(freq_hz),
	  .min = 1,
	  .max = MAX_FREQ_HZ,
	  .help = "samples per second and CPU; 19" },
	{ .name = "window",
	  .metavar = "SECONDS",
	  .kind = OPTION_NUMBER,
	  FIELD(window_s),
	  .min = 1,
	  .max = MAX_WINDOW_S,
	  .help = "a profile for so many seconds each; 10" },
	{ .name = "env",
	  .metavar = "NAME",
	  .kind = OPTION_TEXTS,
	  FIELD(env),
	  .help = "keep this variable of each process's environment, as the label process.environment_variable.NAME, 255 bytes of it at "
		  "most; a comma list, may be repeated, 16 names in all. No other variable is kept, except the service's name, of "
		  "OTEL_SERVICE_NAME or OTEL_RESOURCE_ATTRIBUTES" },
	{ .group = "Where it is kept",
	  .name = "store",
	  .metavar = "DIRECTORY",
	  .kind = OPTION_TEXT,
	  FIELD(store),
	  .values = OPTION_VALUES_FILE,
	  .help = "keep the profiles here; /var/lib/sonde. show, diff and convert read it: sonde show DIRECTORY@-1h" },
	{ .name = "store-max-age",
	  .metavar = "AGE",
	  .kind = OPTION_TEXT,
	  FIELD(store_max_age),
	  .help = "remove what is older: 90s, 15m, 12h, 7d; 7d" },
	{ .name = "store-max-bytes",
	  .metavar = "BYTES",
	  .kind = OPTION_BYTES,
	  FIELD(store_max_bytes),
	  .min = MIN_STORE_BYTES,
	  .max = INT64_MAX,
	  .help = "remove the oldest when the profiles are larger than this together: 500M, 1G; 1G" },
	{ .group = "Where it is delivered",
	  .name = "otlp",
	  .metavar = "ADDRESS",
	  .kind = OPTION_TEXT,
	  FIELD(otlp),
	  .help = "send the profiles to an OpenTelemetry collector: http://HOST:PORT, https://, grpc://, grpcs://, or HOST:PORT, which is "
		  "gRPC with TLS, on loopback without. The store keeps what cannot be sent yet" },
	{ .name = "otlp-header",
	  .metavar = "HEADER",
	  .kind = OPTION_TEXTS,
	  FIELD(otlp_headers),
	  .help = "a header of each request, as 'authorization: Bearer ...'; may be repeated. In the environment "
		  "other users do not see it" },
	{ .name = "otlp-ca",
	  .metavar = "FILE",
	  .kind = OPTION_TEXT,
	  FIELD(otlp_ca),
	  .values = OPTION_VALUES_FILE,
	  .help = "trust these authorities (PEM) instead of the system's" },
	{ .name = "otlp-cert",
	  .metavar = "FILE",
	  .kind = OPTION_TEXT,
	  FIELD(otlp_cert),
	  .values = OPTION_VALUES_FILE,
	  .help = "our certificate (PEM), for a collector that asks for one" },
	{ .name = "otlp-key",
	  .metavar = "FILE",
	  .kind = OPTION_TEXT,
	  FIELD(otlp_key),
	  .values = OPTION_VALUES_FILE,
	  .help = "its key (PEM)" },
	{ .name = "disable-tls", .kind = OPTION_FLAG, FIELD(disable_tls), .help = "HOST:PORT without a scheme is gRPC without TLS" },
	{ .group = "SkyWalking",
	  .name = "skywalking",
	  .metavar = "ADDRESS",
	  .kind = OPTION_TEXT,
	  FIELD(skywalking),
	  .help = "report this machine's processes to an OAP server of Apache SkyWalking, and profile what its tasks ask for: "
		  "grpc://HOST:PORT, grpcs://, or HOST:PORT as above; port 11800" },
	{ .name = "skywalking-period",
	  .metavar = "TIME",
	  .kind = OPTION_TEXT,
	  FIELD(skywalking_period),
	  .help = "ON_CPU tasks: a sample for so much time of a CPU, a millisecond or more: 9ms, 1500us, 2s; 9ms" },
	{ .name = "skywalking-authentication",
	  .metavar = "TOKEN",
	  .kind = OPTION_TEXT,
	  FIELD(skywalking_authentication),
	  .help = "the server's token. In the environment other users do not see it" },
	{ .name = "skywalking-ca",
	  .metavar = "FILE",
	  .kind = OPTION_TEXT,
	  FIELD(skywalking_ca),
	  .values = OPTION_VALUES_FILE,
	  .help = "trust these authorities (PEM) instead of the system's" },
	{ .name = "skywalking-cert",
	  .metavar = "FILE",
	  .kind = OPTION_TEXT,
	  FIELD(skywalking_cert),
	  .values = OPTION_VALUES_FILE,
	  .help = "our certificate (PEM), for a server that asks for one" },
	{ .name = "skywalking-key",
	  .metavar = "FILE",
	  .kind = OPTION_TEXT,
	  FIELD(skywalking_key),
	  .values = OPTION_VALUES_FILE,
	  .help = "its key (PEM)" },
	{ .name = "skywalking-layer",
	  .metavar = "LAYER",
	  .kind = OPTION_TEXT,
	  FIELD(skywalking_layer),
	  .help = "the layer of the services, one that the server knows: OS_LINUX, K8S_SERVICE, GENERAL, MESH; OS_LINUX" },
	{ .name = "skywalking-service",
	  .metavar = "NAME",
	  .kind = OPTION_TEXT,
	  FIELD(skywalking_service),
	  .help = "a process's service, of {service}, {executable}, {container}, {pod}, {unit}, {host}, {pid}; {service}, which is "
		  "OTEL_SERVICE_NAME, unit, container or executable" },
	{ .name = "skywalking-instance",
	  .metavar = "NAME",
	  .kind = OPTION_TEXT,
	  FIELD(skywalking_instance),
	  .help = "its instance, likewise; {host}" },
	{ .name = "skywalking-process",
	  .metavar = "NAME",
	  .kind = OPTION_TEXT,
	  FIELD(skywalking_process),
	  .help = "its name, likewise: unique in its instance; {executable}-{pid}" },
	{ .name = "skywalking-heartbeat",
	  .metavar = "SECONDS",
	  .kind = OPTION_NUMBER,
	  FIELD(skywalking_heartbeat_s),
	  .min = 1,
	  .max = MAX_SKYWALKING_S,
	  .help = "report processes, those that are as old, so often; 20" },
	{ .name = "skywalking-check",
	  .metavar = "SECONDS",
	  .kind = OPTION_NUMBER,
	  FIELD(skywalking_check_s),
	  .min = 1,
	  .max = MAX_SKYWALKING_S,
	  .help = "ask for tasks so often; 10" },
	{ .name = "skywalking-flush",
	  .metavar = "SECONDS",
	  .kind = OPTION_NUMBER,
	  FIELD(skywalking_flush_s),
	  .min = 1,
	  .max = MAX_SKYWALKING_S,
	  .help = "send what a task sampled so often; 5" },
	{ .group = "Settings",
	  .name = "config",
	  .metavar = "FILE",
	  .kind = OPTION_TEXT,
	  FIELD(config),
	  .values = OPTION_VALUES_FILE,
	  .help = "settings from this YAML file, a line each as the long options above: store-max-age: 7d. SONDE_STORE_MAX_AGE in the "
		  "environment goes before it, the command line before both" },
	{ .name = "print-config", .kind = OPTION_FLAG, FIELD(print_config), .help = "print the settings as such a file, and end" },
};

static const struct verb_example examples[] = {
	{ "sonde agent", "at 19 Hertz, a profile each 10 seconds, into /var/lib/sonde" },
	{ "sonde agent --otlp http://collector:4318", "and to a collector" },
	{ "sonde agent --skywalking oap:11800 --disable-tls", "and tasks of SkyWalking" },
	{ "sonde show /var/lib/sonde@-1h", "the last hour of it" },
	{ "sonde diff /var/lib/sonde@-2h..-1h /var/lib/sonde@-1h", "that hour and the one before" },
	{ "sonde convert /var/lib/sonde@2026-11-26T03:00..2026-11-26T03:10 night.html", "ten minutes of a night as a page" },
	{ NULL, NULL },
};

#define MAX_NAMES      64 /* the library takes less, and says so */
#define MAX_NAME_BYTES 8192

/* Names of variables, as the library takes them. */
struct env_names {
	const char *list[MAX_NAMES + 1];
	char texts[MAX_NAME_BYTES];
};

struct agent {
	struct sonde_session *session;
	uint64_t warnings[MAX_WARNINGS]; /* hashes of those that were said: most come again with each window */
	uint32_t nr_warnings, nr_unsaid;
	struct agent_windows windows;
	struct delivery *delivery; /* NULL: none */
};

static int take_window(void *arg, const struct sonde_window *window, const void *bytes, size_t size)
{
	struct agent *agent = arg;
	int err = agent_windows_take(&agent->windows, window, bytes, size);

	if (!err && agent->delivery)
		delivery_wake(agent->delivery);
	return err;
}

static bool is_new(const struct agent *agent, uint64_t hash)
{
	for (uint32_t i = 0; i < agent->nr_warnings; i++) {
		if (agent->warnings[i] == hash)
			return false;
	}
	return true;
}

static void print_warning(struct agent *agent, const char *warning)
{
	uint64_t hash = hash_bytes(warning, strlen(warning), 0);

	if (!is_new(agent, hash))
		return;
	if (agent->nr_warnings == MAX_WARNINGS) {
		agent->nr_unsaid++;
		return;
	}
	agent->warnings[agent->nr_warnings++] = hash;
	output_say("%s", warning);
	if (agent->nr_warnings == MAX_WARNINGS)
		output_say("that was the %dth warning: more are in the profiles alone", MAX_WARNINGS);
}

static void print_warnings(void *arg, const struct sonde_window *window)
{
	struct agent *agent = arg;
	const char *warning;

	while ((warning = sonde_session_warning(agent->session)))
		print_warning(agent, warning);
}

static int open_store(const struct agent_arguments *arguments, struct agent_windows *windows)
{
	CLEANUP(freep) char *aside = NULL;
	struct diag diag = { 0 };
	int err = store_open(arguments->store, STORE_OWN, &diag, &aside, &windows->store);

	if (err)
		output_say("%s", failure_text(&diag, err));
	if (aside)
		output_say("warning: the store was corrupt: it is now %s, and a new one was begun", aside);
	return err;
}

static int run(const struct agent_arguments *arguments, const struct env_names *names, const char *command_line, struct agent *agent)
{
	const struct sonde_sampling_options sampling = { .size = sizeof(sampling), .freq_hz = arguments->freq_hz };
	const struct sonde_session_options of_library = {
		.size = sizeof(of_library),
		.command_line = command_line,
		.mode = SONDE_ON_CPU,
		.sampling = &sampling,
		.duration_ns = arguments->duration_s * NS_PER_S,
		.every_ns = arguments->window_s * NS_PER_S,
		.profile_format = "json",
		.profile = take_window,
		.process_labels = true,
		.environment = names->list,
		.window = print_warnings,
		.arg = agent,
	};
	int err = sonde_session_new(&of_library, &agent->session);

	if (err)
		return session_failed(&agent_verb, agent->session, err);
	signals_stop(session_stop, agent->session);
	output_say("Sampling at %" PRIu64 " Hertz into %s, a profile each %" PRIu64 " s", arguments->freq_hz, arguments->store,
		   arguments->window_s);
	err = sonde_session_run(agent->session);
	signals_report();
	output_talk(sonde_session_total(agent->session));
	output_say("stored: %" PRIu64 " windows in %s; lost: %" PRIu64, agent->windows.nr_stored, arguments->store, agent->windows.nr_lost);
	if (agent->nr_unsaid)
		output_say("%" PRIu32 " warnings were not said", agent->nr_unsaid);
	return err ? session_failed(&agent_verb, agent->session, err) : SONDE_EXIT_REPORT;
}

/* What of the settings needs more than to be stored. */
struct agent_settings {
	uint64_t max_age_ns;
	struct endpoint otlp, skywalking; /* where they are given */
	char host[HOST_NAME_MAX + 1];
	struct sky_names sky_names;
	struct env_names env;
};

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

static int parse_settings(const struct agent_arguments *arguments, struct agent_settings *ret_settings, struct diag *diag)
{
	int err = 0;

	if (store_duration_parse(arguments->store_max_age, &ret_settings->max_age_ns) || !ret_settings->max_age_ns)
		return diag_errno(diag, EINVAL, "store-max-age is a duration such as 12h or 7d, not '%.40s'", arguments->store_max_age);
	if (arguments->otlp)
		err = endpoint_parse(arguments->otlp, arguments->disable_tls, &endpoint_otlp, &ret_settings->otlp, diag);
	if (!err && arguments->skywalking)
		err = endpoint_parse(arguments->skywalking, arguments->disable_tls, &endpoint_skywalking, &ret_settings->skywalking, diag);
	if (!err)
		err = parse_env(&arguments->env, &ret_settings->env, diag);
	return err ? err : parse_sky_names(arguments, ret_settings, diag);
}

static int start_delivery(const struct agent_arguments *arguments, const struct agent_settings *settings, struct delivery **ret_delivery)
{
	const struct post_options files = { .authorities = arguments->otlp_ca,
					    .certificate = arguments->otlp_cert,
					    .key = arguments->otlp_key,
					    .timeout_s = REQUEST_S };
	const struct delivery_options of_delivery = { .store = arguments->store,
						      .address = arguments->otlp,
						      .endpoint = &settings->otlp,
						      .headers = arguments->otlp_headers.texts,
						      .nr_headers = arguments->otlp_headers.nr,
						      .post = &files };
	struct diag diag = { 0 };
	int err = arguments->otlp ? delivery_start(&of_delivery, &diag, ret_delivery) : 0;

	if (err)
		output_say("%s", failure_text(&diag, err));
	return err;
}

static int start_skywalking(const struct agent_arguments *arguments, const struct agent_settings *settings, struct sky_client **ret_client)
{
	const struct post_options files = { .authorities = arguments->skywalking_ca,
					    .certificate = arguments->skywalking_cert,
					    .key = arguments->skywalking_key,
					    .timeout_s = REQUEST_S };
	const struct sky_options options = { .address = arguments->skywalking,
					     .endpoint = &settings->skywalking,
					     .post = &files,
					     .authentication = arguments->skywalking_authentication,
					     .period = arguments->skywalking_period,
					     .names = settings->sky_names,
					     .heartbeat_ns = arguments->skywalking_heartbeat_s * NS_PER_S,
					     .check_ns = arguments->skywalking_check_s * NS_PER_S,
					     .flush_ns = arguments->skywalking_flush_s * NS_PER_S };
	struct diag diag = { 0 };
	int err = arguments->skywalking ? sky_client_start(&options, &diag, ret_client) : 0;

	if (err)
		output_say("%s", failure_text(&diag, err));
	return err;
}

static int start(const struct agent_arguments *arguments, const struct agent_settings *settings, const char *command_line)
{
	struct sky_client *skywalking = NULL;
	struct agent agent = { .windows = { .type = "cpu", .max_age_ns = settings->max_age_ns, .max_bytes = arguments->store_max_bytes } };
	int code;

	if (open_store(arguments, &agent.windows))
		return SONDE_EXIT_FAILED;
	code = start_delivery(arguments, settings, &agent.delivery) || start_skywalking(arguments, settings, &skywalking) ?
		       SONDE_EXIT_FAILED :
		       run(arguments, &settings->env, command_line, &agent);
	sky_client_end(skywalking);
	delivery_end(agent.delivery);
	signals_done();
	sonde_session_free(agent.session);
	store_close(agent.windows.store);
	return code;
}

static int print_config(const struct agent_arguments *arguments)
{
	CLEANUP(buffer_done) struct buffer buffer = BUFFER_INIT(MAX_CONFIG_BYTES);

	config_print(&agent_verb, arguments, &buffer);
	return output_result(&buffer);
}

/* What is given on the command line is in the arguments; zeros are not given. */
static const struct agent_arguments defaults = {
	.freq_hz = 19,
	.window_s = 10,
	.store = "/var/lib/sonde",
	.store_max_age = "7d",
	.store_max_bytes = UINT64_C(1) << 30,
	.skywalking_period = "9ms",
	.skywalking_layer = "OS_LINUX",
	.skywalking_service = "{service}",
	.skywalking_instance = "{host}",
	.skywalking_process = "{executable}-{pid}",
	.skywalking_heartbeat_s = 20,
	.skywalking_check_s = 10,
	.skywalking_flush_s = 5,
};

static int agent_run(void *all, const char *command_line)
{
	struct agent_arguments *arguments = all;
	CLEANUP(config_freep) struct config *config = NULL;
	struct diag diag = { 0 };
	struct agent_settings settings;
	int err = config_fill(&agent_verb, arguments, &defaults, arguments->config, &diag, &config);

	if (!err)
		err = parse_settings(arguments, &settings, &diag);
	if (err)
		return output_usage(&agent_verb, failure_text(&diag, err));
	return arguments->print_config ? print_config(arguments) : start(arguments, &settings, command_line);
}

const struct verb agent_verb = {
	.name = "agent",
	.summary = "profiles all the time, into a local store and to a collector",
	.description = "Samples the whole machine all the time, and keeps a profile of each window in a store on disk, bounded by age and "
		       "size. show, diff and convert read any time of it, also while the agent runs: DIRECTORY@FROM..TO, where a time is a "
		       "duration before now (-90s, -15m, -1h, -2d) or a date (2026-11-26T20:00, with Z in UTC).\n\n"
		       "A disk that is full costs the windows of that time, which is said; a store that is corrupt is moved aside; one "
		       "that another agent has is refused. kill -9 costs the window that was being recorded.",
	.options = options,
	.nr_options = ARRAY_SIZE(options),
	.examples = examples,
	.arguments_bytes = sizeof(struct agent_arguments),
	.run = agent_run,
};
