/* SPDX-License-Identifier: Apache-2.0 */
/* naming_thread: makes the profiles of closed windows and writes them, beside the thread that records: a file that takes half a minute to
 * read delays names, not samples. Its readers of strangers' files are its own. One thread calls these. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "engine/measurement.h"
#include "engine/window.h"
#include "output/outputs.h"

#define NAMING_THREAD_MAX 2 /* windows that it may have at a time */

struct naming_thread_options { /* borrowed for the thread's life */
	struct measurement *measurement;
	struct outputs *outputs;    /* NULL: the measurement tells itself what is in a window */
	const char *vmlinux;
};

struct naming_thread;
/* 0, -ENOMEM; as parser_new and proxy_new. */
MUST_CHECK int naming_thread_new(const struct naming_thread_options *options, struct diag *diag, struct naming_thread **ret_thread);
void naming_thread_want_lines(struct naming_thread *thread, bool lines); /* source lines, too; before the first window */
void naming_thread_free(struct naming_thread *thread); /* waits for its end; takes NULL */
int naming_thread_fd(const struct naming_thread *thread); /* readable when a window is done; for epoll, borrowed */
uint32_t naming_thread_nr(const struct naming_thread *thread); /* windows that it has, those that are done and were not taken among them */
/* Takes over the window. Not when it has NAMING_THREAD_MAX. */
void naming_thread_give(struct naming_thread *thread, struct window *window);
/* Has it read no more files for the window that it has had longest: that is written with addresses where names are not known yet. */
void naming_thread_hurry(struct naming_thread *thread);

/* A window that is done. */
struct named_window {
	struct window *window;
	struct profile *profile;  /* NULL: err says why */
	uint32_t nr_skipped;      /* files that were not read in haste */
	int err;                  /* of making it, or the first of writing it */
	struct diag diag;
};
/* The next one, if it is done: window and profile are the caller's. */
bool naming_thread_take(struct naming_thread *thread, struct named_window *ret_named);
