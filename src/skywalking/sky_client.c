// SPDX-License-Identifier: Apache-2.0
#include "skywalking/sky_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/hold_signals.h"
#include "base/timed_wait.h"
#include "cli/output.h"
#include "cli/session_end.h"
#include "skywalking/sky_policies.h"
#include "skywalking/sky_processes.h"
#include "skywalking/sky_rpc.h"
#include "skywalking/sky_tasks.h"

#define REPORT_BATCH	    80                /* processes of a report: the answer to more would be longer than post.h keeps */
#define MAX_BATCH_BYTES	    ((size_t)1 << 20)
#define BEATS_TO_REPORT_ALL 10
#define LAST_NS		    (8 * NS_PER_S)    /* for the last windows at the end */
#define OVER_NS		    (2 * NS_PER_S)    /* what that may take longer */
#define JOIN_NS		    (3 * NS_PER_S)    /* a request ends within a second */
#define RETRY_NS	    (5 * NS_PER_S)    /* after a failure */
#define STEP_MS		    200
#define STEP_AT_END_MS	    50
#define TROUBLE_BYTES	    512
#define AUTHENTICATION	    "authentication: "

struct sky_client {
	struct sky_options options;
	struct endpoint endpoint;
	const char *headers[SKY_MAX_HEADERS + 2];
	char *authentication;            /* the whole header */
	char agent_id[37], host_address[INET_ADDRSTRLEN];
	struct sky_rpc rpc;
	struct sky_processes processes;
	struct sky_tasks tasks;
	struct sky_policies policies;
	uint64_t beat_at_ns, check_at_ns, measure_at_ns;
	uint32_t nr_beats;
	bool was_away;                   /* the last call failed: the server may be a new one, and know nobody */
	char trouble[TROUBLE_BYTES];     /* said once, until it changes */
	char said_of_tasks[TROUBLE_BYTES], said_of_policies[TROUBLE_BYTES], said_of_records[TROUBLE_BYTES]; /* likewise */
	bool has_said_silent;            /* that processes do not answer */
	pthread_t thread;
	pthread_mutex_t lock;            /* for is_ending and until_ns */
	pthread_cond_t has_changed;
	bool is_ending;
	uint64_t until_ns;               /* then: for the last windows */
	bool stop;                       /* read by a request in progress */
};

/* Says the trouble with the server once, and when it is over. */
static void tell(struct sky_client *client, const char *trouble)
{
	if (!strcmp(client->trouble, trouble))
		return;
	if (*trouble)
		output_say("%s: %s", client->options.address, trouble);
	else
		output_say("%s: answers again", client->options.address);
	snprintf(client->trouble, sizeof(client->trouble), "%s", trouble);
}

/* --- processes ------------------------------------------------------------------------------------------------------------------------ */

typedef void (*write_fn)(const char *agent_id, const char *host_address, const struct sky_process *const *processes, uint32_t nr,
			 struct buffer *buffer);

struct batch {
	struct sky_known *known[SKY_MAX_PROCESSES];
	struct sky_process *processes[SKY_MAX_PROCESSES];
	uint32_t nr;
};

static int report(struct sky_client *client, struct batch *batch, struct diag *diag)
{
	CLEANUP(buffer_done) struct buffer message = BUFFER_INIT(MAX_BATCH_BYTES);
	int err;

	sky_write_report(client->agent_id, client->host_address, (const struct sky_process *const *)batch->processes, batch->nr, &message);
	err = sky_rpc_call(&client->rpc, SKY_REPORT, &message, diag);
	if (err)
		return err;
	if (!sky_read_ids(sky_rpc_message(&client->rpc), batch->processes, batch->nr))
		return diag_errno(diag, EBADMSG, "its answer to a report of processes cannot be read");
	for (uint32_t i = 0; i < batch->nr; i++)
		batch->known[i]->is_reported = true;
	return 0;
}

/* Only this makes the service and its instance; a report alone does not. */
static int keep_alive(struct sky_client *client, struct batch *batch, struct diag *diag)
{
	CLEANUP(buffer_done) struct buffer message = BUFFER_INIT(MAX_BATCH_BYTES);

	sky_write_keep_alive(client->agent_id, client->host_address, (const struct sky_process *const *)batch->processes, batch->nr,
			     &message);
	return sky_rpc_call(&client->rpc, SKY_KEEP_ALIVE, &message, diag);
}

/* Calls for all processes of a kind. */
static int call_for(struct sky_client *client, bool of_all, int (*call)(struct sky_client *client, struct batch *batch, struct diag *diag),
		    struct diag *diag)
{
	struct batch batch = { .nr = 0 };
	int err = 0;

	for (uint32_t i = 0; i < client->processes.nr && !err; i++) {
		struct sky_known *known = &client->processes.all[i];

		if (of_all || (call == report ? !known->is_reported : known->is_reported && *known->process.id)) {
			batch.known[batch.nr] = known;
			batch.processes[batch.nr++] = &known->process;
		}
		if (call == report && batch.nr == REPORT_BATCH) {
			err = call(client, &batch, diag);
			batch.nr = 0;
		}
	}
	return !err && batch.nr ? call(client, &batch, diag) : err;
}

