// SPDX-License-Identifier: Apache-2.0
/* sonde agent: profiles the whole machine all the time, into a local store. docs/internals/agent.md */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <sonde/sonde.h>

#include "agent/agent_server.h"
#include "agent/agent_status.h"
#include "agent/config.h"
#include "agent/delivery.h"
#include "base/clock.h"
#include "base/hash.h"
#include "cli/output.h"
#include "cli/plain_format.h"
#include "cli/session_end.h"
#include "cli/signals.h"
#include "cli/verbs.h"
#include "send/endpoint.h"
#include "send/otlp_push.h"
#include "send/pyroscope_push.h"
#include "serve/listener.h"
#include "store/store_path.h"

#define MAX_FREQ_HZ	 10000
#define MAX_WARNINGS	 100
#define REQUEST_S	 30
#define MAX_WINDOW_S	 3600
#define MAX_CONFIG_BYTES 65536
#define MIN_STORE_BYTES ((uint64_t)1 << 20)

/* Of --otlp, --otlp-header, ...; with the same fields for each kind of destination. */
struct destination_arguments {
	const char *address, *ca, *cert, *key;
	struct option_texts headers;
};

struct agent_arguments {
	uint64_t freq_hz, window_s, duration_s, store_max_bytes;
	const char *store, *store_max_age, *config;
	struct destination_arguments otlp, pyroscope;
	struct option_texts pyroscope_labels;
	const char *listen, *format;
	bool disable_tls;
	bool print_config, status;
};

#define FIELD(field) .offset = offsetof(struct agent_arguments, field)

/* How requests to a destination are made. */
#define DESTINATION_ROWS(field, option) \
	{ .name = option "-header", \
	  .metavar = "HEADER", \
	  .kind = OPTION_TEXTS, \
	  FIELD(field.headers), \
	  .help = "a header of each request, as 'authorization: Bearer ...'; may be repeated. In the environment other users do " \
		  "not see it" }, \
	{ .name = option "-ca", \
	  .metavar = "FILE", \
	  .kind = OPTION_TEXT, \
	  FIELD(field.ca), \
	  .values = OPTION_VALUES_FILE, \
	  .help = "trust these authorities (PEM) instead of the system's" }, \
	{ .name = option "-cert", \
	  .metavar = "FILE", \
	  .kind = OPTION_TEXT, \
	  FIELD(field.cert), \
	  .values = OPTION_VALUES_FILE, \
	  .help = "our certificate (PEM), for a server that asks for one" }, \
	{ \
		.name = option "-key", .metavar = "FILE", .kind = OPTION_TEXT, FIELD(field.key), .values = OPTION_VALUES_FILE, \
		.help = "its key (PEM)" \
	}

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
	  FIELD(otlp.address),
	  .help = "send the profiles to an OpenTelemetry collector: http://HOST:PORT, https://, grpc://, grpcs://, or HOST:PORT, which is "
		  "gRPC with TLS, on loopback without. The store keeps what cannot be sent yet" },
	DESTINATION_ROWS(otlp, "otlp"),
	{ .name = "disable-tls", .kind = OPTION_FLAG, FIELD(disable_tls), .help = "HOST:PORT without a scheme is gRPC without TLS" },
	{ .name = "pyroscope",
	  .metavar = "URL",
	  .kind = OPTION_TEXT,
	  FIELD(pyroscope.address),
	  .help = "send them to Grafana Pyroscope: http://HOST:PORT, https://HOST; also beside --otlp" },
	{ .name = "pyroscope-label",
	  .metavar = "LABEL",
	  .kind = OPTION_TEXTS,
	  FIELD(pyroscope_labels),
	  .help = "a label of the profiles there, NAME=VALUE; may be repeated. Without it service_name=sonde, hostname=..., "
		  "__name__=process_cpu" },
	DESTINATION_ROWS(pyroscope, "pyroscope"),
	{ .group = "What it says of itself",
	  .name = "status",
	  .kind = OPTION_FLAG,
	  FIELD(status),
	  .help = "ask the agent that has the store: since when it runs, what it recorded, lost and delivered, what it costs; and "
		  "end" },
	{ .name = "format",
	  .metavar = "FORMAT",
	  .kind = OPTION_TEXT,
	  FIELD(format),
	  .value_name = plain_format_at,
	  .help = "with --status: text or json; text" },
	{ .name = "listen",
	  .metavar = "ADDRESS",
	  .kind = OPTION_TEXT,
	  FIELD(listen),
	  .help = "serve /metrics for Prometheus and /healthz over HTTP: :PORT is 127.0.0.1 alone; [::1]:PORT, unix:PATH; an address "
		  "that others can reach only if it is given in full, as 0.0.0.0:PORT" },
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
	{ "sonde agent --pyroscope http://pyroscope:4040 --pyroscope-label service_name=web", "and to Pyroscope" },
	{ "sonde agent --listen :9464", "and what it does, for Prometheus, at http://127.0.0.1:9464/metrics" },
	{ "sonde agent --status", "what the running one does" },
	{ "sonde show /var/lib/sonde@-1h", "the last hour of it" },
	{ "sonde diff /var/lib/sonde@-2h..-1h /var/lib/sonde@-1h", "that hour and the one before" },
	{ "sonde convert /var/lib/sonde@2026-11-26T03:00..2026-11-26T03:10 night.html", "ten minutes of a night as a page" },
	{ NULL, NULL },
};

