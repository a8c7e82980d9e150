// SPDX-License-Identifier: Apache-2.0
/* sonde agent: profiles the whole machine all the time, into a local store. docs/internals/agent.md */
#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <malloc.h>
#include <pthread.h>
#include <string.h>

#include <sonde/sonde.h>

#include "agent/agent_bound.h"
#include "agent/agent_cost.h"
#include "agent/agent_server.h"
#include "agent/agent_status.h"
#include "agent/agent_turns.h"
#include "agent/delivery.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/rights.h"
#include "cli/output.h"
#include "cli/plain_format.h"
#include "cli/session_end.h"
#include "cli/signals.h"
#include "cli/verbs.h"
#include "flight/flight.h"
#include "send/clickhouse_push.h"
#include "send/parca_push.h"
#include "settings/agent_setup.h"
#include "skywalking/sky_client.h"

#define LAST_S		 5 /* for what is not delivered at the end */
#define RELOAD_S	 1 /* and before the next session; the store keeps it */
#define MAX_WARNINGS	 100
#define MIB		 (1024.0 * 1024.0)
#define REQUEST_S	 30
#define MIN_WAIT_NS	 NS_PER_US /* as sonde offcpu does */
#define MAX_CONFIG_BYTES 65536
#define MIN_UNWIND_BYTES (1u << 20)

static const struct verb_example examples[] = {
	{ "sonde agent", "at 19 Hertz, a profile each 10 seconds, into /var/lib/sonde" },
	{ "sonde agent --otlp http://collector:4318", "and to a collector" },
	{ "sonde agent --pyroscope http://pyroscope:4040 --pyroscope-label service_name=web", "and to Pyroscope" },
	{ "sonde agent --parca parca:7070 --disable-tls --clickhouse http://clickhouse", "and to Parca and ClickHouse" },
	{ "sonde agent --listen :9464", "and what it does, for Prometheus, at http://127.0.0.1:9464/metrics" },
	{ "sonde agent --status", "what the running one does" },
	{ "sonde agent --skywalking oap:11800 --disable-tls", "and tasks of SkyWalking" },
	{ "sonde agent --measure cpu,cpu,cpu,cpu,cpu,offcpu", "and off-CPU time, ten seconds of each minute" },
	{ "sonde agent --recorder 5m --trigger 'cpu>80%/10s' --trigger crash", "and the minutes around trouble, with all times" },
	{ "sonde show /var/lib/sonde@-1h", "the last hour of it" },
	{ "sonde convert /var/lib/sonde@-1h,incident incident.html", "what was frozen in the last hour, as a page with a time line" },
	{ "sonde show /var/lib/sonde@-1h,offcpu", "the off-CPU time of it" },
	{ "sonde diff /var/lib/sonde@-2h..-1h /var/lib/sonde@-1h", "that hour and the one before" },
	{ "sonde convert /var/lib/sonde@2026-11-26T03:00..2026-11-26T03:10 night.html", "ten minutes of a night as a page" },
	{ NULL, NULL },
};

/* Of the sessions of one kind. */
struct recorder {
	struct agent *agent;
	struct agent_windows windows;
	bool has_window;                 /* the session has */
};

struct agent {
	const struct agent_arguments *typed;
	const char *command_line;
	struct agent_setup *setups;      /* all that were read, the newest first */
	struct agent_setup *setup;       /* in force */
	struct agent_setup *proved;      /* the last with which a session began; NULL: none yet */
	struct agent_setup *next;        /* read by SIGHUP: from the next session on; NULL: none */
	struct sonde_session *session;
	struct sonde_sampling_options sampling; /* of the sessions */
	struct sonde_wait_options waits, waits_of_wall;
	struct agent_cost_reader *costs;
	struct agent_cost cost;          /* at the end of the last window of the main session */
	uint64_t cost_ns;                /* when that was */
	struct agent_bound rate;         /* Hertz; by percent of the machine's time */
	struct agent_bound memory;       /* bytes of unwind tables; by those of the agent */
	bool has_begun;                  /* the session samples, or has sampled */
	uint64_t start_unix_ns, until_ns; /* until_ns: CLOCK_MONOTONIC; 0: until it is stopped */
	uint64_t gap_since_ns;           /* when the session before ended; 0: there was none */
	uint64_t warnings[MAX_WARNINGS]; /* hashes of those that were said: most come again with each window */
	uint32_t nr_warnings, nr_unsaid;
	pthread_mutex_t warnings_lock, store_lock;
	struct store *store;
	struct recorder recorders[MEASURE_COUNT];
	struct agent_turns *turns;       /* NULL: nothing has turns */
	struct delivery *deliveries[AGENT_MAX_DESTINATIONS];
	uint32_t nr_deliveries;
	struct agent_server *server;
	struct sky_client *skywalking; /* NULL: none */
	struct agent_counters *counters; /* likewise */
	struct flight *flight;
	int count_fd;                    /* the kernel counts the programs' time while it is open; -1: it does not */
};

