/* SPDX-License-Identifier: Apache-2.0 */
/* show: a profile as tables for a person at a terminal, of the value that it shows. Shares are of all samples. Names are strangers':
 * control characters and what turns the writing direction become '?', and where there is a width, what does not fit ends in an ellipsis.
 * Each function appends to the buffer and gives 0 or a negative errno; the buffer's own sticky error is the caller's to check. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/diag.h"
#include "model/profile.h"

struct show_options {
	uint32_t width;     /* columns; 0: lines are as long as they are */
	uint32_t max_lines; /* of a table; 0: as many as the table has by itself */
	double min_percent; /* tree: branches below are left out, and counted */
	bool colour;
};

/* X(id, word, heading) */
#define SHOW_BY_LIST(X) \
	X(PROCESS, "process", "PROCESS") \
	X(THREAD, "thread", "THREAD") \
	X(CPU, "cpu", "CPU") \
	X(FILE, "file", "FILE") \
	X(LANGUAGE, "language", "LANGUAGE")

#define X(id, word, heading) SHOW_BY_##id,
enum show_by { SHOW_BY_LIST(X) SHOW_BY_COUNT };
#undef X

/* 0 or -EINVAL (diag lists what there is). */
MUST_CHECK int show_by_name(const char *word, struct diag *diag, enum show_by *ret_by);

/* What was recorded, what was lost, by process, the hottest functions; histograms of no stack. */
MUST_CHECK int show_summary(const struct profile *profile, const struct show_options *options, struct buffer *buffer);
MUST_CHECK int show_top(const struct profile *profile, const struct show_options *options, struct buffer *buffer);
/* The call tree, root first; a function that calls itself directly is one node, which says how deep. */
MUST_CHECK int show_tree(const struct profile *profile, const struct show_options *options, struct buffer *buffer);
/* The tree of those who call the functions of that name, or of what they call. -ENOENT: there is none (diag). */
MUST_CHECK int show_callers(const struct profile *profile, const char *function, const struct show_options *options, struct buffer *buffer,
			    struct diag *diag);
MUST_CHECK int show_callees(const struct profile *profile, const char *function, const struct show_options *options, struct buffer *buffer,
			    struct diag *diag);
MUST_CHECK int show_table(const struct profile *profile, enum show_by by, const struct show_options *options, struct buffer *buffer);
