/* SPDX-License-Identifier: Apache-2.0 */
/* show: a profile as tables for a terminal, of the value that it shows. Shares are of all samples. Names are untrusted: control characters
 * and those that change the writing direction become '?'. With a width, longer lines end in an ellipsis. Each function appends to the
 * buffer and returns 0 or a negative errno; the caller checks the buffer's own sticky error. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/diag.h"
#include "model/profile.h"

struct show_options {
	uint32_t width;     /* columns; 0: lines are not cut */
	uint32_t max_lines; /* of a table; 0: the table's own default */
	double min_percent; /* tree: smaller branches are left out and counted */
	bool sort_total;    /* of functions, files, languages: by total instead of self */
	bool colour;
};

/* X(id, word, heading) */
#define SHOW_BY_LIST(X) \
	X(COMM, "comm", "COMMAND") \
	X(PROCESS, "process", "PROCESS") \
	X(THREAD, "thread", "THREAD") \
	X(CPU, "cpu", "CPU") \
	X(FILE, "file", "FILE") \
	X(LANGUAGE, "language", "LANGUAGE") \
	X(STATE, "state", "STATE") \
	X(LABEL, "label", "LABEL") \
	X(SPAN, "span", "SPAN AND TRACE, PROCESS") \
	X(TRACE, "trace", "TRACE")

#define X(id, word, heading) SHOW_BY_##id,
enum show_by { SHOW_BY_LIST(X) SHOW_BY_COUNT };
#undef X

/* 0 or -EINVAL (diag lists the words). */
MUST_CHECK int show_by_name(const char *word, struct diag *diag, enum show_by *ret_by);

/* The run, its losses, the commands, the hottest functions, and histograms that belong to no stack. */
MUST_CHECK int show_summary(const struct profile *profile, const struct show_options *options, struct buffer *buffer);
MUST_CHECK int show_top(const struct profile *profile, const struct show_options *options, struct buffer *buffer);
/* The call tree, root first. A function that calls itself directly is one node, with the depth of the recursion. */
MUST_CHECK int show_tree(const struct profile *profile, const struct show_options *options, struct buffer *buffer);
/* The tree of the callers of the functions with that name, or of what they call. -ENOENT: none (diag). */
MUST_CHECK int show_callers(const struct profile *profile, const char *function, const struct show_options *options, struct buffer *buffer,
			    struct diag *diag);
MUST_CHECK int show_callees(const struct profile *profile, const char *function, const struct show_options *options, struct buffer *buffer,
			    struct diag *diag);
MUST_CHECK int show_table(const struct profile *profile, enum show_by by, const struct show_options *options, struct buffer *buffer);
