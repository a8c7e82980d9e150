/* SPDX-License-Identifier: Apache-2.0 */
/* mark_kind: what a frame of kind FRAME_MARK stands for, by its name. Only MARK_CUT says that something is missing. */
#pragma once

/* X(id, name): the name in the page's data. */
#define MARK_KIND_LIST(X) \
	X(CUT, "mark")        /* frames are missing here */ \
	X(RUNNING, "running") /* wall: the thread was on a CPU */ \
	X(READY, "ready")     /* wall: it could have run, but had no CPU */ \
	X(BLOCKED, "blocked") /* wall: it waited */ \
	X(WAIT, "wait")       /* the kind of a wait */ \
	X(WAKER, "waker")     /* what parts a wait from its waker, and the waker's name */

#define X(id, name) MARK_##id,
enum mark_kind { MARK_KIND_LIST(X) MARK_KIND_COUNT };
#undef X

enum mark_kind mark_kind_of(const char *name);
const char *mark_kind_name(enum mark_kind kind);
