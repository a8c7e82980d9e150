// SPDX-License-Identifier: Apache-2.0
#include "parse/audit_pool.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>

#include "audit/audit_serve.h"
#include "base/clock.h"
#include "base/u64_map.h"
#include "parse/file_budget.h"
#include "parse/file_fd.h"
#include "parse/file_owner.h"
#include "worker/read_owner.h"
#include "worker/worker.h"

#define NR_SLOTS 3 /* the first for root's files only */
#define MAX_WORKER_BYTES ((uint64_t)256 << 20)
#define MAX_QUEUE_BYTES ((size_t)8 << 20)  /* of one worker's batches */
#define MAX_FAILED 64                      /* processes that are remembered */
#define MAX_TOLD 4
#define TENURE_NS (200 * NS_PER_MS)        /* a worker stays with one owner at least this long */
#define REST_NS NS_PER_S                   /* after a failure */
#define USUAL_NS (500 * NS_PER_US)         /* of a stack, not charged: most take a tenth of it */
#define FAILURE_NS (100 * NS_PER_MS)       /* the least charge for a failure */

static const struct file_budget_limits limits = { .owner_ns = 3 * NS_PER_S, .total_ns = 10 * NS_PER_S };

struct slot {
	struct worker *worker;      /* NULL: not needed yet */
	uint32_t owner;             /* as worker/read_owner.h has it */
	uint64_t since_ns, rests_until_ns;
	struct audit_batch *first, *last;
	size_t bytes;               /* of the batches */
	bool is_asked;              /* the first batch was sent */
	/* for the first batch: the untrusted owner who is charged; the file system that may hang */
	struct file_owner charged, remote;
	uint32_t culprit;           /* the file named in a note on a failure */
	struct u64_map has;         /* numbers of the files that the worker has */
	struct buffer answers;
};

struct failed {
	uint32_t tgid, generation;
};

struct audit_pool {
	struct audit_pool_options options;
	char *program;
	int nice;
	struct slot slots[NR_SLOTS];
	struct file_owners *owners;
	struct file_budget *budget;
	struct failed failed[MAX_FAILED]; /* processes whose stacks made a worker fail */
	uint32_t nr_failed, nr_told;
};

int audit_pool_new(const struct audit_pool_options *options, struct diag *diag, struct audit_pool **ret_pool)
{
	CLEANUP(audit_pool_freep) struct audit_pool *pool = calloc(1, sizeof(*pool));
	int err;

	if (!pool)
		return -ENOMEM;
	pool->options = *options;
	pool->program = strdup(options->program);
	pool->owners = file_owners_new();
	pool->budget = file_budget_new(limits);
	if (!pool->program || !pool->owners || !pool->budget)
		return -ENOMEM;
	err = worker_new(pool->program, MAX_WORKER_BYTES, diag, &pool->slots[0].worker);
	if (!err)
		*ret_pool = MOVE(pool);
	return err;
}

/* Removes the first batch. */
static void pop(struct audit_pool *pool, struct slot *slot, struct reader *answers, enum audit_reason reason)
{
	struct audit_batch *batch = slot->first;

	slot->first = batch->next;
	if (!slot->first)
		slot->last = NULL;
	slot->bytes -= audit_batch_bytes(batch);
	slot->is_asked = false;
	pool->options.done(pool->options.arg, batch, answers, reason);
	audit_batch_free(batch);
}

void audit_pool_free(struct audit_pool *pool)
{
	if (!pool)
		return;
	for (uint32_t i = 0; i < NR_SLOTS; i++) {
		struct slot *slot = &pool->slots[i];

		worker_free(slot->worker);
		while (slot->first)
			pop(pool, slot, NULL, AUDIT_REASON_NO_ANSWER);
		u64_map_done(&slot->has);
		buffer_done(&slot->answers);
	}
	file_budget_free(pool->budget);
	file_owners_free(pool->owners);
	free(pool->program);
	free(pool);
}

