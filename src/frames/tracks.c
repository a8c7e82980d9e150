// SPDX-License-Identifier: Apache-2.0
#include "frames/tracks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/order.h"
#include "frames/text_ranks.h"

struct sorter {
	const struct profile *profile;
	const uint32_t *ranks; /* text_ranks; NULL: names are ignored */
};

static int order_by_time(const void *left, const void *right, void *arg)
{
	const struct sorter *sorter = arg;
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	int by = order(profile_sample_at(sorter->profile, a)->time_ns, profile_sample_at(sorter->profile, b)->time_ns);

	return by ? by : order(a, b);
}

static int order_by_thread(const void *left, const void *right, void *arg)
{
	const struct sorter *sorter = arg;
	const struct profile_sample *a = profile_sample_at(sorter->profile, *(const uint32_t *)left),
				    *b = profile_sample_at(sorter->profile, *(const uint32_t *)right);
	int by = order(a->tgid, b->tgid);

	if (!by)
		by = order(a->tid, b->tid);
	if (!by)
		by = order(sorter->ranks[a->comm], sorter->ranks[b->comm]);
	return by ? by : order_by_time(left, right, arg);
}

static uint32_t *sort_samples(struct sorter sorter, int (*compare)(const void *, const void *, void *))
{
	uint32_t nr = profile_nr_samples(sorter.profile), *samples = malloc(((size_t)nr + 1) * sizeof(*samples));

	for (uint32_t i = 0; samples && i < nr; i++)
		samples[i] = i;
	if (samples)
		qsort_r(samples, nr, sizeof(*samples), compare, &sorter);
	return samples;
}

uint32_t *samples_by_time(const struct profile *profile)
{
	return sort_samples((struct sorter){ .profile = profile }, order_by_time);
}

uint64_t first_time_ns(const struct profile *profile)
{
	uint64_t first_ns = UINT64_MAX;

	for (uint32_t i = 0; i < profile_nr_samples(profile); i++) {
		uint64_t time_ns = profile_sample_at(profile, i)->time_ns;

		if (time_ns && time_ns < first_ns)
			first_ns = time_ns;
	}
	return first_ns == UINT64_MAX ? profile_account_of(profile)->start_unix_ns : first_ns;
}

static bool is_of(const struct track *track, const struct profile_sample *sample)
{
	return track->tgid == sample->tgid && track->tid == sample->tid && track->comm == sample->comm;
}

int tracks_find(const struct profile *profile, struct tracks *ret_tracks)
{
	uint32_t nr_samples = profile_nr_samples(profile);
	CLEANUP(freep) uint32_t *ranks = text_ranks(profile, false);
	CLEANUP(tracks_done)
	struct tracks tracks = { .samples = ranks ? sort_samples((struct sorter){ profile, ranks }, order_by_thread) : NULL };

	tracks.all = calloc((size_t)nr_samples + 1, sizeof(*tracks.all));
	if (!tracks.samples || !tracks.all)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr_samples; i++) {
		const struct profile_sample *sample = profile_sample_at(profile, tracks.samples[i]);
		struct track *track = tracks.nr ? &tracks.all[tracks.nr - 1] : NULL;

		if (!track || !is_of(track, sample)) {
			track = &tracks.all[tracks.nr++];
			*track = (struct track){ sample->tgid, sample->tid, sample->comm, i, 0, true };
		}
		track->nr++;
		track->is_timed &= sample->time_ns != 0;
	}
	*ret_tracks = tracks;
	tracks = (struct tracks){ 0 };
	return 0;
}

void tracks_done(struct tracks *tracks)
{
	free(tracks->samples);
	free(tracks->all);
	*tracks = (struct tracks){ 0 };
}

void track_name(const struct profile *profile, const struct track *track, struct buffer *name)
{
	const char *comm = profile_string_text(profile, track->comm);

	buffer_text(name, *comm ? comm : "[no name]");
	if (track->tgid && track->tid)
		buffer_printf(name, " (%" PRIu32 "/%" PRIu32 ")", track->tgid, track->tid);
	else if (track->tgid || track->tid)
		buffer_printf(name, " (%" PRIu32 ")", track->tgid ? track->tgid : track->tid);
}