static int take_window(void *arg, const struct sonde_window *window, const void *bytes, size_t size)
{
	struct recorder *recorder = arg;
	struct agent *agent = recorder->agent;
	int err = agent_windows_take(&recorder->windows, window, bytes, size);

	for (uint32_t i = 0; !err && i < agent->nr_deliveries; i++)
		delivery_wake(agent->deliveries[i]);
	return err;
}

static int take_timed_window(void *arg, const struct sonde_window *window, const void *bytes, size_t size)
{
	return flight_take(((struct recorder *)arg)->agent->flight, window, bytes, size);
}

static bool is_new(const struct agent *agent, uint64_t hash)
{
	for (uint32_t i = 0; i < agent->nr_warnings; i++) {
		if (agent->warnings[i] == hash)
			return false;
	}
	return true;
}

/* With the lock. */
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

static void print_warnings(void *arg, struct sonde_session *session)
{
	struct agent *agent = arg;
	const char *warning;

	pthread_mutex_lock(&agent->warnings_lock);
	while ((warning = sonde_session_warning(session)))
		print_warning(agent, warning);
	pthread_mutex_unlock(&agent->warnings_lock);
}

static void end_window(void *arg, const struct sonde_window *window)
{
	struct recorder *recorder = arg;

	recorder->has_window = true;
	agent_windows_end(&recorder->windows, window);
}

static struct recorder *main_recorder(struct agent *agent)
{
	return &agent->recorders[agent->setup->settings.measures.main];
}

/* Of the machine's time since the last call. */
static double look_at_cost(struct agent *agent)
{
	struct agent_cost before = agent->cost;
	uint64_t before_ns = agent->cost_ns;

	agent_cost_read(agent->costs, &agent->cost);
	agent->cost_ns = clock_ns();
	return 100.0 * (double)(agent->cost.cpu_ns + agent->cost.bpf_ns - before.cpu_ns - before.bpf_ns) /
	       ((double)(agent->cost_ns - before_ns) * (double)sysconf(_SC_NPROCESSORS_ONLN));
}

static void keep_memory(struct agent *agent)
{
	struct agent_bound *memory = &agent->memory;
	uint64_t used = agent->cost.memory_bytes;

	if (!agent_bound_look(memory, (double)used, (double)(used + memory->now)))
		return;
	if (memory->is_at_end)
		output_say("the agent takes %.1f MiB, more than --max-memory allows: unwind tables cannot take less than %.1f",
			   (double)used / MIB, (double)memory->now / MIB);
	else if (sonde_session_set_memory(agent->session, memory->now))
		output_say("the memory for unwind tables cannot be changed: %s", sonde_session_error(agent->session));
	else
		output_say("the agent takes %.1f MiB: from the next window on at most %.1f of unwind tables, and names in proportion",
			   (double)used / MIB, (double)memory->now / MIB);
}

static void keep_cpu(struct agent *agent, double percent)
{
	struct agent_bound *rate = &agent->rate;
	uint64_t before_hz = rate->now;

	if (agent->setup->settings.measures.main == MEASURE_OFFCPU || !agent_bound_look(rate, percent, 2 * percent))
		return;
	if (rate->is_at_end)
		output_say("the agent takes %.1f %% of the machine's time at %" PRIu64
			   " Hertz, more than --max-cpu allows: the rate cannot be lower",
			   percent, rate->now);
	else if (sonde_session_set_rate(agent->session, rate->now))
		output_say("the rate cannot be changed: %s", sonde_session_error(agent->session));
	else
		output_say("the agent takes %.1f %% of the machine's time: sampling at %" PRIu64
			   " Hertz from the next window on, after %" PRIu64,
			   percent, rate->now, before_hz);
}

