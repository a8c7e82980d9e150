/* SPDX-License-Identifier: Apache-2.0 */
/* context_keys: the names of the attributes in threads' contexts (struct sonde_thread_context), as the process publishes them
 * (process/process_context.h). Names are only ever added, so they are read once, and again when a thread uses a number without a name. One
 * thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "process/process_context.h"

struct context_keys;
/* Borrows `proxy` (NULL: none) for its life. NULL: no memory. */
struct context_keys *context_keys_new(struct proxy *proxy);
void context_keys_free(struct context_keys *keys); /* takes NULL */
/* NULL: that number has no name, or names cannot be read (now). Borrowed until the next call. `generation`: of the process
 * (process/process_table.h): another one is another program. is_current: it still runs, so that what it publishes can be read. */
const struct context_key *context_keys_find(struct context_keys *keys, uint32_t tgid, uint32_t generation, uint8_t number, bool is_current);
