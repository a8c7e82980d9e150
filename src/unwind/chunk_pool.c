// SPDX-License-Identifier: Apache-2.0
/* What comes and goes is allocated by size classes, powers of two from 16 words on, each with a list of free places. What no list has is cut from
 * the end of the chunk that is being filled; its rest goes to the lists when the next chunk is begun. */
#include "unwind/chunk_pool.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdbool.h>
#include <sys/mman.h>

#include "base/buffer.h"

#define ALIGN_WORDS 4
#define MIN_CLASS 4                       /* 16 words */
#define NR_CLASSES (SONDE_CHUNK_SHIFT + 1)
#define QUARANTINE_MAX 256                /* freed places that wait for one grace period together */
#define LIST_BYTES_MAX (64u << 20)

struct freed {
	uint32_t pos, class;
};

struct chunk {
	int fd;
	uint32_t *words;
};

struct chunk_pool {
	int chunks_fd;
	struct chunk *chunks;
	uint32_t nr_chunks, max_chunks;
	uint32_t nr_published;                /* the first of them: those that the kernel can see */
	uint32_t used_words;                  /* of the last chunk */
	struct buffer free_lists[NR_CLASSES]; /* uint32_t pos each */
	struct freed quarantine[QUARANTINE_MAX];
	uint32_t nr_quarantined;
};

struct chunk_pool *chunk_pool_new(int chunks_fd, uint64_t max_bytes)
{
	struct chunk_pool *pool = calloc(1, sizeof(*pool));
	uint64_t max_chunks = max_bytes / SONDE_CHUNK_BYTES;

	if (!pool)
		return NULL;
	pool->chunks_fd = chunks_fd;
	pool->max_chunks = max_chunks > SONDE_MAX_CHUNKS ? SONDE_MAX_CHUNKS : (uint32_t)max_chunks;
	pool->chunks = calloc(pool->max_chunks ? pool->max_chunks : 1, sizeof(*pool->chunks));
	for (uint32_t i = 0; i < NR_CLASSES; i++)
		pool->free_lists[i] = BUFFER_INIT(LIST_BYTES_MAX);
	if (!pool->chunks) {
		free(pool);
		return NULL;
	}
	return pool;
}

void chunk_pool_free(struct chunk_pool *pool)
{
	if (!pool)
		return;
	for (uint32_t i = 0; i < pool->nr_chunks; i++) {
		munmap(pool->chunks[i].words, SONDE_CHUNK_BYTES);
		close(pool->chunks[i].fd);
	}
	for (uint32_t i = 0; i < NR_CLASSES; i++)
		buffer_done(&pool->free_lists[i]);
	free(pool->chunks);
	free(pool);
}

uint64_t chunk_pool_bytes(const struct chunk_pool *pool)
{
	return (uint64_t)pool->nr_chunks * SONDE_CHUNK_BYTES;
}

uint32_t *chunk_pool_words(struct chunk_pool *pool, uint32_t pos)
{
	return pool->chunks[pos >> SONDE_CHUNK_SHIFT].words + (pos & (SONDE_CHUNK_WORDS - 1));
}

uint32_t chunk_pool_room(const struct chunk_pool *pool)
{
	return pool->nr_chunks ? SONDE_CHUNK_WORDS - pool->used_words : 0;
}

/* The least class whose places hold `nr_words`. */
static uint32_t class_above(uint32_t nr_words)
{
	uint32_t class = MIN_CLASS;

	while (class < NR_CLASSES - 1 && 1u << class < nr_words)
		class++;
	return class;
}

static void list_free(struct chunk_pool *pool, uint32_t pos, uint32_t class)
{
	buffer_append(&pool->free_lists[class], &pos, sizeof(pos)); /* without memory for it, the words are lost: bounded by max_bytes */
}

static bool take_free(struct chunk_pool *pool, uint32_t class, uint32_t *ret_pos)
{
	struct buffer *list = &pool->free_lists[class];

	if (list->size < sizeof(*ret_pos))
		return false;
	list->size -= sizeof(*ret_pos);
	*ret_pos = *(const uint32_t *)(list->data + list->size);
	return true;
}