static bool has_bounds(const struct agent *agent)
{
	return agent->rate.limit > 0 || agent->memory.limit > 0;
}

static void keep_cost(struct agent *agent)
{
	if (!has_bounds(agent))
		return;
	keep_cpu(agent, look_at_cost(agent));
	keep_memory(agent);
	agent_windows_set_freq(&main_recorder(agent)->windows, agent->rate.now);
}

static void end_main_window(void *arg, const struct sonde_window *window)
{
	struct recorder *recorder = arg;

	end_window(recorder, window);
	print_warnings(recorder->agent, recorder->agent->session);
	malloc_trim(0); /* what a window's names took is not needed before the next: 8 MB of 53 */
	keep_cost(recorder->agent);
}

static void note_start(void *arg)
{
	struct agent *agent = ((struct recorder *)arg)->agent;
	uint64_t gap_ns = agent->gap_since_ns ? clock_ns() - agent->gap_since_ns : 0;

	agent->has_begun = true;
	flight_sampling(agent->flight);
	if (has_bounds(agent))
		look_at_cost(agent); /* the start's own does not count */
	agent->proved = agent->setup;
	if (!gap_ns)
		return;
	agent_windows_gap(&main_recorder(agent)->windows, gap_ns);
	output_say("sampling with the new settings; between, nothing was sampled for %.2f s", (double)gap_ns / (double)NS_PER_S);
}

/* What cannot be changed while it runs. */
static int check_next(const struct agent_setup *setup, const struct agent_setup *next, struct diag *diag)
{
	if (strcmp(setup->arguments.store, next->arguments.store) != 0)
		return diag_errno(diag, EINVAL, "store: another one needs a restart");
	return 0;
}

/* Reads the settings again. If they are others, the session ends with its window, and another one begins. */
static void reload(struct agent *agent)
{
	CLEANUP(agent_setup_freep) struct agent_setup *next = NULL;
	struct diag diag = { 0 };
	int err = agent_setup_read(&agent_verb, agent->typed, &diag, &next);

	if (!err)
		err = check_next(agent->setup, next, &diag);
	if (err) {
		output_say("the settings stay as they are: %s", failure_text(&diag, err));
	} else if (!next->path) {
		output_say("there is no file of settings to read again: --config names one");
	} else if (config_is_same(&agent_verb, &agent->setup->arguments, &next->arguments)) {
		output_say("%s was read again: no setting has changed", next->path);
	} else {
		output_say("%s was read again", next->path);
		next->before = agent->setups;
		agent->setups = agent->next = MOVE(next);
		agent->gap_since_ns = clock_ns();
		sonde_session_stop(agent->session);
	}
}

/* Some times a second. */
static void look_for_hangup(void *arg, uint64_t elapsed_ns, uint64_t nr_samples)
{
	struct agent *agent = ((struct recorder *)arg)->agent;

	if (!agent->next && signals_take_hangup())
		reload(agent);
}

static int open_store(const struct agent_arguments *arguments, struct store **ret_store)
{
	CLEANUP(freep) char *aside = NULL;
	struct diag diag = { 0 };
	int err = store_open(arguments->store, STORE_OWN, &diag, &aside, ret_store);

	if (err)
		output_say("%s", failure_text(&diag, err));
	if (aside)
		output_say("warning: the store was corrupt: it is now %s, and a new one was begun", aside);
	return err;
}

static const char *place_of(const char *store)
{
	return store_is_in_memory(store) ? "memory" : store;
}

/* The rest of the time that was asked for, or 0. */
static uint64_t left_ns(const struct agent *agent)
{
	uint64_t now_ns = clock_ns();

	return !agent->until_ns ? 0 : agent->until_ns > now_ns ? agent->until_ns - now_ns : 1;
}

