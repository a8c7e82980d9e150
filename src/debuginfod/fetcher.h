/* SPDX-License-Identifier: Apache-2.0 */
/* fetcher: debug files by build id from debuginfod servers. A file that is not in the cache is fetched in the background by a process
 * without rights (fetch_serve.h). That process starts when the first file is requested from a server. Only fetcher_step waits, up to its
 * timeout. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"

#define FETCHER_MAX_FILE_BYTES ((uint64_t)512 << 20)
#define FETCHER_MAX_BYTES      ((uint64_t)2 << 30) /* per fetcher; beyond it no request is sent */
#define FETCHER_MAX_FILES      1024u

struct fetcher_options {
	const char *program;     /* its main calls serve_as_fetcher */
	const char *cache_path;  /* as debug_cache_open */
	const char *urls;        /* separated by blanks, tried in order */
	uint64_t max_file_bytes; /* 0: FETCHER_MAX_FILE_BYTES */
};

struct fetcher_counts {
	uint32_t nr_open;    /* wanted, no answer yet */
	uint32_t nr_failed;  /* fetching failed */
	uint32_t nr_refused; /* wanted beyond FETCHER_MAX_FILES */
	const char *failure; /* the first failure, in words; or "" */
};

struct fetcher;
/* Copies the texts. 0 or a negative errno: the cache cannot be used. */
MUST_CHECK int fetcher_new(const struct fetcher_options *options, struct diag *diag, struct fetcher **ret_fetcher);
void fetcher_free(struct fetcher *fetcher); /* takes NULL; drops transfers in progress, fetched files stay in the cache */
/* True if it was wanted before, or is no build id. */
bool fetcher_knows(const struct fetcher *fetcher, const char *build_id);
/* Takes the file from the cache, or marks it to be requested from the servers. 0 or -ENOMEM. */
MUST_CHECK int fetcher_want(struct fetcher *fetcher, const char *build_id);
/* Sends requests. Waits up to timeout_ms for an answer, and takes all that are there. */
void fetcher_step(struct fetcher *fetcher, int timeout_ms);
/* A descriptor for reading, borrowed; -1: no file. */
int fetcher_fd(const struct fetcher *fetcher, const char *build_id);
/* Drops a fetched file that is of no use; it is not requested again soon. */
void fetcher_refuse(struct fetcher *fetcher, const char *build_id);
struct fetcher_counts fetcher_counts(const struct fetcher *fetcher);
