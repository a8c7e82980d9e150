// SPDX-License-Identifier: Apache-2.0
#include "naming/jit_keeper.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/pidfd.h>

#include "base/cleanup.h"
#include "base/u64_map.h"
#include "proxy/proxy.h"

#define MAX_KNOWN      4096		/* processes with code that is in no file, in two windows */
#define FIRST_DELAY_NS 1000000000u	/* until a process without files is asked again, and then twice as long each time */
#define MAX_DELAY_NS   16000000000u

struct kept {
	uint32_t tgid;
	int pidfd;
	uint64_t next_ns, delay_ns; /* UINT64_MAX: not any more */
	struct jit_files files;
	bool had_ended; /* when a window ended */
};

struct jit_keeper {
	struct proxy *proxy;
	struct kept *kept;
	struct u64_map by_tgid;
	uint32_t own_tgid, nr_kept, nr_held; /* held: with files */
	uint32_t nr_places;		     /* that were looked at */
};

struct jit_keeper *jit_keeper_new(struct proxy *proxy, uint32_t own_tgid)
{
	struct jit_keeper *keeper = calloc(1, sizeof(*keeper));

	if (!keeper)
		return NULL;
	keeper->own_tgid = own_tgid;
	keeper->proxy = proxy;
	keeper->kept = calloc(MAX_KNOWN, sizeof(*keeper->kept));
	if (!keeper->kept) {
		jit_keeper_free(keeper);
		return NULL;
	}
	return keeper;
}

void jit_keeper_free(struct jit_keeper *keeper)
{
	if (!keeper)
		return;
	for (uint32_t i = 0; i < keeper->nr_kept; i++) {
		jit_files_done(&keeper->kept[i].files);
		closep(&keeper->kept[i].pidfd);
	}
	free(keeper->kept);
	u64_map_done(&keeper->by_tgid);
	free(keeper);
}

/* What cannot be kept is looked for at the report, as if nobody had been here. */
static void know(struct jit_keeper *keeper, uint32_t tgid)
{
	struct kept *kept = &keeper->kept[keeper->nr_kept];

	if (keeper->nr_kept == MAX_KNOWN || u64_map_find(&keeper->by_tgid, tgid) || u64_map_add(&keeper->by_tgid, tgid, keeper->nr_kept))
		return;
	*kept = (struct kept){ .tgid = tgid, .pidfd = pidfd_open((pid_t)tgid, 0), .delay_ns = FIRST_DELAY_NS };
	if (kept->pidfd < 0)
		kept->next_ns = UINT64_MAX;
	keeper->nr_kept++;
}

static bool has_ended(const struct kept *kept)
{
	struct pollfd poll_fd = { .fd = kept->pidfd, .events = POLLIN };

	return kept->pidfd < 0 || poll(&poll_fd, 1, 0) != 0;
}

static void look_for_files(struct jit_keeper *keeper, struct kept *kept, uint64_t now_ns)
{
	struct jit_files files;

	kept->next_ns = UINT64_MAX;
	if (keeper->nr_held == JIT_KEEPER_MAX_PROCESSES || has_ended(kept))
		return;
	jit_files_open(keeper->proxy, kept->tgid, kept->tgid == keeper->own_tgid, &files);
	if (has_ended(kept)) { /* then another may have been asked */
		jit_files_done(&files);
		return;
	}
	kept->files = files;
	keeper->nr_held += files.nr != 0;
	if (files.nr)
		return;
	kept->next_ns = now_ns + kept->delay_ns;
	kept->delay_ns = kept->delay_ns < MAX_DELAY_NS ? 2 * kept->delay_ns : MAX_DELAY_NS;
}

void jit_keeper_step(struct jit_keeper *keeper, const struct place_table *places, uint64_t now_ns)
{
	uint32_t nr = place_nr(places);

	for (; keeper->nr_places < nr; keeper->nr_places++) {
		const struct place *place = place_at(places, keeper->nr_places);

		if (place->tgid && !place->in_elf)
			know(keeper, place->tgid);
	}
	for (uint32_t i = 0; i < keeper->nr_kept; i++)
		if (keeper->kept[i].next_ns <= now_ns)
			look_for_files(keeper, &keeper->kept[i], now_ns);
}

bool jit_keeper_copy(const struct jit_keeper *keeper, uint32_t tgid, struct jit_files *ret_files)
{
	const uint32_t *number = u64_map_find(&keeper->by_tgid, tgid);
	const struct kept *kept = number ? &keeper->kept[*number] : NULL;

	if (!kept || !kept->files.nr || !has_ended(kept))
		return false;
	*ret_files = kept->files;
	for (uint32_t i = 0; i < ret_files->nr; i++)
		ret_files->fds[i] = fcntl(kept->files.fds[i], F_DUPFD_CLOEXEC, 0);
	return true;
}

static void forget(struct jit_keeper *keeper, uint32_t number)
{
	struct kept *kept = &keeper->kept[number];

	u64_map_remove(&keeper->by_tgid, kept->tgid, number);
	keeper->nr_held -= kept->files.nr != 0;
	jit_files_done(&kept->files);
	closep(&kept->pidfd);
	*kept = keeper->kept[--keeper->nr_kept];
	if (number < keeper->nr_kept)
		*u64_map_find(&keeper->by_tgid, kept->tgid) = number;
}

void jit_keeper_end_window(struct jit_keeper *keeper)
{
	keeper->nr_places = 0;
	for (uint32_t i = keeper->nr_kept; i-- > 0;) {
		bool had_ended = keeper->kept[i].had_ended;

		keeper->kept[i].had_ended = has_ended(&keeper->kept[i]);
		if (had_ended)
			forget(keeper, i);
	}
}