void audit_pool_set_nice(struct audit_pool *pool, int nice)
{
	pool->nice = nice;
	for (uint32_t i = 0; i < NR_SLOTS; i++) {
		if (pool->slots[i].worker)
			worker_set_nice(pool->slots[i].worker, nice);
	}
}

/* --- who may be asked ----------------------------------------------------------------------------------------------------------------- */

static bool has_failed(const struct audit_pool *pool, uint32_t tgid, uint32_t generation)
{
	uint32_t nr = pool->nr_failed < MAX_FAILED ? pool->nr_failed : MAX_FAILED, i = 0;

	while (i < nr && (pool->failed[i].tgid != tgid || pool->failed[i].generation != generation))
		i++;
	return i < nr;
}

static uint32_t owner_of(const struct audit_pool *pool, const struct audit_request *request)
{
	uint32_t owner = READ_OWNER_OURS;

	for (uint32_t i = 0; i < request->nr_files; i++) {
		const struct elf_file *elf = object_table_at(pool->options.objects, request->files[i])->elf;

		if (elf)
			owner = read_owner_join_uid(owner, elf_file_owner(elf));
	}
	return owner;
}

/* Restarts the worker, without files. */
static void empty(struct slot *slot)
{
	if (slot->worker)
		worker_cancel(slot->worker);
	u64_map_done(&slot->has);
}

/* The owner's slot, or one that is idle and has not just changed hands. NULL: there is none. */
static struct slot *slot_of(struct audit_pool *pool, uint32_t owner, uint64_t now)
{
	struct slot *found = NULL;

	if (owner == READ_OWNER_OURS)
		return &pool->slots[0];
	for (uint32_t i = 1; i < NR_SLOTS; i++) {
		struct slot *slot = &pool->slots[i];

		if (slot->owner == owner)
			return slot;
		if (!slot->first && now - slot->since_ns >= TENURE_NS && (!found || slot->since_ns < found->since_ns))
			found = slot;
	}
	if (!found)
		return NULL;
	empty(found);
	found->owner = owner;
	found->since_ns = now;
	found->rests_until_ns = 0;
	return found;
}

/* --- a request and its answers -------------------------------------------------------------------------------------------------------- */

static void tell(struct audit_pool *pool, const struct slot *slot, int err, const struct diag *diag)
{
	const char *path = slot->culprit != OBJECT_NONE ? object_table_at(pool->options.objects, slot->culprit)->path : "";

	if (pool->nr_told++ < MAX_TOLD)
		account_note(pool->options.account, "audit: process %" PRIu32 " (%s): %s", slot->first->tgid, path,
			     diag->text[0] ? diag->text : strerror(-err));
}

/* The worker has ended, or its answer is invalid. */
static void fail(struct audit_pool *pool, struct slot *slot, int err, const struct diag *diag)
{
	uint64_t cost_ns = slot->is_asked ? worker_cost_ns(slot->worker) : 0;

	tell(pool, slot, err, diag);
	pool->failed[pool->nr_failed++ % MAX_FAILED] = (struct failed){ slot->first->tgid, slot->first->generation };
	file_budget_spend(pool->budget, &slot->charged, cost_ns > FAILURE_NS ? cost_ns : FAILURE_NS);
	if (err == -ETIME)
		file_budget_hang(pool->budget, &slot->remote);
	empty(slot);
	slot->rests_until_ns = clock_ns() + REST_NS;
	pop(pool, slot, NULL, AUDIT_REASON_NO_ANSWER);
}

static void take_answers(struct audit_pool *pool, struct slot *slot)
{
	const struct audit_batch *batch = slot->first;
	uint64_t usual_ns = batch->nr_stacks * USUAL_NS, cost_ns = worker_cost_ns(slot->worker);
	struct reader answers;
	int err = audit_answers_open(slot->answers.data, slot->answers.size, batch->nr_stacks, &answers);

	if (err) {
		fail(pool, slot, err, &(struct diag){ .text = "what libdw's process says is not sound" });
		return;
	}
	file_budget_spend(pool->budget, &slot->charged, cost_ns > usual_ns ? cost_ns - usual_ns : 0);
	pop(pool, slot, &answers, AUDIT_REASON_COUNT);
}

