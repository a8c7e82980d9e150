// SPDX-License-Identifier: Apache-2.0
#include "engine/target.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/number.h"

void targets_done(struct targets *targets)
{
	free(targets->list);
	*targets = (struct targets){ 0 };
}

struct status { /* of a process or thread; all 0: there is none */
	uint64_t tgid, nr_threads;
	bool has_ended; /* the thread with that id */
};

static struct status read_status(uint32_t id)
{
	struct status status = { 0 };
	char path[64], line[256];
	CLEANUP(fclosep) FILE *file = NULL;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/status", id);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		if (!strncmp(line, "State:\t", 7))
			status.has_ended = line[7] == 'Z' || line[7] == 'X';
		if (!strncmp(line, "Tgid:\t", 6) && number_u64(line + 6, UINT32_MAX, &status.tgid))
			return (struct status){ 0 };
		if (!strncmp(line, "Threads:\t", 9) && number_u64(line + 9, UINT32_MAX, &status.nr_threads))
			return (struct status){ 0 };
	}
	return status;
}

/* The process of a process or thread id; 0: no such id, or it has ended. A process whose first thread has ended lives on in the others. */
static uint32_t tgid_of(uint32_t id, bool is_thread)
{
	struct status status = read_status(id);

	return status.has_ended && (is_thread || status.nr_threads < 2) ? 0 : (uint32_t)status.tgid;
}

bool target_lost_first_thread(uint32_t tgid)
{
	struct status status = read_status(tgid);

	return status.has_ended && status.nr_threads >= 2;
}

static int find(const uint32_t *ids, uint32_t nr, bool threads, struct diag *diag, struct targets *ret_targets)
{
	CLEANUP(targets_done) struct targets targets = { .list = calloc(nr, sizeof(*targets.list)) };

	if (!targets.list)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t tgid;

		errno = 0;
		tgid = tgid_of(ids[i], threads);
		if (!tgid && (errno == EMFILE || errno == ENFILE))
			return diag_errno(diag, errno, "cannot read /proc: %s", strerror(errno));
		if (!tgid)
			return diag_errno(diag, ESRCH, "there is no %s %" PRIu32 " (has it ended? 'ps -eLf' lists what runs)",
					  threads ? "thread" : "process", ids[i]);
		if (!threads && tgid != ids[i])
			return diag_errno(diag, EINVAL,
					  "%" PRIu32 " is a thread of process %" PRIu32 ": use -L %" PRIu32
					  " for the thread, or -p %" PRIu32 " for the process",
					  ids[i], tgid, ids[i], tgid);
		targets.list[targets.nr++] = (struct target){ .tgid = tgid, .tid = threads ? ids[i] : 0 };
	}
	*ret_targets = targets;
	targets.list = NULL;
	return 0;
}

int targets_of_tgids(const uint32_t *tgids, uint32_t nr, struct diag *diag, struct targets *ret_targets)
{
	return find(tgids, nr, false, diag, ret_targets);
}

int targets_of_tids(const uint32_t *tids, uint32_t nr, struct diag *diag, struct targets *ret_targets)
{
	return find(tids, nr, true, diag, ret_targets);
}

const struct target *targets_living(const struct targets *targets)
{
	for (uint32_t i = 0; i < targets->nr; i++) {
		const struct target *target = &targets->list[i];

		if (tgid_of(target->tid ? target->tid : target->tgid, target->tid) == target->tgid)
			return target;
	}
	return NULL;
}
