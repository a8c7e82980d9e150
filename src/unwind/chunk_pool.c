// SPDX-License-Identifier: Apache-2.0
/* Two bits for each unit of a chunk: allocated, and released but waiting. A released unit needs no extra memory and joins its free
 * neighbours at once. A search reads at most 64 words per chunk, and skips chunks that are known to have no run that long. */
#include "unwind/chunk_pool.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define NR_UNITS (SONDE_CHUNK_WORDS / CHUNK_POOL_UNIT_WORDS)
#define WAITING_UNITS (NR_UNITS / 2) /* this many are worth a grace period even if a new chunk could be added */
#define PART_MIN_UNITS 16            /* the smallest part; an allocation is split into at most eight parts */
#define IDLE_TURNS 16                /* then a chunk is unmapped */

struct chunk {
	int fd;                                                /* -1 in our own memory, and if !exists */
	bool exists, is_published;
	uint32_t *words;                                       /* NULL: not mapped now */
	uint64_t used;                                         /* the turn in which its words were last asked for */
	uint64_t given[NR_UNITS / 64], waiting[NR_UNITS / 64]; /* bits by unit; waiting units count as given */
	uint32_t most_free;                                    /* upper bound for the longest run of free units */
};

struct chunk_pool {
	int chunks_fd;
	struct chunk *chunks;
	uint32_t nr_chunks;    /* up to the last that ever existed */
	uint32_t nr_existing, max_chunks;
	uint32_t room;         /* of `chunks` */
	uint32_t nr_waiting;   /* units */
	uint64_t nr_given;     /* units */
	uint64_t nr_settled;
	uint64_t turn;         /* grows with each chunk_pool_rest */
};

struct run { /* of free units */
	uint32_t chunk, first, nr;
};

struct chunk_pool *chunk_pool_new(int chunks_fd, uint64_t max_bytes)
{
	struct chunk_pool *pool = calloc(1, sizeof(*pool));
	uint64_t max_chunks = max_bytes / SONDE_CHUNK_BYTES;

	if (!pool)
		return NULL;
	pool->chunks_fd = chunks_fd;
	pool->room = max_chunks > SONDE_MAX_CHUNKS ? SONDE_MAX_CHUNKS : (uint32_t)max_chunks;
	pool->max_chunks = pool->room;
	pool->chunks = calloc(pool->room ? pool->room : 1, sizeof(*pool->chunks));
	if (!pool->chunks) {
		free(pool);
		return NULL;
	}
	return pool;
}

static bool has_kernel(const struct chunk_pool *pool)
{
	return pool->chunks_fd >= 0;
}

static int map(struct chunk *chunk)
{
	uint32_t *words = mmap(NULL, SONDE_CHUNK_BYTES, PROT_READ | PROT_WRITE, chunk->fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED,
			       chunk->fd, 0);

	if (words == MAP_FAILED)
		return -errno;
	chunk->words = words;
	return 0;
}

static void unmap(struct chunk *chunk)
{
	if (chunk->words)
		munmap(chunk->words, SONDE_CHUNK_BYTES);
	chunk->words = NULL;
}

void chunk_pool_free(struct chunk_pool *pool)
{
	if (!pool)
		return;
	for (uint32_t i = 0; i < pool->nr_chunks; i++) {
		unmap(&pool->chunks[i]);
		closep(&pool->chunks[i].fd);
	}
	free(pool->chunks);
	free(pool);
}

uint64_t chunk_pool_bytes(const struct chunk_pool *pool)
{
	return (uint64_t)pool->nr_existing * SONDE_CHUNK_BYTES;
}

uint64_t chunk_pool_used_bytes(const struct chunk_pool *pool)
{
	return pool->nr_given * CHUNK_POOL_UNIT_WORDS * 4;
}

uint64_t chunk_pool_nr_settled(const struct chunk_pool *pool)
{
	return pool->nr_settled;
}

uint32_t *chunk_pool_words(const struct chunk_pool *pool, uint32_t pos)
{
	uint32_t number = pos >> SONDE_CHUNK_SHIFT;
	struct chunk *chunk = &pool->chunks[number];

	if (number >= pool->nr_chunks || !chunk->exists || (!chunk->words && map(chunk)))
		return NULL;
	chunk->used = pool->turn;
	return chunk->words + (pos & (SONDE_CHUNK_WORDS - 1));
}

void chunk_pool_rest(struct chunk_pool *pool)
{
	pool->turn++;
	for (uint32_t i = 0; i < pool->nr_chunks; i++) {
		if (pool->chunks[i].used + IDLE_TURNS < pool->turn && has_kernel(pool))
			unmap(&pool->chunks[i]);
	}
}

static uint32_t units_of(uint32_t nr_words)
{
	return nr_words / CHUNK_POOL_UNIT_WORDS + (nr_words % CHUNK_POOL_UNIT_WORDS != 0);
}

