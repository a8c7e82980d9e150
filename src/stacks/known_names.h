/* SPDX-License-Identifier: Apache-2.0 */
/* known_names: the names of runtimes' frames that earlier windows had, so that a process is not read again for each window. Those of the
 * last window are all used. Of the windows before, only names that last (struct runtime_function): memory that was freed has other code
 * soon, which the cookie does not always tell. They are bounded in bytes, and used for at most twice KNOWN_NAMES_NS, then the process is
 * asked again. One thread. */
#pragma once
#include <stdint.h>

#include "base/clock.h"
#include "stacks/frame_table.h"

#define KNOWN_NAMES_NS (60 * NS_PER_S)

struct known_names;
struct known_names *known_names_new(void); /* NULL: no memory */
void known_names_free(struct known_names *names); /* takes NULL */
/* What the last window's frames are called. Borrows the table until the next call. Without memory some are not kept. */
void known_names_learn(struct known_names *names, const struct frame_table *window, uint64_t now_ns);
/* The frame, and the table that its numbers are of. NULL: not known. Borrowed until the next window. */
const struct named_frame *known_names_find(const struct known_names *names, const struct frame_key *key,
					   const struct frame_table **ret_table);