/* What the sessions of all kinds have in common. */
static void fill_options(void *arg, enum agent_measure measure, struct sonde_session_options *options)
{
	struct agent *agent = arg;

	agent->recorders[measure].has_window = false;
	options->command_line = agent->command_line;
	options->sampling = &agent->sampling;
	/* all of the time has no short part to leave out */
	options->waits = measure == MEASURE_WALL ? &agent->waits_of_wall : &agent->waits;
	options->profile_format = "json";
	options->profile = take_window;
	options->process_labels = true;
	options->environment = agent->setup->settings.env.list;
	options->runtimes = agent->setup->arguments.runtimes;
	options->as_linked = true;
	options->addresses = agent->setup->settings.addresses;
	options->window = end_window;
	options->arg = &agent->recorders[measure];
}

static void end_turn(void *arg, enum agent_measure measure, struct sonde_session *session, int err)
{
	struct agent *agent = arg;
	struct recorder *recorder = &agent->recorders[measure];
	struct agent_cost cost;

	agent_cost_read(agent->costs, &cost); /* its programs go with it */
	print_warnings(agent, session);
	if (!err || recorder->has_window) /* which is counted by itself */
		return;
	agent_windows_failed(&recorder->windows);
	pthread_mutex_lock(&agent->warnings_lock);
	print_warning(agent, sonde_session_error(session));
	pthread_mutex_unlock(&agent->warnings_lock);
}

static int start_turns(struct agent *agent)
{
	const struct agent_measures *measures = &agent->setup->settings.measures;
	const struct agent_turns_options options = { .measures = measures,
						     .window_ns = agent->setup->arguments.window_s * NS_PER_S,
						     .fill = fill_options,
						     .ended = end_turn,
						     .arg = agent };
	struct diag diag = { 0 };
	int err = measures->nr_turns ? agent_turns_start(&options, &diag, &agent->turns) : 0;

	if (err)
		output_say("%s", failure_text(&diag, err));
	return err;
}

static int run(const struct agent_arguments *arguments, struct agent *agent)
{
	enum agent_measure measure = agent->setup->settings.measures.main;
	struct sonde_session_options of_library = { .size = sizeof(of_library),
						    .mode = agent_measure_mode(measure),
						    .duration_ns = left_ns(agent),
						    .every_ns = arguments->window_s * NS_PER_S };
	int err;

	fill_options(agent, measure, &of_library);
	of_library.unwind_bytes = agent->memory.now;
	of_library.audit_every = (uint32_t)arguments->audit_every;
	of_library.timestamps = arguments->recorder_s;
	of_library.timed_profile = arguments->recorder_s ? take_timed_window : NULL;
	of_library.started = note_start;
	of_library.progress = look_for_hangup;
	of_library.window = end_main_window;
	err = sonde_session_new(&of_library, &agent->session);
	if (err)
		return session_failed(&agent_verb, agent->session, err);
	signals_stop_next(session_stop, agent->session);
	output_say("Sampling at %" PRIu64 " Hertz into %s, a profile each %" PRIu64 " s", arguments->freq_hz, place_of(arguments->store),
		   arguments->window_s);
	if (start_turns(agent))
		sonde_session_stop(agent->session);
	err = sonde_session_run(agent->session);
	agent_turns_end(MOVE(agent->turns));
	if (!agent->next)
		signals_report();
	output_talk(sonde_session_total(agent->session));
	return err ? session_failed(&agent_verb, agent->session, err) : SONDE_EXIT_REPORT;
}

struct destination {
	const struct destination_arguments *to;
	struct delivery_options options; /* what is not in the arguments */
};

static int start_delivery(const struct agent_arguments *arguments, const struct destination *destination, struct agent *agent)
{
	const struct destination_arguments *to = destination->to;
	const struct post_options files = {
		.authorities = to->ca, .certificate = to->cert, .key = to->key, .timeout_s = REQUEST_S
	};
	struct delivery_options options = destination->options;
	struct diag diag = { 0 };
	int err;

	options.store = arguments->store;
	options.headers = to->headers.texts;
	options.nr_headers = to->headers.nr;
	options.post = &files;
	err = delivery_start(&options, &diag, &agent->deliveries[agent->nr_deliveries]);
	if (err)
		output_say("%s", failure_text(&diag, err));
	else
		agent->nr_deliveries++;
	return err;
}

