/* SPDX-License-Identifier: Apache-2.0 */
/* region_cache: remembers for a moment which file the mappings of a process are of. A process may map the same file thousands of times, and
 * each lookup costs a request to the proxy. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "proxy/mapped_region.h"

#define REGION_CACHE_SLOTS 256

struct region_cache { /* starts zeroed */
	struct cached_region {
		uint64_t key, end_ns;
		uint32_t object;
	} slots[REGION_CACHE_SLOTS];
};

/* Returns what was found for the process, device, inode and path less than 100 ms ago. False: nothing was, or the inode is not known. */
bool region_cache_find(const struct region_cache *cache, const struct mapped_region *region, uint32_t *ret_object);
void region_cache_keep(struct region_cache *cache, const struct mapped_region *region, uint32_t object);
/* Before a number is reused for another file. */
void region_cache_forget(struct region_cache *cache);
