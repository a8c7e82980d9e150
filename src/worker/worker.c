// SPDX-License-Identifier: Apache-2.0
#include "worker/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/clock.h"
#include "base/priority.h"
#include "base/process_stat.h"
#include "base/spawn.h"
#include "codec/wire.h"
#include "worker/opening.h"
#include "worker/read_owner.h"
#include "worker/serve.h"

#define LOOK_MS 50
#define START_NS 10000000000u
#define MAX_TEXT_BYTES 400u
#define PIECE_BYTES ((size_t)256 << 10)

/* A request in progress, and its answer. */
struct exchange {
	struct worker_request request; /* its descriptors are copies */
	int fds[WIRE_MAX_FDS];
	struct wire_header sending, receiving;
	size_t sent, received;   /* including the headers */
	uint64_t end_ns;         /* timeout; 0: it waits for the worker to be ready */
	uint64_t begin_cpu_ns, spent_ns; /* CPU time at the start, and used at the last look */
	/* Since when the worker has neither used CPU nor transferred a byte, and its CPU time then; 0: it has just done so. */
	uint64_t idle_ns, idle_cpu_ns;
	struct buffer *answer;
	size_t answer_at;        /* where the answer begins in the buffer */
	char text[MAX_TEXT_BYTES + 1];
};

/* Its first message. */
struct readiness {
	struct wire_header header;
	struct wire_fds fds; /* the descriptor for opening files */
	size_t received;
	uint64_t end_ns;
};

struct worker {
	char *program, *word, memory[24]; /* word: may be NULL */
	struct helper helper;
	int asked_fd;
	struct readiness readiness;
	struct exchange exchange;
	uint64_t cost_ns;   /* CPU time of the last finished request */
	bool is_asked;      /* the exchange is under way */
	bool is_ready;      /* it has reported so */
	bool was_ready;     /* this process, or an earlier one */
	bool is_hopeless;   /* the program is no worker: it is not started again */
	uint32_t has_read;  /* the user whose files it has read: read_owner.h */
};

static uint64_t cpu_ns(const struct worker *worker)
{
	clockid_t clock;

	return clock_getcpuclockid(worker->helper.pid, &clock) ? 0 : clock_of_ns(clock);
}

/* As spawn_end. */
static int end(struct worker *worker)
{
	closep(&worker->asked_fd);
	worker->asked_fd = -1;
	wire_fds_close(&worker->readiness.fds);
	worker->is_ready = false;
	worker->has_read = READ_OWNER_OURS;
	return spawn_end(&worker->helper);
}

/* The same for a worker that has closed its socket; it may take a moment to end. */
static int end_of_dead(struct worker *worker)
{
	for (int i = 0; i < 100 && !spawn_has_ended(&worker->helper); i++)
		poll(NULL, 0, 10);
	return end(worker);
}

static int start(struct worker *worker, struct diag *diag)
{
	char *argv[] = { WORKER_NAME, worker->memory, worker->word, NULL };

	worker->readiness = (struct readiness){ .end_ns = clock_ns() + START_NS };
	return spawn_helper(&(struct spawn_options){ .program = worker->program, .argv = argv, .socket_type = SOCK_STREAM }, diag,
			    &worker->helper);
}

int worker_new(const char *program, uint64_t max_bytes, struct diag *diag, struct worker **ret_worker)
{
	return worker_new_for(program, NULL, max_bytes, diag, ret_worker);
}

int worker_new_for(const char *program, const char *word, uint64_t max_bytes, struct diag *diag, struct worker **ret_worker)
{
	CLEANUP(worker_freep) struct worker *worker = calloc(1, sizeof(*worker));
	int err;

	if (!worker)
		return -ENOMEM;
	worker->helper = (struct helper)HELPER_NONE;
	worker->asked_fd = -1;
	worker->program = strdup(program);
	worker->word = word ? strdup(word) : NULL;
	if (!worker->program || (word && !worker->word))
		return -ENOMEM;
	snprintf(worker->memory, sizeof(worker->memory), "%" PRIu64, max_bytes);
	err = start(worker, diag);
	if (!err)
		*ret_worker = MOVE(worker);
	return err;
}

void worker_free(struct worker *worker)
{
	if (!worker)
		return;
	worker_cancel(worker);
	free(worker->program);
	free(worker->word);
	free(worker);
}

static int no_worker(const char *how, struct diag *diag)
{
	return diag_errno(
	    diag, ELOOP,
	    "the worker that reads files did not start%s%s: it is this program once more, whose main must ask sonde_is_worker first",
	    how[0] ? ", but ended by: " : "", how);
}

