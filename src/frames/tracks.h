/* SPDX-License-Identifier: Apache-2.0 */
/* tracks: samples by thread, in order of time. A thread that changed its name has one track per name. */
#pragma once
#include "base/buffer.h"
#include "model/profile.h"

struct track {
	uint32_t tgid, tid, comm;
	uint32_t first, nr; /* range in tracks.samples */
	bool is_timed;	    /* all of its samples have times */
};

struct tracks {
	uint32_t *samples; /* sample numbers, sorted by process, thread, name, time */
	struct track *all;
	uint32_t nr;
};

/* 0 or -ENOMEM. */
MUST_CHECK int tracks_find(const struct profile *profile, struct tracks *ret_tracks);
void tracks_done(struct tracks *tracks);
/* "comm (pid/tid)", or the known parts of it. */
void track_name(const struct profile *profile, const struct track *track, struct buffer *name);
/* The numbers of all samples by time, samples without a time first. The caller frees them. NULL: no memory. */
uint32_t *samples_by_time(const struct profile *profile);
/* The time of the first sample; the start of the run if samples have no times. */
uint64_t first_time_ns(const struct profile *profile);
