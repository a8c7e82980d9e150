// SPDX-License-Identifier: Apache-2.0
#include "parse/background.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"

#define NR_WORKERS   2
#define WAIT_NS      (20 * NS_PER_MS)  /* for one request; a common file's table takes a few ms */
#define MAX_WAITS_NS (200 * NS_PER_MS) /* at once, for all requests */
#define WAITS_SHARE  20                /* of the run, later: a twentieth */

struct slot {
	struct worker *worker; /* NULL: not needed yet */
	struct file_owner owner; /* of the files it read last */
	bool is_asked;
	uint32_t object, kind;
	struct buffer answer;
};

struct background {
	char *program;
	uint64_t max_worker_bytes;
	struct slot slots[NR_WORKERS];
	uint64_t left_ns, left_at_ns; /* time left for waiting, and when that was computed */
};

struct background *background_new(const char *program, uint64_t max_worker_bytes)
{
	struct background *background = calloc(1, sizeof(*background));

	if (!background)
		return NULL;
	background->program = strdup(program);
	background->max_worker_bytes = max_worker_bytes;
	background->left_ns = MAX_WAITS_NS;
	background->left_at_ns = clock_ns();
	if (!background->program) {
		free(background);
		return NULL;
	}
	return background;
}

void background_free(struct background *background)
{
	if (!background)
		return;
	for (uint32_t i = 0; i < NR_WORKERS; i++) {
		worker_free(background->slots[i].worker);
		buffer_done(&background->slots[i].answer);
	}
	free(background->program);
	free(background);
}

/* NR_WORKERS: it was not sent. */
static uint32_t find(const struct background *background, uint32_t object, uint32_t kind)
{
	uint32_t i = 0;

	while (i < NR_WORKERS &&
	       !(background->slots[i].is_asked && background->slots[i].object == object && background->slots[i].kind == kind))
		i++;
	return i;
}

bool background_has(const struct background *background, uint32_t object, uint32_t kind)
{
	return find(background, object, kind) < NR_WORKERS;
}

/* A slot for the owner's next request: the worker that read this owner's files before, otherwise a free one. NULL: the owner has a request
 * in progress, or no worker is free. */
static struct slot *find_free(struct background *background, const struct file_owner *owner)
{
	struct slot *found = NULL;

	for (uint32_t i = 0; i < NR_WORKERS; i++) {
		struct slot *slot = &background->slots[i];
		bool is_his = slot->worker && file_owner_is_same(&slot->owner, owner);

		if (is_his)
			return slot->is_asked ? NULL : slot;
		if (!slot->is_asked && (!found || !slot->worker))
			found = slot;
	}
	return found;
}

static int begin(struct background *background, struct slot *slot, const struct background_request *asked, struct diag *diag)
{
	int err = 0;

	if (slot->worker && !file_owner_is_same(&slot->owner, &asked->owner))
		worker_cancel(slot->worker);
	if (!slot->worker)
		err = worker_new(background->program, background->max_worker_bytes, diag, &slot->worker);
	if (err)
		return err;
	slot->owner = asked->owner;
	slot->object = asked->object;
	slot->kind = asked->request.kind;
	slot->answer = BUFFER_INIT(asked->max_answer_bytes);
	err = worker_begin(slot->worker, &asked->request, diag, &slot->answer);
	slot->is_asked = !err;
	return err;
}

static uint64_t left_ns(struct background *background)
{
	uint64_t now = clock_ns(), more = (now - background->left_at_ns) / WAITS_SHARE;

	background->left_at_ns = now;
	background->left_ns = more < MAX_WAITS_NS - background->left_ns ? background->left_ns + more : MAX_WAITS_NS;
	return background->left_ns;
}

bool background_may_wait(struct background *background)
{
	return left_ns(background) >= NS_PER_MS;
}

static int wait_for(struct background *background, struct slot *slot, struct diag *diag)
{
	uint64_t left = left_ns(background), from_ns = clock_ns(), end_ns = from_ns + (left < WAIT_NS ? left : WAIT_NS), now = from_ns;
	int err;

	do {
		err = worker_poll(slot->worker, (int)((end_ns - now) / NS_PER_MS), diag);
		now = clock_ns();
	} while (err == -EINPROGRESS && now + NS_PER_MS < end_ns);
	now -= from_ns;
	background->left_ns -= now < left ? now : left;
	return err;
}

int background_ask(struct background *background, struct background_request *asked, struct diag *diag, struct buffer *answer)
{
	uint32_t number = find(background, asked->object, asked->request.kind);
	struct slot *slot = &background->slots[number];
	int err;

	if (number == NR_WORKERS) {
		slot = find_free(background, &asked->owner);
		err = slot ? begin(background, slot, asked, diag) : -EINPROGRESS;
		if (err)
			return err;
	}
	err = wait_for(background, slot, diag);
	if (err == -EINPROGRESS)
		return err;
	asked->cost_ns = worker_cost_ns(slot->worker);
	slot->is_asked = false;
	*answer = slot->answer;
	slot->answer = (struct buffer){ 0 };
	return err;
}

void background_forget(struct background *background, uint32_t object)
{
	for (uint32_t i = 0; i < NR_WORKERS; i++) {
		struct slot *slot = &background->slots[i];

		if (!slot->is_asked || slot->object != object)
			continue;
		worker_cancel(slot->worker);
		slot->is_asked = false;
		buffer_done(&slot->answer);
	}
}
