/* SPDX-License-Identifier: Apache-2.0 */
/* debug_roots: chooses, among the processes that map a file, the one in whose root its debug files are looked for. In a container, the
 * debug files are where the container's mounts put them. But any user can make mounts and run any file in them. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "process/process_table.h"
#include "proxy/opener.h"
#include "proxy/proxy.h"

/* Opens debug files of one file, in the root of one process. */
struct debug_asker {
	struct proxy *proxy;
	uint32_t tgid; /* 0: no process */
	struct debugged of;
};
void debug_asker_init(struct debug_asker *asker, struct proxy *proxy, uint32_t tgid, const struct object *object);
int debug_asker_open(void *asker, const char *path); /* a worker_open_fn */

struct debug_roots;
/* Finds the process with the highest rank (credentials_rank) for each wanted file. NULL: no memory. */
struct debug_roots *debug_roots_new(const struct process_table *processes, bool (*is_wanted)(void *arg, uint32_t object), void *arg);
void debug_roots_free(struct debug_roots *askers); /* takes NULL */
static inline void debug_roots_freep(struct debug_roots **askers)
{
	debug_roots_free(*askers);
}
/* Returns the process; 0: no living process maps the file. */
uint32_t debug_roots_of(const struct debug_roots *askers, uint32_t object);
uint32_t debug_roots_rank(const struct debug_roots *askers, uint32_t object); /* that process's credentials_rank */
