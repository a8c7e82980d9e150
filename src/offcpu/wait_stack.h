/* SPDX-License-Identifier: Apache-2.0 */
/* wait_stack: what is added to the stacks of a wait: a mark that names its kind, and the stacks of who ended it. */
#pragma once
#include "abi/wait.h"
#include "base/cleanup.h"
#include "base/u64_map.h"
#include "model/profile.h"
#include "model/wait_kind.h"
#include "stacks/stack_builder.h"

#define WAIT_STACK_INTERRUPT "[interrupt]"       /* stands for the thread's name where none ended it */
#define WAIT_STACK_NO_WAKER "[waker not known]"  /* the record of it was lost */

/* Kinds of waits that were found, so that equal ones are looked for once. Zeros are an empty one. */
struct wait_kinds {
	struct u64_map by_facts; /* a kernel stack of the profile, a system call and a state -> enum wait_kind */
};
void wait_kinds_done(struct wait_kinds *kinds);
/* Fills in the stacks of a wait, which stands for so many, and finds its kind: by the thread's state, its system call and the functions of
 * the kernel's stack, those of the scheduler, too; these are not in the sample's. `user_stack`: that of the key, or the one that stands for
 * it. 0 or -ENOMEM. */
MUST_CHECK int wait_stack_make(struct wait_kinds *kinds, struct stack_builder *builder, const struct profile *profile,
			       const struct sonde_wait_key *key, uint64_t user_stack, uint64_t nr_waits, struct profile_sample *sample,
			       enum wait_kind *ret_kind);
/* Puts the mark at the leaf end of the sample's kernel stack or, where there is none, of its user stack. 0 or -ENOMEM. */
MUST_CHECK int wait_stack_mark(struct profile *profile, enum wait_kind kind, struct profile_sample *sample);
/* Puts a mark of that text at the root end of the sample's user stack; where there is none the mark is one. 0 or -ENOMEM. */
MUST_CHECK int wait_stack_root(struct profile *profile, const char *text, struct profile_sample *sample);
/* Puts the waker's stacks beyond the sample's leaf end: a mark, the kernel's frames leaf first, the user's leaf first, then a mark with the
 * thread's name. NULL: it is not known. 0 or -ENOMEM. */
MUST_CHECK int wait_stack_join(struct profile *profile, const struct profile_sample *waker, struct profile_sample *sample);