/* Gives the rest of the last chunk to the free lists, in the largest powers of two that fit. */
static void list_rest(struct chunk_pool *pool)
{
	for (uint32_t class = NR_CLASSES; class-- > MIN_CLASS;) {
		while (chunk_pool_room(pool) >= 1u << class) {
			list_free(pool, (pool->nr_chunks - 1) << SONDE_CHUNK_SHIFT | pool->used_words, class);
			pool->used_words += 1u << class;
		}
	}
}

static int add_chunk(struct chunk_pool *pool)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE);
	CLEANUP(closep) int fd = -1;
	uint32_t *words;

	if (pool->nr_chunks == pool->max_chunks)
		return -ENOSPC;
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "sonde_chunk", sizeof(uint32_t), SONDE_CHUNK_BYTES, 1, &options);
	if (fd < 0)
		return fd;
	words = mmap(NULL, SONDE_CHUNK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (words == MAP_FAILED)
		return -errno;
	list_rest(pool);
	pool->chunks[pool->nr_chunks] = (struct chunk){ .fd = MOVE_FD(fd), .words = words };
	pool->used_words = pool->nr_chunks++ ? 0 : CHUNK_POOL_FIRST_WORDS;
	return 0;
}

int chunk_pool_cut(struct chunk_pool *pool, uint32_t nr_words, uint32_t *ret_pos)
{
	if (nr_words > SONDE_CHUNK_WORDS)
		return -E2BIG;
	while (chunk_pool_room(pool) < nr_words) { /* twice at most: the first chunk lacks its first words */
		int err = add_chunk(pool);

		if (err)
			return err;
	}
	*ret_pos = (pool->nr_chunks - 1) << SONDE_CHUNK_SHIFT | pool->used_words;
	pool->used_words += (nr_words + ALIGN_WORDS - 1) / ALIGN_WORDS * ALIGN_WORDS;
	return 0;
}

int chunk_pool_alloc(struct chunk_pool *pool, uint32_t nr_words, uint32_t *ret_pos)
{
	uint32_t class = class_above(nr_words);

	if (nr_words > SONDE_CHUNK_WORDS)
		return -E2BIG;
	return take_free(pool, class, ret_pos) ? 0 : chunk_pool_cut(pool, 1u << class, ret_pos);
}

/* One batch waits for one grace period; kernels without batches for this map (before 5.16) wait for each. */
int chunk_pool_publish(struct chunk_pool *pool)
{
	uint32_t nr = pool->nr_chunks - pool->nr_published, count = nr;
	CLEANUP(freep) uint32_t *keys = calloc(nr + 1, sizeof(*keys));
	CLEANUP(freep) int *fds = calloc(nr + 1, sizeof(*fds));

	if (!nr)
		return 0;
	if (!keys || !fds)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr; i++) {
		keys[i] = pool->nr_published + i;
		fds[i] = pool->chunks[keys[i]].fd;
	}
	if (nr == 1 || bpf_map_update_batch(pool->chunks_fd, keys, fds, &count, NULL)) {
		for (uint32_t i = 0; i < nr; i++) {
			int err = bpf_map_update_elem(pool->chunks_fd, &keys[i], &fds[i], BPF_ANY);

			if (err)
				return err;
		}
	}
	pool->nr_published = pool->nr_chunks;
	return 0;
}

/* Waits until the kernel cannot be reading what was given up, then lists it as free. */
static void end_quarantine(struct chunk_pool *pool)
{
	uint32_t first = 0;

	if (bpf_map_update_elem(pool->chunks_fd, &first, &pool->chunks[0].fd, BPF_ANY))
		return; /* stays in quarantine */
	for (uint32_t i = 0; i < pool->nr_quarantined; i++)
		list_free(pool, pool->quarantine[i].pos, pool->quarantine[i].class);
	pool->nr_quarantined = 0;
}

void chunk_pool_release(struct chunk_pool *pool, uint32_t pos, uint32_t nr_words)
{
	if (pool->nr_quarantined == QUARANTINE_MAX)
		end_quarantine(pool);
	if (pool->nr_quarantined < QUARANTINE_MAX)
		pool->quarantine[pool->nr_quarantined++] = (struct freed){ .pos = pos, .class = class_above(nr_words) };
}
