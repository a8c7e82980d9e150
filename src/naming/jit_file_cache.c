// SPDX-License-Identifier: Apache-2.0
#include "naming/jit_file_cache.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/pidfd.h>

#include "base/cleanup.h"
#include "base/u64_map.h"
#include "proxy/proxy.h"

#define MAX_KNOWN      4096		/* processes with code outside of files, in two windows */
#define FIRST_DELAY_NS 1000000000u	/* until a process without files is looked at again; doubles each time */
#define MAX_DELAY_NS   16000000000u

struct kept {
	uint32_t tgid, number; /* number: jit_files_number's, while it lives */
	int pidfd;
	uint64_t next_ns, delay_ns; /* next_ns UINT64_MAX: never again */
	struct jit_files files;
	bool had_ended; /* at the end of the last window */
};

struct jit_file_cache {
	struct proxy *proxy;
	struct kept *kept;
	struct u64_map by_tgid;
	uint32_t own_tgid, nr_kept, nr_held; /* nr_held: entries with files */
	uint32_t nr_locations;		     /* looked at so far */
};

struct jit_file_cache *jit_file_cache_new(struct proxy *proxy, uint32_t own_tgid)
{
	struct jit_file_cache *cache = calloc(1, sizeof(*cache));

	if (!cache)
		return NULL;
	cache->own_tgid = own_tgid;
	cache->proxy = proxy;
	cache->kept = calloc(MAX_KNOWN, sizeof(*cache->kept));
	if (!cache->kept) {
		jit_file_cache_free(cache);
		return NULL;
	}
	return cache;
}

void jit_file_cache_free(struct jit_file_cache *cache)
{
	if (!cache)
		return;
	for (uint32_t i = 0; i < cache->nr_kept; i++) {
		jit_files_done(&cache->kept[i].files);
		closep(&cache->kept[i].pidfd);
	}
	free(cache->kept);
	u64_map_done(&cache->by_tgid);
	free(cache);
}

/* If there is no room for the process, its files are looked for at the report, as without this cache. */
static void know(struct jit_file_cache *cache, uint32_t tgid)
{
	struct kept *kept = &cache->kept[cache->nr_kept];

	if (cache->nr_kept == MAX_KNOWN || u64_map_find(&cache->by_tgid, tgid) || u64_map_add(&cache->by_tgid, tgid, cache->nr_kept))
		return;
	*kept = (struct kept){ .tgid = tgid, .pidfd = pidfd_open((pid_t)tgid, 0), .delay_ns = FIRST_DELAY_NS };
	kept->number = jit_files_number(tgid);
	if (kept->pidfd < 0)
		kept->next_ns = UINT64_MAX;
	cache->nr_kept++;
}

static bool has_ended(const struct kept *kept)
{
	struct pollfd poll_fd = { .fd = kept->pidfd, .events = POLLIN };

	return kept->pidfd < 0 || poll(&poll_fd, 1, 0) != 0;
}

static void look_for_files(struct jit_file_cache *cache, struct kept *kept, const struct process_table *processes, uint64_t now_ns)
{
	struct jit_files files;

	kept->next_ns = UINT64_MAX;
	if (cache->nr_held == JIT_FILE_CACHE_MAX_PROCESSES || has_ended(kept))
		return;
	jit_files_open(&(struct jit_process){ .proxy = cache->proxy,
					      .processes = processes,
					      .tgid = kept->tgid,
					      .number = kept->number,
					      .is_ours = kept->tgid == cache->own_tgid },
		       &files);
	if (has_ended(kept)) { /* the files may be those of another process with the same number */
		jit_files_done(&files);
		return;
	}
	kept->files = files;
	cache->nr_held += files.nr != 0;
	if (files.nr)
		return;
	kept->next_ns = now_ns + kept->delay_ns;
	kept->delay_ns = kept->delay_ns < MAX_DELAY_NS ? 2 * kept->delay_ns : MAX_DELAY_NS;
}

void jit_file_cache_step(struct jit_file_cache *cache, const struct location_table *locations, const struct process_table *processes,
			 uint64_t now_ns)
{
	uint32_t nr = location_nr(locations);

	for (; cache->nr_locations < nr; cache->nr_locations++) {
		const struct location *location = location_at(locations, cache->nr_locations);

		if (location->tgid && !location->in_elf)
			know(cache, location->tgid);
	}
	for (uint32_t i = 0; i < cache->nr_kept; i++)
		if (cache->kept[i].next_ns <= now_ns)
			look_for_files(cache, &cache->kept[i], processes, now_ns);
}

static const struct kept *find(const struct jit_file_cache *cache, uint32_t tgid)
{
	const uint32_t *i = u64_map_find(&cache->by_tgid, tgid);

	return i ? &cache->kept[*i] : NULL;
}

bool jit_file_cache_copy(const struct jit_file_cache *cache, uint32_t tgid, struct jit_files *ret_files)
{
	const struct kept *kept = find(cache, tgid);

	if (!kept || !kept->files.nr || !has_ended(kept))
		return false;
	*ret_files = kept->files;
	for (uint32_t i = 0; i < ret_files->nr; i++)
		ret_files->fds[i] = fcntl(kept->files.fds[i], F_DUPFD_CLOEXEC, 0);
	return true;
}

uint32_t jit_file_cache_number(const struct jit_file_cache *cache, uint32_t tgid)
{
	const struct kept *kept = cache ? find(cache, tgid) : NULL;

	return kept && !has_ended(kept) ? kept->number : jit_files_number(tgid);
}

static void forget(struct jit_file_cache *cache, uint32_t number)
{
	struct kept *kept = &cache->kept[number];

	u64_map_remove(&cache->by_tgid, kept->tgid, number);
	cache->nr_held -= kept->files.nr != 0;
	jit_files_done(&kept->files);
	closep(&kept->pidfd);
	*kept = cache->kept[--cache->nr_kept];
	if (number < cache->nr_kept)
		*u64_map_find(&cache->by_tgid, kept->tgid) = number;
}

void jit_file_cache_end_window(struct jit_file_cache *cache)
{
	cache->nr_locations = 0;
	for (uint32_t i = cache->nr_kept; i-- > 0;) {
		bool had_ended = cache->kept[i].had_ended;

		cache->kept[i].had_ended = has_ended(&cache->kept[i]);
		if (had_ended)
			forget(cache, i);
	}
}
