/* SPDX-License-Identifier: Apache-2.0 */
/* naming_thread: makes the profiles of closed windows and writes them, in parallel to the recording thread. A file that takes half a minute
 * to read delays names, not samples. Has its own workers for untrusted files. One thread calls these functions. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "engine/measurement.h"
#include "engine/window.h"
#include "output/outputs.h"

#define NAMING_THREAD_MAX 2 /* windows it can hold */

struct naming_thread_options { /* borrowed for the thread's life */
	struct measurement *measurement;
	struct outputs *outputs;    /* NULL: the measurement prints the windows itself */
	const char *vmlinux;
	bool addresses, as_linked;  /* as in struct naming */
};

struct naming_thread;
/* 0; -ENOMEM; or as parser_new and proxy_new. */
MUST_CHECK int naming_thread_new(const struct naming_thread_options *options, struct diag *diag, struct naming_thread **ret_thread);
void naming_thread_want_lines(struct naming_thread *thread, bool lines); /* source lines, too; call it before the first window */
/* Names that are kept from window to window take at most so many bytes, from the next window on; 8 MiB. */
void naming_thread_bound(struct naming_thread *thread, uint64_t max_bytes);
void naming_thread_free(struct naming_thread *thread); /* waits for the thread to end; takes NULL */
int naming_thread_fd(const struct naming_thread *thread); /* readable when a window is done; for epoll, borrowed */
uint32_t naming_thread_nr(const struct naming_thread *thread); /* its windows, including those done but not yet taken */
/* Takes over the window. Only if it holds less than NAMING_THREAD_MAX. */
void naming_thread_give(struct naming_thread *thread, struct window *window);
/* Makes it read no more files for the oldest unfinished window. That window is written with addresses instead of names not known yet. */
void naming_thread_hurry(struct naming_thread *thread);

/* A window that is done. */
struct named_window {
	struct window *window;
	struct profile *profile;  /* NULL: err says why */
	uint32_t nr_skipped;      /* files not read for lack of time */
	int err;                  /* of making the profile, or the first of writing it */
	struct diag diag;
};
/* Returns true and the oldest window, if it is done. The caller owns window and profile. */
bool naming_thread_take(struct naming_thread *thread, struct named_window *ret_named);
