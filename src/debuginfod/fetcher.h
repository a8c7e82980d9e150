/* SPDX-License-Identifier: Apache-2.0 */
/* fetcher: debug files by build id from debuginfod servers. What is not in the cache is fetched in the background by a process without
 * rights (fetch_serve.h), which is started when the first file is wanted from a server. Nothing here waits but fetcher_step, as long as it
 * is told to. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"

#define FETCHER_MAX_FILE_BYTES ((uint64_t)512 << 20)
#define FETCHER_MAX_BYTES      ((uint64_t)2 << 30) /* of one fetcher; then nothing more is begun */
#define FETCHER_MAX_FILES      1024u

struct fetcher_options {
	const char *program;     /* gives itself to serve_as_fetcher */
	const char *cache_path;  /* as debug_cache_open */
	const char *urls;        /* blanks between them, tried in order */
	uint64_t max_file_bytes; /* 0: FETCHER_MAX_FILE_BYTES */
};

struct fetcher_counts {
	uint32_t nr_open;    /* wanted, no answer yet */
	uint32_t nr_failed;  /* no answer could be had */
	uint32_t nr_refused; /* wanted beyond FETCHER_MAX_FILES */
	const char *failure; /* of the first that failed, in words; "" */
};

struct fetcher;
/* Copies the texts. 0 or a negative errno: there is no cache. */
MUST_CHECK int fetcher_new(const struct fetcher_options *options, struct diag *diag, struct fetcher **ret_fetcher);
void fetcher_free(struct fetcher *fetcher); /* takes NULL; ends what is still on its way, what has come stays in the cache */
/* True: it has been wanted before, or is no build id. */
bool fetcher_knows(const struct fetcher *fetcher, const char *build_id);
/* Takes it from the cache, or wants it from the servers. 0 or -ENOMEM. */
MUST_CHECK int fetcher_want(struct fetcher *fetcher, const char *build_id);
/* Waits up to so long for an answer, and takes all that are there. */
void fetcher_step(struct fetcher *fetcher, int timeout_ms);
/* A descriptor for reading, borrowed; -1: it is not there. */
int fetcher_fd(const struct fetcher *fetcher, const char *build_id);
/* What was fetched is of no use: forgets it, and does not ask for it again soon. */
void fetcher_refuse(struct fetcher *fetcher, const char *build_id);
struct fetcher_counts fetcher_counts(const struct fetcher *fetcher);