/* The files that the worker does not have yet. */
struct new_files {
	uint32_t numbers[WIRE_MAX_FDS], nr;
	int fds[WIRE_MAX_FDS], own[WIRE_MAX_FDS]; /* own: to be closed */
};

static void close_own(struct new_files *files)
{
	for (uint32_t i = 0; i < files->nr; i++)
		closep(&files->own[i]);
}

static void add_file(struct audit_pool *pool, struct slot *slot, uint32_t number, struct new_files *files)
{
	const struct elf_file *elf = object_table_at(pool->options.objects, number)->elf;
	struct file_owner owner;
	int fd, own = -1;

	if (!elf)
		return;
	owner = file_owner_of(pool->owners, elf_file_fd(elf));
	if (read_owner_join_uid(slot->owner, owner.uid) != slot->owner) /* the file has changed hands meanwhile */
		return;
	if (!owner.is_trusted && slot->charged.is_trusted) {
		slot->charged = owner;
		slot->culprit = number;
	}
	if (!owner.is_local)
		slot->remote = owner;
	if (u64_map_find(&slot->has, number))
		return;
	fd = file_fd_of(elf, &own);
	if (fd < 0) {
		closep(&own);
		return;
	}
	files->numbers[files->nr] = number;
	files->own[files->nr] = own;
	files->fds[files->nr++] = fd;
}

static int note_files(struct slot *slot, const struct new_files *files)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < files->nr; i++)
		err = u64_map_add(&slot->has, files->numbers[i], 1);
	return err;
}

static int begin(struct audit_pool *pool, struct slot *slot, struct diag *diag)
{
	CLEANUP(close_own) struct new_files files = { .nr = 0 };
	struct audit_batch *batch = slot->first;
	struct worker_request request = {
		.kind = pool->options.kind, .fds = files.fds, .has_earlier = true, .max_cpu_ns = pool->options.max_cpu_ns
	};
	uint64_t left_ns, usual_ns = batch->nr_stacks * USUAL_NS;
	int err;

	slot->charged = slot->remote = (struct file_owner){ .is_trusted = true, .is_local = true };
	slot->culprit = batch->nr_files ? batch->files[0] : OBJECT_NONE;
	err = slot->worker ? 0 : worker_new(pool->program, MAX_WORKER_BYTES, diag, &slot->worker);
	if (err)
		return err;
	if (slot->has.nr_used + batch->nr_files > AUDIT_SERVE_MAX_FILES)
		empty(slot);
	for (uint32_t i = 0; i < batch->nr_files; i++)
		add_file(pool, slot, batch->files[i], &files);
	left_ns = file_budget_left(pool->budget, &slot->charged, diag);
	if (!left_ns || !file_budget_left(pool->budget, &slot->remote, diag))
		return -EDQUOT;
	if (left_ns < request.max_cpu_ns - usual_ns)
		request.max_cpu_ns = left_ns + usual_ns;
	request.max_idle_ns = file_owner_idle_ns(&slot->remote);
	audit_batch_tell_files(batch, files.numbers, files.nr);
	request.nr_fds = files.nr;
	request.body = batch->request.data;
	request.payload_bytes = batch->request.size;
	slot->answers.size = 0;
	slot->answers.max = batch->nr_stacks * AUDIT_ANSWER_MAX_BYTES;
	err = worker_begin(slot->worker, &request, diag, &slot->answers);
	if (!err && !slot->has.nr_used && pool->nice)
		worker_set_nice(slot->worker, pool->nice);
	slot->is_asked = !err;
	return err ? err : note_files(slot, &files);
}