/* The first unit from `unit` on that is given or, if `given` is false, free; NR_UNITS: none. */
static uint32_t next_unit(const struct chunk *chunk, uint32_t unit, bool given)
{
	for (; unit < NR_UNITS; unit = (unit | 63) + 1) {
		uint64_t bits = (given ? chunk->given[unit / 64] : ~chunk->given[unit / 64]) >> unit % 64;

		if (bits)
			return unit + (uint32_t)__builtin_ctzll(bits);
	}
	return NR_UNITS;
}

static void set_units(uint64_t *bits, uint32_t first, uint32_t nr, bool to)
{
	for (uint32_t unit = first, end = first + nr; unit < end; unit = (unit | 63) + 1) {
		uint32_t nr_here = (unit | 63) + 1 < end ? 64 - unit % 64 : end - unit;
		uint64_t mask = (nr_here == 64 ? ~0ULL : (1ULL << nr_here) - 1) << unit % 64;

		bits[unit / 64] = to ? bits[unit / 64] | mask : bits[unit / 64] & ~mask;
	}
}

/* The chunk's first run of `nr` free units; if it has none, its longest run. */
static struct run find_run(const struct chunk *chunk, uint32_t nr)
{
	struct run longest = { 0 };

	for (uint32_t unit = next_unit(chunk, 0, false), end; unit < NR_UNITS && longest.nr < nr; unit = next_unit(chunk, end, false)) {
		end = next_unit(chunk, unit, true);
		if (end - unit > longest.nr)
			longest = (struct run){ .first = unit, .nr = end - unit };
	}
	return longest;
}

/* The first run of max_units; else the longest run of at least min_units. 0 units: none. */
static struct run find_room(struct chunk_pool *pool, uint32_t min_units, uint32_t max_units)
{
	struct run best = { 0 };

	for (uint32_t i = 0; i < pool->nr_chunks && best.nr < max_units; i++) {
		struct chunk *chunk = &pool->chunks[i];
		struct run run;

		if (chunk->most_free < min_units || chunk->most_free <= best.nr)
			continue;
		run = find_run(chunk, max_units);
		run.chunk = i;
		if (run.nr < max_units)
			chunk->most_free = run.nr;
		if (run.nr > best.nr && run.nr >= min_units)
			best = run;
	}
	if (best.nr > max_units)
		best.nr = max_units;
	return best;
}

static bool is_full(const struct chunk_pool *pool)
{
	return pool->nr_existing >= pool->max_chunks;
}

static int add_chunk(struct chunk_pool *pool)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE);
	struct chunk chunk = { .fd = -1, .exists = true, .used = pool->turn, .most_free = NR_UNITS };
	uint32_t number = 0;
	int err;

	if (is_full(pool))
		return -ENOSPC;
	while (number < pool->nr_chunks && pool->chunks[number].exists)
		number++;
	if (has_kernel(pool)) {
		chunk.fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "sonde_chunk", sizeof(uint32_t), SONDE_CHUNK_BYTES, 1, &options);
		if (chunk.fd < 0)
			return chunk.fd;
	}
	err = map(&chunk);
	if (err) {
		closep(&chunk.fd);
		return err;
	}
	pool->chunks[number] = chunk;
	pool->nr_existing++;
	if (number == pool->nr_chunks)
		pool->nr_chunks++;
	if (!number)
		set_units(pool->chunks[0].given, 0, 1, true); /* pos 0 means none */
	return 0;
}

/* Tries in this order: free words in one part, or in few; waiting words, if there are many; a new chunk; waiting words; any free words. */
static int make_room(struct chunk_pool *pool, uint32_t min_units, uint32_t max_units, struct run *ret_run)
{
	uint32_t part_units = max_units / 8 > PART_MIN_UNITS ? max_units / 8 : PART_MIN_UNITS;
	int err;

	if (part_units > max_units)
		part_units = max_units;
	if (part_units < min_units)
		part_units = min_units;
	for (;;) {
		bool full = is_full(pool);

		*ret_run = find_room(pool, part_units, max_units);
		if (ret_run->nr)
			return 0;
		if (pool->nr_waiting && (full || pool->nr_waiting >= WAITING_UNITS)) {
			err = chunk_pool_settle(pool);
		} else if (full) {
			*ret_run = find_room(pool, min_units, max_units);
			return ret_run->nr ? 0 : -ENOSPC;
		} else {
			err = add_chunk(pool);
		}
		if (err)
			return err;
	}
}

int chunk_pool_alloc(struct chunk_pool *pool, uint32_t min_words, uint32_t max_words, struct chunk_place *ret_location)
{
	uint32_t min_units = units_of(min_words), max_units = units_of(max_words);
	struct run run;
	int err;

	if (min_units > NR_UNITS)
		return -E2BIG;
	if (max_units > NR_UNITS)
		max_units = NR_UNITS;
	err = make_room(pool, min_units, max_units, &run);
	if (err)
		return err;
	set_units(pool->chunks[run.chunk].given, run.first, run.nr, true);
	pool->nr_given += run.nr;
	*ret_location = (struct chunk_place){
		.pos = run.chunk << SONDE_CHUNK_SHIFT | run.first * CHUNK_POOL_UNIT_WORDS,
		.nr_words = run.nr * CHUNK_POOL_UNIT_WORDS,
	};
	return 0;
}

