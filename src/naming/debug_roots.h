/* SPDX-License-Identifier: Apache-2.0 */
/* debug_roots: in whose root the debug files of a file are looked for, of all processes that have it. A file's debug files stand where its
 * user's mounts put them, in a container; but everybody may have mounts of his own, and run everybody's files there. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "process/process_table.h"
#include "proxy/opener.h"
#include "proxy/proxy.h"

/* A question for debug files of one file. */
struct debug_asker {
	struct proxy *proxy;
	uint32_t tgid; /* 0: nobody */
	struct debugged of;
};
void debug_asker_init(struct debug_asker *asker, struct proxy *proxy, uint32_t tgid, const struct object *object);
int debug_asker_open(void *asker, const char *path); /* a worker_open_fn */

struct debug_roots;
/* Finds the process with the best word (proxy/credentials.h) for each file that is wanted. NULL: no memory. */
struct debug_roots *debug_roots_new(const struct process_table *processes, bool (*is_wanted)(void *arg, uint32_t object), void *arg);
void debug_roots_free(struct debug_roots *askers); /* takes NULL */
static inline void debug_roots_freep(struct debug_roots **askers)
{
	debug_roots_free(*askers);
}
/* 0: nobody that lives has the file. */
uint32_t debug_roots_of(const struct debug_roots *askers, uint32_t object);
uint32_t debug_roots_rank(const struct debug_roots *askers, uint32_t object); /* how good its word is: credentials_rank */