/* Sends the next request, if there is one. */
static int begin_next(struct audit_pool *pool, struct slot *slot)
{
	int err = 0;

	while (!err && slot->first && !slot->is_asked && clock_ns() >= slot->rests_until_ns) {
		struct diag diag = { 0 };

		if (has_failed(pool, slot->first->tgid, slot->first->generation)) {
			pop(pool, slot, NULL, AUDIT_REASON_NOT_ASKED);
			continue;
		}
		err = begin(pool, slot, &diag);
		if (err == -EDQUOT) {
			if (diag.err)
				tell(pool, slot, err, &diag);
			pop(pool, slot, NULL, AUDIT_REASON_NOT_ASKED);
			err = 0;
		} else if (err && err != -ENOMEM) {
			fail(pool, slot, err, &diag);
			err = 0;
		}
	}
	return err;
}

static int step(struct audit_pool *pool, struct slot *slot)
{
	int err = begin_next(pool, slot);

	while (!err && slot->is_asked) {
		struct diag diag = { 0 };

		err = worker_poll(slot->worker, 0, &diag);
		if (err == -EINPROGRESS || err == -ENOMEM)
			break;
		if (err)
			fail(pool, slot, err, &diag);
		else
			take_answers(pool, slot);
		err = begin_next(pool, slot);
	}
	return err == -EINPROGRESS ? 0 : err;
}

int audit_pool_step(struct audit_pool *pool, bool *ret_is_busy)
{
	int err = 0;

	*ret_is_busy = false;
	for (uint32_t i = 0; !err && i < NR_SLOTS; i++) {
		err = step(pool, &pool->slots[i]);
		*ret_is_busy |= pool->slots[i].is_asked;
	}
	return err;
}

int audit_pool_finish(struct audit_pool *pool, uint64_t max_ns)
{
	uint64_t end_ns = clock_ns() + max_ns;
	bool is_busy;
	int err;

	for (uint32_t i = 0; i < NR_SLOTS; i++)
		pool->slots[i].rests_until_ns = 0;
	err = audit_pool_step(pool, &is_busy);
	while (!err && is_busy && clock_ns() < end_ns) {
		poll(NULL, 0, 1);
		err = audit_pool_step(pool, &is_busy);
	}
	for (uint32_t i = 0; i < NR_SLOTS; i++) {
		struct slot *slot = &pool->slots[i];

		if (slot->is_asked)
			empty(slot);
		while (slot->first)
			pop(pool, slot, NULL, AUDIT_REASON_NO_ANSWER);
	}
	return err;
}

/* --- the queue ------------------------------------------------------------------------------------------------------------------------ */

static struct audit_batch *batch_for(struct slot *slot, const struct audit_request *request)
{
	struct audit_batch *batch = slot->is_asked ? slot->first->next : slot->first;

	while (batch && !audit_batch_takes(batch, request))
		batch = batch->next;
	if (batch)
		return batch;
	batch = audit_batch_new(request);
	if (!batch)
		return NULL;
	if (slot->last)
		slot->last->next = batch;
	else
		slot->first = batch;
	slot->last = batch;
	slot->bytes += audit_batch_bytes(batch);
	return batch;
}

bool audit_pool_is_crowded(const struct audit_pool *pool)
{
	bool is_crowded = false;

	for (uint32_t i = 0; i < NR_SLOTS; i++)
		is_crowded |= pool->slots[i].bytes > MAX_QUEUE_BYTES / 2;
	return is_crowded;
}

int audit_pool_add(struct audit_pool *pool, const struct audit_request *request)
{
	uint32_t owner = owner_of(pool, request);
	struct audit_batch *batch;
	struct slot *slot;
	int err;

	if (owner == READ_OWNER_MANY || has_failed(pool, request->record->tgid, request->generation))
		return -EPERM;
	slot = slot_of(pool, owner, clock_ns());
	if (!slot || slot->bytes + audit_request_bytes(request) > MAX_QUEUE_BYTES)
		return -EAGAIN;
	batch = batch_for(slot, request);
	if (!batch)
		return -ENOMEM;
	slot->bytes -= audit_batch_bytes(batch);
	err = audit_batch_add(batch, request);
	slot->bytes += audit_batch_bytes(batch);
	return err;
}