void chunk_pool_trim(struct chunk_pool *pool, struct chunk_place *place, uint32_t nr_words)
{
	struct chunk *chunk = &pool->chunks[place->pos >> SONDE_CHUNK_SHIFT];
	uint32_t first = (place->pos & (SONDE_CHUNK_WORDS - 1)) / CHUNK_POOL_UNIT_WORDS, kept = units_of(nr_words),
		 nr = units_of(place->nr_words);

	if (kept >= nr)
		return;
	set_units(chunk->given, first + kept, nr - kept, false);
	pool->nr_given -= nr - kept;
	chunk->most_free = NR_UNITS; /* upper bound, the real value is not known */
	place->nr_words = kept * CHUNK_POOL_UNIT_WORDS;
}

static bool is_unpublished(const struct chunk *chunk)
{
	return chunk->exists && !chunk->is_published;
}

static uint32_t nr_unpublished(const struct chunk_pool *pool)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < pool->nr_chunks; i++)
		nr += is_unpublished(&pool->chunks[i]);
	return nr;
}

/* A batch waits for one grace period. Kernels without batches for this map (before 5.16) wait once per chunk. */
int chunk_pool_publish(struct chunk_pool *pool)
{
	CLEANUP(freep) uint32_t *keys = NULL;
	CLEANUP(freep) int *fds = NULL;
	uint32_t nr_wanted = has_kernel(pool) ? nr_unpublished(pool) : 0, nr = 0, count = nr_wanted;

	if (!nr_wanted)
		return 0;
	keys = calloc(nr_wanted, sizeof(*keys));
	fds = calloc(nr_wanted, sizeof(*fds));
	if (!keys || !fds)
		return -ENOMEM;
	for (uint32_t i = 0; nr < nr_wanted; i++) {
		if (!is_unpublished(&pool->chunks[i]))
			continue;
		keys[nr] = i;
		fds[nr++] = pool->chunks[i].fd;
	}
	if (nr == 1 || bpf_map_update_batch(pool->chunks_fd, keys, fds, &count, NULL)) {
		for (uint32_t i = 0; i < nr; i++) {
			int err = bpf_map_update_elem(pool->chunks_fd, &keys[i], &fds[i], BPF_ANY);

			if (err)
				return err;
		}
	}
	for (uint32_t i = 0; i < nr; i++)
		pool->chunks[keys[i]].is_published = true;
	return 0;
}

void chunk_pool_release(struct chunk_pool *pool, struct chunk_place place)
{
	struct chunk *chunk = &pool->chunks[place.pos >> SONDE_CHUNK_SHIFT];
	uint32_t first = (place.pos & (SONDE_CHUNK_WORDS - 1)) / CHUNK_POOL_UNIT_WORDS;

	set_units(chunk->waiting, first, units_of(place.nr_words), true);
	pool->nr_waiting += units_of(place.nr_words);
}

/* What waited is free now. */
static void settle(struct chunk *chunk)
{
	for (uint32_t i = 0; i < NR_UNITS / 64; i++) {
		if (!chunk->waiting[i])
			continue;
		chunk->given[i] &= ~chunk->waiting[i];
		chunk->waiting[i] = 0;
		chunk->most_free = NR_UNITS;
	}
}

/* An empty chunk goes back to the kernel. */
static void remove_chunk(struct chunk_pool *pool, uint32_t number)
{
	struct chunk *chunk = &pool->chunks[number];

	if (chunk->is_published && bpf_map_delete_elem(pool->chunks_fd, &number))
		return; /* stays as it is */
	unmap(chunk);
	closep(&chunk->fd);
	*chunk = (struct chunk){ .fd = -1 };
	pool->nr_existing--;
}

int chunk_pool_settle(struct chunk_pool *pool)
{
	uint32_t first = 0;
	bool is_published = pool->nr_chunks && pool->chunks[0].is_published;
	int err = is_published ? bpf_map_update_elem(pool->chunks_fd, &first, &pool->chunks[0].fd, BPF_ANY) : 0;

	if (err)
		return err;
	for (uint32_t i = 0; i < pool->nr_chunks; i++) {
		settle(&pool->chunks[i]);
		if (pool->chunks[i].exists && next_unit(&pool->chunks[i], 0, true) == NR_UNITS)
			remove_chunk(pool, i);
	}
	pool->nr_given -= pool->nr_waiting;
	pool->nr_waiting = 0;
	pool->nr_settled++;
	return 0;
}

void chunk_pool_bound(struct chunk_pool *pool, uint64_t max_bytes)
{
	uint64_t max_chunks = max_bytes / SONDE_CHUNK_BYTES;

	pool->max_chunks = max_chunks > pool->room ? pool->room : (uint32_t)max_chunks;
}
