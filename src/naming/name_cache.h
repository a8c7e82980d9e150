/* SPDX-License-Identifier: Apache-2.0 */
/* name_cache: names of addresses from earlier windows, so that their files are not read again. A name is that of all addresses around for
 * which the file says the same: a program that runs has addresses in each window that it never had before. Limited in bytes. Evicts the
 * least recently used names first, in large parts. One thread. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "symbolize/symbolizer.h"

struct name_cache_key {
	uint64_t file;    /* a number that no two files share; 0: the kernel */
	int64_t written_ns; /* last change: a file overwritten in place keeps its number */
	uint64_t fetched; /* 1: with a fetched debug file */
	uint64_t rank;    /* credentials_rank of the process in whose root debug files were looked for; 0 for the kernel */
	uint64_t address; /* as linked; for the kernel: as it runs */
};

struct name_cache;
struct name_cache *name_cache_new(size_t max_bytes); /* NULL: no memory */
void name_cache_free(struct name_cache *cache); /* takes NULL */
#define NAME_CACHE_NAMELESS_NS (60 * NS_PER_S)
/* The time from now on: clock_ns(). That addresses have no name is true for NAME_CACHE_NAMELESS_NS: a debug file may come. */
void name_cache_now(struct name_cache *cache, uint64_t now_ns);
void name_cache_bound(struct name_cache *cache, size_t max_bytes); /* another limit; what is beyond a lower one goes now */
/* *ret_nr 0: the address has no name. Texts are borrowed until the next call. */
bool name_cache_find(struct name_cache *cache, const struct name_cache_key *key, struct symbol_name *names, uint32_t max_names,
		     uint32_t *ret_nr);
/* Copies the names, which are those of all addresses of the extent; of the key's address alone, if that is not in it. Without memory it
 * does not add them. */
void name_cache_add(struct name_cache *cache, const struct name_cache_key *key, const struct symbol_extent *extent,
		    const struct symbol_name *names, uint32_t nr);
size_t name_cache_bytes(const struct name_cache *cache);
