// SPDX-License-Identifier: Apache-2.0
#include "process/region_cache.h"

#include <string.h>

#include "base/clock.h"
#include "base/hash.h"

#define KEPT_NS (100 * NS_PER_MS)

static uint64_t key_of(const struct mapped_region *region)
{
	const uint64_t numbers[] = { region->tgid, region->device, region->inode };

	return hash_bytes(region->path, strlen(region->path), hash_bytes(numbers, sizeof(numbers), 0));
}

bool region_cache_find(const struct region_cache *cache, const struct mapped_region *region, uint32_t *ret_object)
{
	uint64_t key = key_of(region);
	const struct cached_region *slot = &cache->slots[key % REGION_CACHE_SLOTS];

	if (!region->inode || slot->key != key || clock_ns() >= slot->end_ns)
		return false;
	*ret_object = slot->object;
	return true;
}

void region_cache_keep(struct region_cache *cache, const struct mapped_region *region, uint32_t object)
{
	uint64_t key = key_of(region);

	if (region->inode)
		cache->slots[key % REGION_CACHE_SLOTS] =
		    (struct cached_region){ .key = key, .end_ns = clock_ns() + KEPT_NS, .object = object };
}

void region_cache_forget(struct region_cache *cache)
{
	memset(cache, 0, sizeof(*cache));
}
