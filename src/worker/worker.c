// SPDX-License-Identifier: Apache-2.0
#include "worker/worker.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/clock.h"
#include "base/priority.h"
#include "base/spawn.h"
#include "worker/opening.h"
#include "worker/serve.h"

#define LOOK_MS 50
#define START_NS 10000000000u
#define MAX_TEXT_BYTES 400u
#define PIECE_BYTES ((size_t)256 << 10)

struct worker {
	char *program, *word, memory[24]; /* word: may be NULL */
	struct helper helper;
	int asked_fd;
	bool is_ready;      /* it has said so */
	bool was_ready;     /* it, or one before it */
	bool is_hopeless;   /* the program is no worker: it is not started again */
};

/* A question on its way and its answer. */
struct exchange {
	const struct worker_question *question;
	struct wire_header sending, receiving;
	size_t sent, received;   /* with the headers */
	uint64_t end_ns, end_cpu_ns;
	struct buffer *answer;
	size_t answer_at;        /* where in the buffer it begins */
	char text[MAX_TEXT_BYTES + 1];
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
	worker->is_ready = false;
	return spawn_end(&worker->helper);
}

/* The same of a worker that has closed its socket; a moment passes between that and its end. */
static int end_of_dead(struct worker *worker)
{
	for (int i = 0; i < 100 && !spawn_has_ended(&worker->helper); i++)
		poll(NULL, 0, 10);
	return end(worker);
}

static int start(struct worker *worker, struct diag *diag)
{
	char *argv[] = { WORKER_NAME, worker->memory, worker->word, NULL };

	return spawn_helper(&(struct spawn_options){ .program = worker->program, .argv = argv, .socket_type = SOCK_STREAM }, diag, &worker->helper);
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
	end(worker);
	free(worker->program);
	free(worker->word);
	free(worker);
}

static int no_worker(const char *how, struct diag *diag)
{
	return diag_errno(diag, ELOOP, "the worker that reads files did not start%s%s: it is this program once more, whose main must ask sonde_is_worker first", how[0] ? ", but ended by: " : "", how);
}

/* It has closed its socket, or said nothing for long, before it was ready. */
static int give_up_start(struct worker *worker, struct diag *diag)
{
	int signo = end_of_dead(worker);

	if (worker->was_ready)
		return diag_errno(diag, ECHILD, "the worker that reads files did not start again");
	worker->is_hopeless = true;
	return no_worker(signo && signo != SIGKILL ? strsignal(signo) : "", diag);
}

/* Its first message, with the descriptor at which it asks. */
static int get_ready(struct worker *worker, struct diag *diag)
{
	struct wire_header ready = { 0 };
	struct wire_fds fds = { .nr = 0 };
	uint64_t end_ns = clock_ns() + START_NS;
	size_t at = 0;

	while (at < sizeof(ready)) {
		struct pollfd wait = { .fd = worker->helper.socket, .events = POLLIN };
		ssize_t got = -EAGAIN;

		if (poll(&wait, 1, LOOK_MS) > 0)
			got = wire_receive(worker->helper.socket, (char *)&ready + at, sizeof(ready) - at, &fds, MSG_DONTWAIT);
		if (got > 0)
			at += (size_t)got;
		if ((got < 0 && got != -EAGAIN) || clock_ns() > end_ns) {
			wire_fds_close(&fds);
			return give_up_start(worker, diag);
		}
	}
	if (fds.nr)
		worker->asked_fd = fds.fds[--fds.nr];
	wire_fds_close(&fds);
	worker->is_ready = !ready.status;
	worker->was_ready |= worker->is_ready;
	if (ready.status) {
		end(worker);
		return diag_errno(diag, -ready.status, "the worker that reads files cannot be shut in: %s", strerror(-ready.status));
	}
	return 0;
}

int worker_ready(struct worker *worker, struct diag *diag)
{
	int err;

	if (worker->is_hopeless)
		return no_worker("", diag);
	err = worker->helper.pid ? 0 : start(worker, diag);
	return err || worker->is_ready ? err : get_ready(worker, diag);
}

/* --- an exchange ----------------------------------------------------------------------------------------------------------------------- */

static int send_some(struct worker *worker, struct exchange *exchange)
{
	const struct worker_question *question = exchange->question;
	struct wire_fds fds = { .nr = question->nr_fds };
	bool in_header = exchange->sent < sizeof(exchange->sending);
	size_t at = exchange->sent - (in_header ? 0 : sizeof(exchange->sending));
	ssize_t sent;

	for (uint32_t i = 0; i < fds.nr; i++)
		fds.fds[i] = question->fds[i];
	if (in_header)
		sent = wire_send(worker->helper.socket, (char *)&exchange->sending + at, sizeof(exchange->sending) - at, at ? NULL : &fds, MSG_DONTWAIT);
	else
		sent = wire_send(worker->helper.socket, (const char *)question->body + at, question->body_bytes - at, NULL, MSG_DONTWAIT);
	if (sent > 0)
		exchange->sent += (size_t)sent;
	return sent < 0 && sent != -EAGAIN ? (int)sent : 0;
}