static int start_deliveries(const struct agent_arguments *arguments, const struct agent_settings *settings, struct agent *agent)
{
	const struct destination destinations[] = {
		{ &arguments->otlp,
		  { .name = arguments->otlp.address,
		    .type = &settings->otlp_push.type,
		    .settings = &settings->otlp_push,
		    .url = settings->otlp.url } },
		{ &arguments->pyroscope,
		  { .name = settings->pyroscope_name,
		    .type = &pyroscope_push,
		    .settings = &settings->pyroscope_labels,
		    .url = settings->pyroscope_url } },
		{ &arguments->parca,
		  { .name = settings->parca_name,
		    .type = &parca_push,
		    .settings = &settings->parca_labels,
		    .url = settings->parca.url } },
		{ &arguments->clickhouse,
		  { .name = settings->clickhouse_name, .type = &clickhouse_push, .url = settings->clickhouse.url } },
	};
	int err = 0;

	_Static_assert(ARRAY_SIZE(destinations) <= AGENT_MAX_DESTINATIONS, "room for each");
	for (size_t i = 0; i < ARRAY_SIZE(destinations) && !err; i++) {
		if (destinations[i].to->address)
			err = start_delivery(arguments, &destinations[i], agent);
	}
	return err;
}

/* The kinds of windows that have turns. */
static void add_others(struct agent *agent, struct agent_sources *sources)
{
	const struct agent_measures *measures = &agent->setup->settings.measures;

	for (uint32_t measure = 0; measure < MEASURE_COUNT; measure++) {
		for (uint32_t i = 0; i < measures->nr_turns && measure != measures->main; i++) {
			if (measures->turns[i] != measure)
				continue;
			sources->others[sources->nr_others++] = &agent->recorders[measure].windows;
			break;
		}
	}
}

static int start_server(const struct agent_arguments *arguments, struct agent *agent)
{
	struct agent_sources sources = { .windows = &main_recorder(agent)->windows,
					 .nr_deliveries = agent->nr_deliveries,
					 .flight = agent->flight,
					 .costs = agent->costs,
					 .counters = agent->counters,
					 .store = arguments->store,
					 .freq_hz = arguments->freq_hz,
					 .window_ns = arguments->window_s * NS_PER_S,
					 .start_unix_ns = agent->start_unix_ns };
	struct diag diag = { 0 };
	int err;

	if (store_is_in_memory(arguments->store) && !arguments->listen)
		return 0;
	add_others(agent, &sources);
	memcpy(sources.deliveries, agent->deliveries, sizeof(sources.deliveries));
	err = agent_server_start(&sources, arguments->listen, &diag, &agent->server);
	if (err)
		output_say("%s", failure_text(&diag, err));
	return err;
}

static int start_skywalking(const struct agent_arguments *arguments, const struct agent_settings *settings, struct agent *agent)
{
	const struct destination_arguments *to = &arguments->skywalking;
	const struct post_options files = {
		.authorities = to->ca, .certificate = to->cert, .key = to->key, .timeout_s = REQUEST_S
	};
	const struct sky_options options = { .address = to->address,
					     .endpoint = &settings->skywalking,
					     .post = &files,
					     .headers = to->headers.texts,
					     .nr_headers = to->headers.nr,
					     .authentication = arguments->skywalking_authentication,
					     .period = arguments->skywalking_period,
					     .names = settings->sky_names,
					     .heartbeat_ns = arguments->skywalking_heartbeat_s * NS_PER_S,
					     .check_ns = arguments->skywalking_check_s * NS_PER_S,
					     .flush_ns = arguments->skywalking_flush_s * NS_PER_S };
	struct diag diag = { 0 };
	int err = to->address ? sky_client_start(&options, &diag, &agent->skywalking) : 0;

	if (err)
		output_say("%s", failure_text(&diag, err));
	return err;
}