static int beat(struct sky_client *client, struct diag *diag)
{
	bool report_all = client->was_away || ++client->nr_beats % BEATS_TO_REPORT_ALL == 0;
	uint32_t nr_left_out = client->processes.nr_left_out;
	struct proxy_counts silent;
	int err = report_all ? sky_processes_ask_again(&client->processes, diag) : 0;

	if (err)
		return err;
	sky_processes_look(&client->processes, &client->options.names, client->options.heartbeat_ns);
	if (client->processes.nr_left_out && !nr_left_out)
		output_say("%s is told of %d processes; left out: %" PRIu32, client->options.address, SKY_MAX_PROCESSES,
			   client->processes.nr_left_out);
	silent = proxy_counts(client->processes.proxy);
	if (silent.nr_timed_out && !client->has_said_silent)
		output_say("%s is not told of processes whose memory does not answer, such as %" PRIu32 " of user %" PRIu32,
			   client->options.address, silent.tgid, silent.uid);
	client->has_said_silent |= silent.nr_timed_out != 0;
	err = call_for(client, report_all, report, diag);
	if (!err)
		err = call_for(client, false, keep_alive, diag);
	if (!err && client->was_away) {
		client->was_away = false;
		tell(client, "");
	}
	return err;
}

/* --- tasks ---------------------------------------------------------------------------------------------------------------------------- */

static int query(struct sky_client *client, struct diag *diag)
{
	CLEANUP(buffer_done) struct buffer message = BUFFER_INIT(MAX_BATCH_BYTES);
	int err;

	sky_write_task_query(client->agent_id, client->tasks.seen_ms, &message);
	err = sky_rpc_call(&client->rpc, SKY_TASKS, &message, diag);
	if (!err)
		sky_tasks_take(&client->tasks, &client->processes, sky_rpc_message(&client->rpc));
	return err;
}

/* True, and sets the next time, when this one has come. */
static bool is_due(uint64_t *at_ns, uint64_t every_ns)
{
	uint64_t now_ns = clock_ns();

	if (now_ns < *at_ns)
		return false;
	*at_ns = now_ns + every_ns;
	return true;
}

/* What the server answered to one of the calls is no reason to leave the others out: an older one may know no policies. */
static int forgive(struct sky_client *client, int err, struct diag *diag, char said[TROUBLE_BYTES])
{
	if (err != -EPROTO && err != -EBADMSG)
		return err;
	if (strcmp(said, diag->text) != 0)
		output_say("%s: %s", client->options.address, diag->text);
	snprintf(said, TROUBLE_BYTES, "%s", diag->text);
	*diag = (struct diag){ 0 };
	return 0;
}

static int step(struct sky_client *client, struct diag *diag)
{
	int err = 0;

	if (is_due(&client->beat_at_ns, client->options.heartbeat_ns))
		err = beat(client, diag);
	if (err || client->was_away) /* nothing else until it answers again, and knows the processes */
		return err;
	if (is_due(&client->check_at_ns, client->options.check_ns)) {
		err = forgive(client, query(client, diag), diag, client->said_of_tasks);
		if (!err)
			err = forgive(client, sky_policies_query(&client->policies, &client->processes, &client->rpc, diag), diag,
				      client->said_of_policies);
	}
	if (!err && is_due(&client->measure_at_ns, NS_PER_S))
		err = forgive(client, sky_policies_measure(&client->policies, &client->processes, &client->tasks, &client->rpc, diag),
			      diag, client->said_of_policies);
	return err ? err : forgive(client, sky_tasks_send(&client->tasks, &client->rpc, diag), diag, client->said_of_records);
}

static void step_and_tell(struct sky_client *client)
{
	struct diag diag = { 0 };
	int err = step(client, &diag);

	if (!err || err == -ECANCELED)
		return;
	tell(client, failure_text(&diag, err));
	client->was_away = true;
	client->tasks.seen_ms = 0; /* another server may have others, and its own clock */
	client->beat_at_ns = clock_ns() + (client->options.heartbeat_ns < RETRY_NS ? client->options.heartbeat_ns : RETRY_NS);
}

/* --- the thread ----------------------------------------------------------------------------------------------------------------------- */

/* False: it is over. */
static bool wait_a_step(struct sky_client *client)
{
	bool goes_on;

	pthread_mutex_lock(&client->lock);
	if (!client->is_ending)
		timed_cond_wait(&client->has_changed, &client->lock, clock_ns() + STEP_MS * NS_PER_MS);
	goes_on = !client->is_ending;
	pthread_mutex_unlock(&client->lock);
	return goes_on;
}

