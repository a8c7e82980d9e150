/* SPDX-License-Identifier: Apache-2.0 */
/* debug_cache: a private directory of debug files from servers, which also records the files that the servers do not have. It holds only
 * complete files. One thread; several programs may use a directory at once. Build ids are lower-case hexadecimal texts
 * (debug_cache_is_build_id). */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"

#define DEBUG_CACHE_MAX_BYTES ((uint64_t)4 << 30)
#define DEBUG_CACHE_MISSING_S 3600 /* a file that a server did not have is not requested again for so long */

struct debug_cache;
/* Opens the directory, and creates it if missing. Beyond max_bytes, the least recently used files are removed. `path` NULL:
 * $SONDE_CACHE_DIR/debuginfo; else /var/cache/sonde/debuginfo for root, $XDG_CACHE_HOME/sonde/debuginfo or ~/.cache/sonde/debuginfo for
 * others. `servers`: missing files are recorded for these alone. 0; -EPERM: others have access to it; or another negative errno. */
MUST_CHECK int debug_cache_open(const char *path, const char *servers, uint64_t max_bytes, struct diag *diag,
				struct debug_cache **ret_cache);
void debug_cache_free(struct debug_cache *cache); /* takes NULL */
static inline void debug_cache_freep(struct debug_cache **cache)
{
	debug_cache_free(*cache);
}
/* 16 to 128 hexadecimal digits, an even number. */
bool debug_cache_is_build_id(const char *text);
/* Returns a descriptor for reading; -ENOENT: not in the cache; -ENODATA: the servers did not have it lately. */
MUST_CHECK int debug_cache_find(struct debug_cache *cache, const char *build_id);
/* Creates a file without a name, for debug_cache_keep. Returns a descriptor or a negative errno. */
MUST_CHECK int debug_cache_create(struct debug_cache *cache);
/* Links the file under its build id, if the file system can. */
void debug_cache_keep(struct debug_cache *cache, const char *build_id, int fd);
/* Removes the file, and records that the servers do not have it, or sent a useless one. */
void debug_cache_refuse(struct debug_cache *cache, const char *build_id);