/* Also without --recorder: what it had before may go then. */
static int start_flight(const struct agent_arguments *arguments, struct agent *agent)
{
	const struct flight_options options = { .triggers = &agent->setup->settings.triggers,
						.before_ns = arguments->recorder_s * NS_PER_S,
						.after_ns = arguments->recorder_after_s * NS_PER_S,
						.window_ns = arguments->window_s * NS_PER_S,
						.max_bytes = arguments->recorder_max_bytes,
						.store = agent->store,
						.store_lock = &agent->store_lock,
						.store_name = arguments->store,
						.command_line = agent->command_line,
						.runtimes = arguments->runtimes,
						.warned = print_warnings,
						.arg = agent };
	struct diag diag = { 0 };
	int err = flight_start(agent->flight, &options, &diag);

	if (err)
		output_say("%s", failure_text(&diag, err));
	return err;
}

static int start_counters(const struct agent_arguments *arguments, struct agent *agent)
{
	struct diag diag = { 0 };
	int err = arguments->counters ? agent_counters_new(arguments->counters, &diag, &agent->counters) : 0;

	if (err)
		output_say("%s", failure_text(&diag, err));
	return err;
}

static int start_threads(const struct agent_arguments *arguments, const struct agent_settings *settings, struct agent *agent)
{
	return start_counters(arguments, agent) ?: start_flight(arguments, agent) ?: start_deliveries(arguments, settings, agent) ?:
	       start_server(arguments, agent) ?: start_skywalking(arguments, settings, agent);
}

static void end_threads(struct agent *agent)
{
	flight_stop(agent->flight, !agent->next);
	sky_client_end(MOVE(agent->skywalking));
	agent_server_end(MOVE(agent->server));
	agent_counters_free(MOVE(agent->counters));
	for (uint32_t i = 0; i < agent->nr_deliveries; i++)
		delivery_finish(agent->deliveries[i], agent->next ? RELOAD_S : LAST_S);
	while (agent->nr_deliveries)
		delivery_end(agent->deliveries[--agent->nr_deliveries]);
}

/* What is in memory ends with the process. True: there was something. */
static bool lose_rest(struct store *store)
{
	struct store_evicted rest = { 0 };
	int err = store_evict(store, UINT64_MAX, 0, NULL, &rest);

	if (err)
		output_say("what was not delivered is lost, and cannot be counted: %s", strerror(-err));
	else if (rest.nr_unsent)
		output_say("lost with the memory that they were in: %" PRIu64 " profiles", rest.nr_unsent);
	return err || rest.nr_unsent;
}

/* The first tables come before the first window: they may take half of the limit. */
static void prepare_memory(uint64_t max_bytes, struct agent_bound *ret_memory)
{
	uint64_t wanted = max_bytes && max_bytes / 2 < SONDE_DEFAULT_UNWIND_BYTES ? max_bytes / 2 : SONDE_DEFAULT_UNWIND_BYTES;

	if (wanted < MIN_UNWIND_BYTES)
		wanted = MIN_UNWIND_BYTES;
	*ret_memory = (struct agent_bound){ .limit = (double)max_bytes, .least = MIN_UNWIND_BYTES, .wanted = wanted, .now = wanted };
}

/* As the settings in force say. */
static void prepare(struct agent *agent)
{
	const struct agent_arguments *arguments = &agent->setup->arguments;

	for (uint32_t i = 0; i < MEASURE_COUNT; i++) {
		agent->recorders[i].windows.max_age_ns = agent->setup->settings.max_age_ns;
		agent->recorders[i].windows.max_bytes = arguments->store_max_bytes;
	}
	agent->sampling = (struct sonde_sampling_options){ .size = sizeof(agent->sampling), .freq_hz = arguments->freq_hz };
	agent->waits_of_wall = (struct sonde_wait_options){ .size = sizeof(agent->waits), .min_ns = MIN_WAIT_NS };
	agent->waits = agent->waits_of_wall;
	agent->waits.max_overhead_percent = (uint32_t)arguments->max_cpu_percent;
	agent->rate = (struct agent_bound){
		.limit = (double)arguments->max_cpu_percent, .least = 1, .wanted = arguments->freq_hz, .now = arguments->freq_hz
	};
	prepare_memory(arguments->max_memory_mib << 20, &agent->memory);
	agent->has_begun = false;
}