static void end_tasks(struct sky_client *client)
{
	const struct timespec pause = { .tv_nsec = STEP_AT_END_MS * NS_PER_MS };
	struct diag diag = { 0 };
	int err = 0;

	sky_tasks_stop(&client->tasks);
	while (!sky_tasks_are_over(&client->tasks) && clock_ns() < client->until_ns && (!err || err == -EPROTO)) {
		err = sky_tasks_send(&client->tasks, &client->rpc, &diag);
		nanosleep(&pause, NULL);
	}
	if (diag.err)
		tell(client, diag.text);
	sky_tasks_done(&client->tasks, client->until_ns);
}

static void *run(void *arg)
{
	struct sky_client *client = arg;

	do
		step_and_tell(client);
	while (wait_a_step(client));
	end_tasks(client);
	return NULL;
}

/* --- start and end -------------------------------------------------------------------------------------------------------------------- */

/* A random UUID (RFC 9562, version 4): the server finds our tasks by it. */
static int make_agent_id(char id[37], struct diag *diag)
{
	uint8_t bytes[16];
	size_t at = 0;

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return diag_errno(diag, errno, "no random numbers: %s", strerror(errno));
	bytes[6] = (bytes[6] & 0x0f) | 0x40;
	bytes[8] = (bytes[8] & 0x3f) | 0x80;
	for (size_t i = 0; i < sizeof(bytes); i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			id[at++] = '-';
		at += (size_t)snprintf(id + at, 3, "%02x", bytes[i]);
	}
	return 0;
}

/* The first address that is not loopback. */
static void find_host_address(char address[INET_ADDRSTRLEN])
{
	struct ifaddrs *all = NULL;

	snprintf(address, INET_ADDRSTRLEN, "127.0.0.1");
	if (getifaddrs(&all))
		return;
	for (const struct ifaddrs *at = all; at; at = at->ifa_next) {
		if (!at->ifa_addr || at->ifa_addr->sa_family != AF_INET || (at->ifa_flags & IFF_LOOPBACK) || !(at->ifa_flags & IFF_UP))
			continue;
		inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)at->ifa_addr)->sin_addr, address, INET_ADDRSTRLEN);
		break;
	}
	freeifaddrs(all);
}

static int set_headers(struct sky_client *client, const struct sky_options *options)
{
	uint32_t nr = 0;

	for (; nr < options->nr_headers && nr < SKY_MAX_HEADERS; nr++)
		client->headers[nr] = options->headers[nr];
	if (options->authentication) {
		if (asprintf(&client->authentication, AUTHENTICATION "%s", options->authentication) < 0)
			return -ENOMEM;
		client->headers[nr++] = client->authentication;
	}
	client->headers[nr] = NULL;
	return 0;
}

static int start_thread(struct sky_client *client)
{
	HOLD_SIGNALS();

	pthread_mutex_init(&client->lock, NULL);
	timed_cond_init(&client->has_changed);
	return -pthread_create(&client->thread, NULL, run, client);
}

static void client_free(struct sky_client *client)
{
	sky_processes_done(&client->processes);
	sky_policies_done(&client->policies);
	post_client_free(client->rpc.client);
	free(client->rpc.answer);
	free(client->authentication);
	free(client);
}

int sky_client_start(const struct sky_options *options, struct diag *diag, struct sky_client **ret_client)
{
	struct sky_client *client = calloc(1, sizeof(*client));
	int err;

	if (!client)
		return -ENOMEM;
	client->options = *options;
	client->endpoint = *options->endpoint;
	client->tasks.period = options->period;
	client->tasks.flush_ns = options->flush_ns;
	client->rpc = (struct sky_rpc){ .url = client->endpoint.url, .headers = client->headers, .stop = &client->stop };
	find_host_address(client->host_address);
	client->rpc.answer = calloc(1, sizeof(*client->rpc.answer));
	err = client->rpc.answer ? set_headers(client, options) : -ENOMEM;
	if (!err)
		err = sky_processes_init(&client->processes, diag);
	if (!err)
		err = make_agent_id(client->agent_id, diag);
	if (!err)
		err = post_client_new(options->post, diag, &client->rpc.client);
	if (!err)
		err = start_thread(client);
	if (err)
		client_free(client);
	else
		*ret_client = client;
	return err;
}

void sky_client_end(struct sky_client *client)
{
	uint64_t until_ns = clock_ns() + LAST_NS;

	if (!client)
		return;
	pthread_mutex_lock(&client->lock);
	client->until_ns = until_ns;
	client->is_ending = true;
	pthread_cond_signal(&client->has_changed);
	pthread_mutex_unlock(&client->lock);
	if (!timed_join(client->thread, until_ns + OVER_NS)) {
		__atomic_store_n(&client->stop, true, __ATOMIC_RELAXED);
		if (!timed_join(client->thread, until_ns + OVER_NS + JOIN_NS)) {
			output_say("%s: it is not waited for any longer", client->options.address);
			return; /* the thread has what it uses until this process ends */
		}
	}
	pthread_cond_destroy(&client->has_changed);
	pthread_mutex_destroy(&client->lock);
	client_free(client);
}
