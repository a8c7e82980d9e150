/* SPDX-License-Identifier: Apache-2.0 */
/* view: a profile in the viewer's form: the call tree once, and samples that refer to it. Samples without a time are merged if they end in
 * the same node of the same thread with the same labels; samples with a time are in its order. */
#pragma once
#include "codec/json.h"
#include "frames/tree.h"

struct view_thread {
	uint32_t comm, process, tgid, tid; /* comm, process: strings */
};

struct view_sample {
	uint32_t node, thread, cpu; /* cpu: PROFILE_NONE if not known */
	uint32_t labels;	    /* the profile's number of their set */
	uint64_t time_ns;	    /* since 1970; 0: not known */
	int64_t values[PROFILE_MAX_VALUES];
};

struct view {
	struct tree tree;
	struct view_thread *threads;
	struct view_sample *samples; /* ascending by time, those without one first */
	uint32_t nr_threads, nr_samples;
};

/* 0 or -ENOMEM. */
MUST_CHECK int view_build(const struct profile *profile, bool threads, struct view *ret_view);
void view_done(struct view *view);
struct annotated_code; /* show/annotation.h */
/* Writes the JSON object that assets/profile.js reads (docs/internals/viewer.md). `code`: NULL for none. 0, -ENOMEM or -EFBIG; the buffer
 * records other errors. */
MUST_CHECK int view_write(const struct view *view, const struct profile *profile, const struct annotated_code *code, struct json *json);
