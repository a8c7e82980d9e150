/* SPDX-License-Identifier: Apache-2.0 */
/* tracks: samples by thread and in the order of time. A thread that changed its name has one track per name. */
#pragma once
#include "base/buffer.h"
#include "model/profile.h"

struct track {
	uint32_t tgid, tid, comm;
	uint32_t first, nr; /* places in tracks.samples */
	bool is_timed;	    /* all of its samples have their time */
};

struct tracks {
	uint32_t *samples; /* numbers of samples: by process, thread, name, time */
	struct track *all;
	uint32_t nr;
};

/* 0 or -ENOMEM. */
MUST_CHECK int tracks_find(const struct profile *profile, struct tracks *ret_tracks);
void tracks_done(struct tracks *tracks);
/* "comm (pid/tid)", or what of it is known. */
void track_name(const struct profile *profile, const struct track *track, struct buffer *name);
/* The numbers of all samples by time, those without one first; the caller frees them. NULL: no memory. */
uint32_t *samples_by_time(const struct profile *profile);
/* When the first sample was taken; the start of the run where they have no time. */
uint64_t first_time_ns(const struct profile *profile);