struct agent {
	struct sonde_session *session;
	uint64_t warnings[MAX_WARNINGS]; /* hashes of those that were said: most come again with each window */
	uint32_t nr_warnings, nr_unsaid;
	struct agent_windows windows;
	struct delivery *deliveries[AGENT_MAX_DESTINATIONS];
	uint32_t nr_deliveries;
	struct agent_server *server;
};

static int take_window(void *arg, const struct sonde_window *window, const void *bytes, size_t size)
{
	struct agent *agent = arg;
	int err = agent_windows_take(&agent->windows, window, bytes, size);

	for (uint32_t i = 0; !err && i < agent->nr_deliveries; i++)
		delivery_wake(agent->deliveries[i]);
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

static void end_window(void *arg, const struct sonde_window *window)
{
	struct agent *agent = arg;
	const char *warning;

	agent_windows_end(&agent->windows, window);
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

static int run(const struct agent_arguments *arguments, const char *command_line, struct agent *agent)
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
		.window = end_window,
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
	output_say("stored: %" PRIu64 " windows in %s; lost: %" PRIu64, agent->windows.numbers.nr_stored, arguments->store,
		   agent->windows.numbers.nr_lost);
	if (agent->nr_unsaid)
		output_say("%" PRIu32 " warnings were not said", agent->nr_unsaid);
	return err ? session_failed(&agent_verb, agent->session, err) : SONDE_EXIT_REPORT;
}

/* What of the settings needs more than to be stored. */
struct agent_settings {
	uint64_t max_age_ns;
	struct otlp_endpoint otlp; /* with --otlp */
	/* with --pyroscope */
	char pyroscope_url[ENDPOINT_URL_BYTES], pyroscope_name[ENDPOINT_URL_BYTES];
	struct pyroscope_labels labels;
};

static int parse_pyroscope(const struct agent_arguments *arguments, struct agent_settings *settings, struct diag *diag)
{
	const char *address = arguments->pyroscope.address;

	/* --otlp may have the same address, and has a position of its own */
	snprintf(settings->pyroscope_name, sizeof(settings->pyroscope_name), "pyroscope:%s", address);
	return pyroscope_endpoint_parse(address, settings->pyroscope_url, diag) ?:
	       pyroscope_labels_init(&settings->labels, arguments->pyroscope_labels.texts, arguments->pyroscope_labels.nr, diag);
}

static int parse_settings(const struct agent_arguments *arguments, struct agent_settings *ret_settings, struct diag *diag)
{
	int err = 0;

	if (store_duration_parse(arguments->store_max_age, &ret_settings->max_age_ns) || !ret_settings->max_age_ns)
		return diag_errno(diag, EINVAL, "store-max-age is a duration such as 12h or 7d, not '%.40s'", arguments->store_max_age);
	if (arguments->listen)
		err = listener_check(arguments->listen, diag);
	if (!err && arguments->otlp.address)
		err = otlp_endpoint_parse(arguments->otlp.address, arguments->disable_tls, &ret_settings->otlp, diag);
	return !err && arguments->pyroscope.address ? parse_pyroscope(arguments, ret_settings, diag) : err;
}

/* Completes the options, and begins. */
static int start_delivery(const struct destination_arguments *to, struct delivery_options *options, struct agent *agent)
{
	const struct post_options files = {
		.authorities = to->ca, .certificate = to->cert, .key = to->key, .timeout_s = REQUEST_S
	};
	struct diag diag = { 0 };
	int err;

	options->headers = to->headers.texts;
	options->nr_headers = to->headers.nr;
	options->post = &files;
	err = delivery_start(options, &diag, &agent->deliveries[agent->nr_deliveries]);
	if (err)
		output_say("%s", failure_text(&diag, err));
	else
		agent->nr_deliveries++;
	return err;
}

static int start_deliveries(const struct agent_arguments *arguments, const struct agent_settings *settings, struct agent *agent)
{
	struct delivery_options otlp = { .store = arguments->store,
					 .name = arguments->otlp.address,
					 .type = settings->otlp.is_grpc ? &otlp_grpc : &otlp_http,
					 .url = settings->otlp.url };
	struct delivery_options pyroscope = { .store = arguments->store,
					      .name = settings->pyroscope_name,
					      .type = &pyroscope_push,
					      .settings = &settings->labels,
					      .url = settings->pyroscope_url };
	int err = arguments->otlp.address ? start_delivery(&arguments->otlp, &otlp, agent) : 0;

	return !err && arguments->pyroscope.address ? start_delivery(&arguments->pyroscope, &pyroscope, agent) : err;
}

static int start_server(const struct agent_arguments *arguments, struct agent *agent)
{
	struct agent_sources sources = { .windows = &agent->windows,
					 .nr_deliveries = agent->nr_deliveries,
					 .store = arguments->store,
					 .freq_hz = arguments->freq_hz,
					 .window_ns = arguments->window_s * NS_PER_S,
					 .start_unix_ns = clock_of_ns(CLOCK_REALTIME) };
	struct diag diag = { 0 };
	int err;

	memcpy(sources.deliveries, agent->deliveries, sizeof(sources.deliveries));
	err = agent_server_start(&sources, arguments->listen, &diag, &agent->server);

	if (err)
		output_say("%s", failure_text(&diag, err));
	return err;
}

static int start(const struct agent_arguments *arguments, const struct agent_settings *settings, const char *command_line)
{
	struct agent agent = { .windows = { .type = "cpu", .max_age_ns = settings->max_age_ns, .max_bytes = arguments->store_max_bytes } };
	int code;

	if (open_store(arguments, &agent.windows))
		return SONDE_EXIT_FAILED;
	agent_windows_init(&agent.windows);
	code = start_deliveries(arguments, settings, &agent) || start_server(arguments, &agent) ?
		       SONDE_EXIT_FAILED :
		       run(arguments, command_line, &agent);
	agent_server_end(agent.server);
	for (uint32_t i = 0; i < agent.nr_deliveries; i++)
		delivery_finish(agent.deliveries[i]);
	for (uint32_t i = 0; i < agent.nr_deliveries; i++)
		delivery_end(agent.deliveries[i]);
	signals_done();
	sonde_session_free(agent.session);
	agent_windows_done(&agent.windows);
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
};

static int agent_run(void *all, const char *command_line)
{
	struct agent_arguments *arguments = all;
	CLEANUP(config_freep) struct config *config = NULL;
	struct diag diag = { 0 };
	struct agent_settings settings;
	bool json = false;
	int err = config_fill(&agent_verb, arguments, &defaults, arguments->config, &diag, &config);

	if (!err)
		err = parse_settings(arguments, &settings, &diag) ?: plain_format_choose(arguments->format, NULL, &diag, &json);
	if (err)
		return output_usage(&agent_verb, failure_text(&diag, err));
	if (arguments->status)
		return agent_status(arguments->store, json);
	return arguments->print_config ? print_config(arguments) : start(arguments, &settings, command_line);
}

const struct verb agent_verb = {
	.name = "agent",
	.summary = "profiles all the time, into a local store and to servers",
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
