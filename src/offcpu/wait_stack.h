/* SPDX-License-Identifier: Apache-2.0 */
/* wait_stack: adds to the stacks of a wait: a mark with its kind, and the waker's stacks. */
#pragma once
#include "abi/wait.h"
#include "base/cleanup.h"
#include "base/u64_map.h"
#include "model/profile.h"
#include "model/wait_kind.h"
#include "stacks/stack_builder.h"

#define WAIT_STACK_NO_WAKER "[waker not known]" /* the waker's record was lost */

/* A cache of kinds of waits: equal ones are looked up once. Zeros are an empty one. */
struct wait_kinds {
	struct u64_map by_facts; /* kernel stack of the profile, system call and state -> enum wait_kind */
};
void wait_kinds_done(struct wait_kinds *kinds);
/* Fills in the stacks of a wait, which stands for nr_waits, and finds its kind: by the thread's state, its system call and the functions of
 * the kernel's stack. These include the scheduler's functions, which are then removed from the sample. `user_stack`: that of the key, or
 * its replacement. 0 or -ENOMEM. */
MUST_CHECK int wait_stack_make(struct wait_kinds *kinds, struct stack_builder *builder, const struct profile *profile,
			       const struct sonde_wait_key *key, uint64_t user_stack, uint64_t nr_waits, struct profile_sample *sample,
			       enum wait_kind *ret_kind);
/* Puts the mark at the leaf end of the sample's kernel stack or, if there is none, of its user stack. 0 or -ENOMEM. */
MUST_CHECK int wait_stack_mark(struct profile *profile, enum wait_kind kind, struct profile_sample *sample);
/* Puts a mark with this text at the root end of the sample's user stack; if there is none, the mark is the stack. 0 or -ENOMEM. */
MUST_CHECK int wait_stack_root(struct profile *profile, const char *text, struct profile_sample *sample);
/* Puts the waker's stacks beyond the sample's leaf end: a mark, the kernel's frames leaf first, the user's leaf first, then a mark with the
 * thread's name. NULL: the waker is not known. 0 or -ENOMEM. */
MUST_CHECK int wait_stack_join(struct profile *profile, const struct profile_sample *waker, struct profile_sample *sample);
