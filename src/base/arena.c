// SPDX-License-Identifier: Apache-2.0
#include "base/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>

#define BLOCK_BYTES ((size_t)64 << 10)

struct block {
	struct block *next;
	alignas(max_align_t) char bytes[];
};

struct arena {
	struct block *blocks;
	char *pos, *end;
	size_t size_bytes, max_bytes;
};

struct arena *arena_new(size_t max_bytes)
{
	struct arena *arena = calloc(1, sizeof(*arena));

	if (arena)
		arena->max_bytes = max_bytes;
	return arena;
}

void arena_free(struct arena *arena)
{
	if (!arena)
		return;
	while (arena->blocks) {
		struct block *next = arena->blocks->next;

		free(arena->blocks);
		arena->blocks = next;
	}
	free(arena);
}

static int add_block(struct arena *arena, size_t size)
{
	struct block *block;

	if (size > arena->max_bytes - arena->size_bytes)
		return -1;
	block = malloc(sizeof(*block) + size);
	if (!block)
		return -1;
	block->next = arena->blocks;
	arena->blocks = block;
	arena->size_bytes += size;
	arena->pos = block->bytes;
	arena->end = block->bytes + size;
	return 0;
}

void *arena_alloc(struct arena *arena, size_t size)
{
	const size_t align = alignof(max_align_t);
	void *room;

	if (size > SIZE_MAX - align)
		return NULL;
	size = (size + align - 1) & ~(align - 1);
	if (size > (size_t)(arena->end - arena->pos) && add_block(arena, size > BLOCK_BYTES ? size : BLOCK_BYTES))
		return NULL;
	room = arena->pos;
	arena->pos += size;
	return room;
}