/* It has closed its socket, or not answered in time, before it was ready. */
static int give_up_start(struct worker *worker, struct diag *diag)
{
	int signo = end_of_dead(worker);

	if (worker->was_ready)
		return diag_errno(diag, ECHILD, "the worker that reads files did not start again");
	worker->is_hopeless = true;
	return no_worker(signo && signo != SIGKILL ? strsignal(signo) : "", diag);
}

/* -EINPROGRESS, or as worker_ready. */
static int await_ready(struct worker *worker, int wait_ms, struct diag *diag)
{
	struct readiness *readiness = &worker->readiness;
	struct pollfd wait = { .fd = worker->helper.socket, .events = POLLIN };
	ssize_t got = -EAGAIN;

	if (poll(&wait, 1, wait_ms) > 0)
		got = wire_receive(worker->helper.socket, (char *)&readiness->header + readiness->received,
				   sizeof(readiness->header) - readiness->received, &readiness->fds, MSG_DONTWAIT);
	if (got > 0)
		readiness->received += (size_t)got;
	if ((got < 0 && got != -EAGAIN) || (got < 0 && clock_ns() > readiness->end_ns))
		return give_up_start(worker, diag);
	if (readiness->received < sizeof(readiness->header))
		return -EINPROGRESS;
	if (readiness->fds.nr)
		worker->asked_fd = readiness->fds.fds[--readiness->fds.nr];
	wire_fds_close(&readiness->fds);
	worker->is_ready = !readiness->header.status;
	worker->was_ready |= worker->is_ready;
	if (worker->is_ready)
		return 0;
	end(worker);
	return diag_errno(diag, -readiness->header.status, "the worker that reads files cannot be sandboxed: %s",
			  strerror(-readiness->header.status));
}

int worker_start(struct worker *worker, struct diag *diag)
{
	if (worker->is_hopeless)
		return no_worker("", diag);
	return worker->helper.pid ? 0 : start(worker, diag);
}

int worker_ready(struct worker *worker, struct diag *diag)
{
	int err = worker_start(worker, diag);

	if (err || worker->is_ready)
		return err;
	do
		err = await_ready(worker, LOOK_MS, diag);
	while (err == -EINPROGRESS);
	return err;
}

/* --- an exchange ---------------------------------------------------------------------------------------------------------------------- */

static int send_some(struct worker *worker, struct exchange *exchange)
{
	const struct worker_request *request = &exchange->request;
	struct wire_fds fds = { .nr = request->nr_fds };
	bool in_header = exchange->sent < sizeof(exchange->sending);
	size_t at = exchange->sent - (in_header ? 0 : sizeof(exchange->sending));
	ssize_t sent;

	for (uint32_t i = 0; i < fds.nr; i++)
		fds.fds[i] = request->fds[i];
	if (in_header)
		sent = wire_send(worker->helper.socket, (char *)&exchange->sending + at, sizeof(exchange->sending) - at, at ? NULL : &fds,
				 MSG_DONTWAIT);
	else
		sent = wire_send(worker->helper.socket, (const char *)request->body + at, request->payload_bytes - at, NULL, MSG_DONTWAIT);
	if (sent > 0)
		exchange->sent += (size_t)sent;
	return sent < 0 && sent != -EAGAIN ? (int)sent : 0;
}

static bool is_all_sent(const struct exchange *exchange)
{
	return exchange->sent == sizeof(exchange->sending) + exchange->request.payload_bytes;
}

static bool is_all_received(const struct exchange *exchange)
{
	return exchange->received >= sizeof(exchange->receiving) &&
	       exchange->received - sizeof(exchange->receiving) == exchange->receiving.payload_bytes;
}

/* Called when the header has arrived: an answer needs room, a failure is a short text. */
static int make_room(struct exchange *exchange)
{
	uint64_t size = exchange->receiving.payload_bytes;

	if (exchange->receiving.status)
		return size <= MAX_TEXT_BYTES && exchange->receiving.status < 0 && exchange->receiving.status > -4096 ? 0 : -EBADMSG;
	exchange->answer_at = exchange->answer->size;
	if (size > exchange->answer->max - exchange->answer->size)
		return -EFBIG;
	return !size || buffer_reserve(exchange->answer, size) ? 0 : -ENOMEM;
}