static bool is_all_sent(const struct exchange *exchange)
{
	return exchange->sent == sizeof(exchange->sending) + exchange->question->body_bytes;
}

static bool is_all_received(const struct exchange *exchange)
{
	return exchange->received >= sizeof(exchange->receiving) && exchange->received - sizeof(exchange->receiving) == exchange->receiving.body_bytes;
}

/* Once the header is there: an answer needs room, a failure is a short text. */
static int make_room(struct exchange *exchange)
{
	uint64_t size = exchange->receiving.body_bytes;

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
		uint64_t left = exchange->receiving.body_bytes - (at - header_bytes);

		got = wire_receive(worker->helper.socket, to + (at - header_bytes), left < PIECE_BYTES ? left : PIECE_BYTES, NULL, MSG_DONTWAIT);
	}
	if (got == -EAGAIN)
		return 0;
	if (got < 0)
		return (int)got;
	exchange->received += (size_t)got;
	return at < header_bytes && exchange->received == header_bytes ? make_room(exchange) : 0;
}

static bool is_overdue(const struct worker *worker, const struct exchange *exchange)
{
	return clock_ns() > exchange->end_ns || cpu_ns(worker) > exchange->end_cpu_ns;
}

static int step(struct worker *worker, struct exchange *exchange)
{
	struct pollfd waits[] = {
		{ .fd = worker->helper.socket, .events = (short)(is_all_sent(exchange) ? POLLIN : POLLIN | POLLOUT) },
		{ .fd = worker->asked_fd, .events = POLLIN },
	};
	int err = 0;

	if (poll(waits, ARRAY_SIZE(waits), LOOK_MS) < 0 && errno != EINTR)
		return -errno;
	if (waits[1].revents & POLLIN)
		opening_answer(worker->asked_fd, exchange->question->open, exchange->question->open_arg);
	if (!is_all_sent(exchange) && (waits[0].revents & POLLOUT))
		err = send_some(worker, exchange);
	if (!err && (waits[0].revents & (POLLIN | POLLHUP | POLLERR)))
		err = receive_some(worker, exchange);
	if (!err && !is_all_received(exchange) && is_overdue(worker, exchange))
		err = -ETIMEDOUT;
	return err;
}

/* What ended the exchange, in words; the worker is not to be asked again. */
static int give_up(struct worker *worker, const struct exchange *exchange, int err, struct diag *diag)
{
	int signo = err == -EPIPE || err == -ECONNRESET ? end_of_dead(worker) : end(worker);

	switch (err) {
	case -EPIPE:
	case -ECONNRESET:
		if (signo == SIGSYS)
			return diag_errno(diag, ECHILD, "what reads it wanted more than it may, and was stopped");
		return diag_errno(diag, ECHILD, "what reads it has crashed%s%s", signo ? ": " : "", signo ? strsignal(signo) : "");
	case -ETIMEDOUT:
		return diag_errno(diag, ETIMEDOUT, "reading it takes more than %" PRIu64 " s", exchange->question->max_cpu_ns / NS_PER_S);
	}
	return diag_errno(diag, -err, "its answer cannot be used: %s", strerror(-err));
}

void worker_set_nice(struct worker *worker, int nice)
{
	if (worker->helper.pid)
		priority_set(worker->helper.pid, nice);
}

/* What a worker says may be anything: it is not taken for what has befallen us, which ends more than a question. */
static int told_err(int status)
{
	return status == -ENOMEM ? -ENOBUFS : status == -ELOOP ? -EBADMSG : status;
}

int worker_ask(struct worker *worker, const struct worker_question *question, struct diag *diag, struct buffer *answer)
{
	struct exchange exchange = {
		.question = question,
		.sending = { .kind = question->kind, .body_bytes = question->body_bytes },
		.answer = answer,
	};
	int err = worker_ready(worker, diag);

	if (err)
		return err;
	exchange.end_ns = clock_ns() + 3 * question->max_cpu_ns;
	exchange.end_cpu_ns = cpu_ns(worker) + question->max_cpu_ns;
	while (!err && !is_all_received(&exchange))
		err = step(worker, &exchange);
	if (err)
		return give_up(worker, &exchange, err, diag);
	err = told_err(exchange.receiving.status);
	return err && exchange.text[0] ? diag_errno(diag, -err, "%s", exchange.text) : err;
}
