/* SPDX-License-Identifier: Apache-2.0 */
/* debug_cache: debug files that servers gave, and which ones they do not have, in a directory of our own. A file is in it whole or not at
 * all. One thread; several programs may use a directory at once. Build ids are lower-case hexadecimal texts (debug_cache_is_build_id). */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"

#define DEBUG_CACHE_MAX_BYTES ((uint64_t)4 << 30)
#define DEBUG_CACHE_MISSING_S 3600 /* what a server did not have is not asked for again so long */

struct debug_cache;
/* The directory, which is made. Beyond max_bytes, the files that were not used longest go. `path` NULL: $SONDE_CACHE_DIR/debuginfo; else
 * /var/cache/sonde/debuginfo for root and $XDG_CACHE_HOME/sonde/debuginfo for others. `servers`: what is missing is missing there only. 0;
 * -EPERM: it is not ours alone; or what the system gave. */
MUST_CHECK int debug_cache_open(const char *path, const char *servers, uint64_t max_bytes, struct diag *diag,
				struct debug_cache **ret_cache);
void debug_cache_free(struct debug_cache *cache); /* takes NULL */
static inline void debug_cache_freep(struct debug_cache **cache)
{
	debug_cache_free(*cache);
}
/* 16 to 128 hexadecimal digits, an even number. */
bool debug_cache_is_build_id(const char *text);
/* A descriptor for reading; -ENOENT: it is not there; -ENODATA: the servers did not have it lately. */
MUST_CHECK int debug_cache_find(struct debug_cache *cache, const char *build_id);
/* A file without a name, for debug_cache_keep: a descriptor or a negative errno. */
MUST_CHECK int debug_cache_create(struct debug_cache *cache);
/* Gives it its name, if the file system can. */
void debug_cache_keep(struct debug_cache *cache, const char *build_id, int fd);
/* Remembers that the servers do not have it, or that what they gave is of no use: then it goes. */
void debug_cache_refuse(struct debug_cache *cache, const char *build_id);