static int receive_some(struct worker *worker, struct exchange *exchange)
{
	size_t at = exchange->received, header_bytes = sizeof(exchange->receiving);
	ssize_t got;

	if (at < header_bytes) {
		got = wire_receive(worker->helper.socket, (char *)&exchange->receiving + at, header_bytes - at, NULL, MSG_DONTWAIT);
	} else {
		char *to = exchange->receiving.status ? exchange->text : exchange->answer->data + exchange->answer_at;
		uint64_t left = exchange->receiving.payload_bytes - (at - header_bytes);

		got = wire_receive(worker->helper.socket, to + (at - header_bytes), left < PIECE_BYTES ? left : PIECE_BYTES, NULL,
				   MSG_DONTWAIT);
	}
	if (got == -EAGAIN)
		return 0;
	if (got < 0)
		return (int)got;
	exchange->received += (size_t)got;
	return at < header_bytes && exchange->received == header_bytes ? make_room(exchange) : 0;
}

/* The worker's clock no longer exists once it has ended and been reaped by others. */
static uint64_t look_at_cpu(const struct worker *worker, struct exchange *exchange)
{
	uint64_t now_ns = cpu_ns(worker);

	if (now_ns > exchange->begin_cpu_ns + exchange->spent_ns)
		exchange->spent_ns = now_ns - exchange->begin_cpu_ns;
	return exchange->spent_ns;
}

static bool is_overdue(const struct worker *worker, struct exchange *exchange)
{
	return clock_ns() > exchange->end_ns || look_at_cpu(worker, exchange) > exchange->request.max_cpu_ns;
}

/* Does the kernel wait for something on its behalf? False if it waits only for a CPU. */
static bool is_asleep(const struct worker *worker)
{
	struct process_stat stat;
	char state;

	if (process_stat_read((uint32_t)worker->helper.pid, &stat))
		return false;
	state = process_stat_char(&stat, PROCESS_STAT_STATE);
	return state == 'S' || state == 'D';
}

/* True if it has slept and used no CPU for max_idle_ns: then only the file's file system can be the cause. */
static bool is_hung(const struct worker *worker, struct exchange *exchange, bool has_moved)
{
	uint64_t now = clock_ns(), cpu = cpu_ns(worker);

	if (!exchange->request.max_idle_ns)
		return false;
	if (has_moved || !exchange->idle_ns || cpu != exchange->idle_cpu_ns) {
		exchange->idle_ns = now;
		exchange->idle_cpu_ns = cpu;
		return false;
	}
	return now - exchange->idle_ns > exchange->request.max_idle_ns && is_asleep(worker);
}

/* A file that the worker opens by name counts as read. */
struct opening {
	struct worker *worker;
	const struct worker_request *request;
};

static int open_file(void *arg, const char *path)
{
	const struct opening *opening = arg;
	int fd = opening->request->open(opening->request->open_arg, path);

	if (fd >= 0)
		opening->worker->has_read = read_owner_join(opening->worker->has_read, fd);
	return fd;
}

static int step(struct worker *worker, struct exchange *exchange, int wait_ms)
{
	struct opening opening = { worker, &exchange->request };
	struct pollfd waits[] = {
		{ .fd = worker->helper.socket, .events = (short)(is_all_sent(exchange) ? POLLIN : POLLIN | POLLOUT) },
		{ .fd = worker->asked_fd, .events = POLLIN },
	};
	size_t moved = exchange->sent + exchange->received;
	int err = 0;

	if (poll(waits, ARRAY_SIZE(waits), wait_ms) < 0 && errno != EINTR)
		return -errno;
	if (waits[1].revents & POLLIN)
		opening_answer(worker->asked_fd, exchange->request.open ? open_file : NULL, &opening);
	if (!is_all_sent(exchange) && (waits[0].revents & POLLOUT))
		err = send_some(worker, exchange);
	if (!err && (waits[0].revents & (POLLIN | POLLHUP | POLLERR)))
		err = receive_some(worker, exchange);
	if (err || is_all_received(exchange))
		return err;
	if (is_hung(worker, exchange, exchange->sent + exchange->received != moved || (waits[1].revents & POLLIN)))
		return -ETIME;
	return is_overdue(worker, exchange) ? -ETIMEDOUT : 0;
}

/* Ends the worker, and reports why the exchange failed. */
static int give_up(struct worker *worker, const struct exchange *exchange, int err, struct diag *diag)
{
	int signo = err == -EPIPE || err == -ECONNRESET ? end_of_dead(worker) : end(worker);

	switch (err) {
	case -EPIPE:
	case -ECONNRESET:
		if (signo == SIGSYS)
			return diag_errno(diag, ECHILD, "its reader exceeded its rights and was stopped");
		return diag_errno(diag, ECHILD, "what reads it has crashed%s%s", signo ? ": " : "", signo ? strsignal(signo) : "");
	case -ETIMEDOUT:
		return diag_errno(diag, ETIMEDOUT, "reading it takes more than %.3g s",
				  (double)exchange->request.max_cpu_ns / (double)NS_PER_S);
	case -ETIME:
		return diag_errno(diag, ETIME, "its file system does not answer");
	}
	return diag_errno(diag, -err, "its answer cannot be used: %s", strerror(-err));
}