/* Without it the processes alone count. */
static void count_bpf(int *ret_fd)
{
	struct diag diag = { 0 };
	int err = agent_cost_count_bpf(&diag, ret_fd);

	if (err)
		output_say("warning: --max-cpu is kept by the processes' time alone: %s", failure_text(&diag, err));
}

/* A session, with all that works beside it. Returns an exit code. */
static int record(struct agent *agent)
{
	const struct agent_arguments *arguments = &agent->setup->arguments;
	int code = SONDE_EXIT_FAILED, err;

	prepare(agent);
	if (arguments->max_cpu_percent && agent->count_fd < 0)
		count_bpf(&agent->count_fd);
	err = start_threads(arguments, &agent->setup->settings, agent);
	if (!err)
		code = run(arguments, agent);
	else if (err == -EOPNOTSUPP) /* of a trigger */
		code = SONDE_EXIT_KERNEL_CANNOT;
	end_threads(agent);
	signals_done();
	sonde_session_free(MOVE(agent->session));
	return code;
}

static bool has_proved_others(const struct agent *agent)
{
	return agent->proved && agent->proved != agent->setup;
}

/* Takes the next settings, or goes back from some that do not work. False: neither. */
static bool change_setup(struct agent *agent)
{
	if (agent->next) {
		agent->setup = MOVE(agent->next);
		return true;
	}
	if (agent->has_begun || !has_proved_others(agent))
		return false;
	output_say("the new settings do not work: on with those before");
	agent->setup = agent->proved;
	return true;
}

/* Session after session. Returns the exit code of the first that failed. */
static int record_all(struct agent *agent)
{
	uint64_t nr_stored = 0, nr_lost = 0;
	int code = SONDE_EXIT_REPORT;

	do {
		int last = record(agent);

		if (agent->has_begun || !has_proved_others(agent)) /* else those go on */
			code = code ? code : last;
	} while (!signals_came() && change_setup(agent));
	for (uint32_t i = 0; i < MEASURE_COUNT; i++) {
		nr_stored += agent->recorders[i].windows.numbers.nr_stored;
		nr_lost += agent->recorders[i].windows.numbers.nr_lost;
	}
	output_say("stored: %" PRIu64 " windows in %s; lost: %" PRIu64, nr_stored, place_of(agent->setup->arguments.store), nr_lost);
	if (agent->nr_unsaid)
		output_say("%" PRIu32 " warnings were not said", agent->nr_unsaid);
	return code;
}

/* Closing the terminal ends the agent, as it ends other verbs. */
static void catch_signals(const struct agent_setup *setup)
{
	signals_stop(NULL, NULL);
	if (setup->path || !isatty(STDIN_FILENO))
		signals_keep_hangups();
}

static void init_recorders(struct agent *agent)
{
	pthread_mutex_init(&agent->warnings_lock, NULL);
	pthread_mutex_init(&agent->store_lock, NULL);
	for (uint32_t i = 0; i < MEASURE_COUNT; i++) {
		agent->recorders[i] = (struct recorder){ .agent = agent,
							 .windows = { .store = agent->store,
								      .store_lock = &agent->store_lock,
								      .type = agent_measure_name(i),
								      .in_memory = store_is_in_memory(agent->setup->arguments.store) } };
		agent_windows_init(&agent->recorders[i].windows);
	}
}

static void done_recorders(struct agent *agent)
{
	for (uint32_t i = 0; i < MEASURE_COUNT; i++)
		agent_windows_done(&agent->recorders[i].windows);
	pthread_mutex_destroy(&agent->store_lock);
	pthread_mutex_destroy(&agent->warnings_lock);
}

/* The unit's (packaging/sonde-agent.service.in), and that of ports below 1024. */
#define KEPT_RIGHTS \
	(RIGHT(CAP_BPF) | RIGHT(CAP_PERFMON) | RIGHT(CAP_SYS_PTRACE) | RIGHT(CAP_SYSLOG) | RIGHT(CAP_CHECKPOINT_RESTORE) | \
	 RIGHT(CAP_DAC_READ_SEARCH) | RIGHT(CAP_SETUID) | RIGHT(CAP_SETGID) | RIGHT(CAP_KILL) | RIGHT(CAP_SYS_NICE) | \
	 RIGHT(CAP_NET_BIND_SERVICE))

