/* SPDX-License-Identifier: Apache-2.0 */
/* name_cache: the names of addresses in files that an earlier window had, so that no file is read for them again. Up to so many bytes; what
 * was not asked for longest goes first, in large parts. One thread. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolize/symbolizer.h"

/* Whose names. */
struct name_cache_key {
	uint64_t file;    /* a number that no two files have; 0: the kernel */
	int64_t written_ns; /* when it was written to last: what is written in place is the same file */
	uint64_t fetched; /* 1: with a debug file that was fetched */
	uint64_t rank;    /* how good the word is of the process whose debug files it was looked up in: credentials_rank; of the kernel 0 */
	uint64_t address; /* as linked; in the kernel as it runs */
};

struct name_cache;
struct name_cache *name_cache_new(size_t max_bytes); /* NULL: no memory */
void name_cache_free(struct name_cache *cache); /* takes NULL */
/* *ret_nr 0: the address has no name. Texts are borrowed until the next call. */
bool name_cache_find(struct name_cache *cache, const struct name_cache_key *key, struct symbol_name *names, uint32_t max_names,
		     uint32_t *ret_nr);
/* Copied. Where there is no memory, it is not. */
void name_cache_add(struct name_cache *cache, const struct name_cache_key *key, const struct symbol_name *names, uint32_t nr);
size_t name_cache_bytes(const struct name_cache *cache);