void worker_set_nice(struct worker *worker, int nice)
{
	if (worker->helper.pid)
		priority_set(worker->helper.pid, nice);
}

/* A worker's status is untrusted. Codes that would mean an error of our own, which ends more than a request, or a request in progress, are
 * replaced. */
static int status_err(int status)
{
	switch (status) {
	case -ENOMEM:
		return -ENOBUFS;
	case -ELOOP:
	case -EINPROGRESS:
	case -ETIME:
	case -EDQUOT:
	case -EXFULL:
		return -EBADMSG;
	}
	return status;
}

static void close_copies(struct exchange *exchange)
{
	for (uint32_t i = 0; i < exchange->request.nr_fds; i++)
		close(exchange->fds[i]);
	exchange->request.nr_fds = 0;
}

static int copy_fds(struct exchange *exchange, const struct worker_request *request)
{
	exchange->request.nr_fds = 0;
	exchange->request.fds = exchange->fds;
	for (uint32_t i = 0; i < request->nr_fds; i++) {
		int fd = fcntl(request->fds[i], F_DUPFD_CLOEXEC, 0), err = errno;

		if (fd < 0) {
			close_copies(exchange);
			return -err;
		}
		exchange->fds[exchange->request.nr_fds++] = fd;
	}
	return 0;
}

int worker_begin(struct worker *worker, const struct worker_request *request, struct diag *diag, struct buffer *answer)
{
	struct exchange *exchange = &worker->exchange;
	uint32_t owner = request->has_earlier ? worker->has_read : READ_OWNER_OURS;
	int err;

	if (clock_is_past(request->cancel_ns))
		return -ECANCELED;
	for (uint32_t i = 0; i < request->nr_fds; i++)
		owner = read_owner_join(owner, request->fds[i]);
	if (request->has_earlier && owner == READ_OWNER_MANY)
		return diag_errno(diag, EPERM, "its files are of several users");
	if (!read_owner_may_read(worker->has_read, owner))
		end(worker);
	err = worker_start(worker, diag);
	if (err)
		return err;
	worker->has_read = owner;
	*exchange = (struct exchange){
		.request = *request,
		.sending = { .kind = request->kind, .payload_bytes = request->payload_bytes },
		.answer = answer,
	};
	err = copy_fds(exchange, request);
	if (err)
		return diag_errno(diag, -err, "it cannot be handed on: %s", strerror(-err));
	worker->is_asked = true;
	return 0;
}

/* Starts the request's time. */
static void begin_time(struct worker *worker, struct exchange *exchange)
{
	exchange->end_ns = clock_ns() + 3 * exchange->request.max_cpu_ns;
	exchange->begin_cpu_ns = cpu_ns(worker);
}

static void end_exchange(struct worker *worker)
{
	worker->cost_ns = worker->exchange.end_ns ? look_at_cpu(worker, &worker->exchange) : 0;
	close_copies(&worker->exchange);
	worker->is_asked = false;
}

int worker_poll(struct worker *worker, int wait_ms, struct diag *diag)
{
	struct exchange *exchange = &worker->exchange;
	int err = 0;

	if (clock_is_past(exchange->request.cancel_ns)) {
		worker_cancel(worker);
		return -ECANCELED;
	}
	if (!worker->is_ready) {
		err = await_ready(worker, wait_ms, diag);
		if (err && err != -EINPROGRESS)
			end_exchange(worker);
		return err ? err : -EINPROGRESS;
	}
	if (!exchange->end_ns)
		begin_time(worker, exchange);
	err = step(worker, exchange, wait_ms);
	if (!err && !is_all_received(exchange))
		return -EINPROGRESS;
	end_exchange(worker);
	if (err)
		return give_up(worker, exchange, err, diag);
	err = status_err(exchange->receiving.status);
	return err && exchange->text[0] ? diag_errno(diag, -err, "%s", exchange->text) : err;
}

int worker_ask(struct worker *worker, const struct worker_request *request, struct diag *diag, struct buffer *answer)
{
	int err = worker_begin(worker, request, diag, answer);

	if (err)
		return err;
	do
		err = worker_poll(worker, LOOK_MS, diag);
	while (err == -EINPROGRESS);
	return err;
}

void worker_cancel(struct worker *worker)
{
	if (worker->is_asked)
		end_exchange(worker);
	end(worker);
}

uint64_t worker_cost_ns(const struct worker *worker)
{
	return worker->cost_ns;
}