static int start(struct agent *agent)
{
	const struct agent_arguments *arguments = &agent->setup->arguments;
	int code;

	agent->flight = flight_new();
	if (!agent->flight || agent_cost_reader_new(&agent->costs))
		return output_no_memory();
	catch_signals(agent->setup); /* from the first moment on, an end is orderly */
	if (open_store(arguments, &agent->store)) {
		signals_done();
		agent_cost_reader_free(agent->costs);
		flight_free(agent->flight);
		return SONDE_EXIT_FAILED;
	}
	if (arguments->max_cpu_percent) /* needs CAP_SYS_ADMIN */
		count_bpf(&agent->count_fd);
	code = rights_keep(KEPT_RIGHTS);
	if (code)
		output_say("warning: rights that are not needed are kept: %s", strerror(-code));
	init_recorders(agent);
	agent->start_unix_ns = clock_of_ns(CLOCK_REALTIME);
	agent->until_ns = arguments->duration_s ? clock_ns() + arguments->duration_s * NS_PER_S : 0;
	code = record_all(agent);
	if (store_is_in_memory(arguments->store) && lose_rest(agent->store) && code == SONDE_EXIT_REPORT)
		code = SONDE_EXIT_FAILED;
	done_recorders(agent);
	store_close(agent->store);
	agent_cost_reader_free(agent->costs);
	flight_free(agent->flight);
	closep(&agent->count_fd);
	return code;
}

static int print_config(const struct agent_arguments *arguments)
{
	CLEANUP(buffer_done) struct buffer buffer = BUFFER_INIT(MAX_CONFIG_BYTES);

	config_print(&agent_verb, arguments, &buffer);
	return output_result(&buffer);
}

static int agent_run(void *all, const char *command_line)
{
	struct agent agent = { .typed = all, .command_line = command_line, .count_fd = -1 };
	const struct agent_arguments *arguments;
	struct diag diag = { 0 };
	bool json = false;
	int code, err = plain_format_choose(agent.typed->format, NULL, &diag, &json) ?:
			agent_setup_read(&agent_verb, agent.typed, &diag, &agent.setups);

	if (err)
		return output_usage(&agent_verb, failure_text(&diag, err));
	agent.setup = agent.setups;
	arguments = &agent.setup->arguments;
	if (arguments->status)
		code = agent_status(arguments->store, json);
	else
		code = arguments->print_config ? print_config(arguments) : start(&agent);
	agent_setup_free(agent.setups);
	return code;
}

const struct verb agent_verb = {
	.name = "agent",
	.summary = "profiles all the time, into a local store and to servers",
	.description = "Samples the whole machine all the time, and keeps a profile of each window in a store on disk, bounded by age and "
		       "size. show, diff and convert read any time of it, also while the agent runs: DIRECTORY@FROM..TO, where a time is a "
		       "duration before now (-90s, -15m, -1h, -2d) or a date (2026-11-26T20:00, with Z in UTC). Of several types of "
		       "profiles (--measure) they read cpu, or what is said behind the time: DIRECTORY@-1h,offcpu.\n\n"
		       "A disk that is full costs the windows of that time, which is said; a store that is corrupt is moved aside; one "
		       "that another agent has is refused. kill -9 costs the window that was being recorded.\n\n"
		       "With --recorder the last minutes are in memory, too, each sample with its time. When a trigger fires, they and "
		       "the time after it go into the store as incident profiles, with the trigger as a note: show DIRECTORY@,incident "
		       "names all incidents. They stay there: destinations had the samples before. Windows that are in one incident are "
		       "not in the next one again. kill -9 loses what is in memory; SIGTERM in an incident stores what there is.",
	.options = agent_options,
	.nr_options = AGENT_NR_OPTIONS,
	.examples = examples,
	.arguments_bytes = sizeof(struct agent_arguments),
	.run = agent_run,
};
