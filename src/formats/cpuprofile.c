// SPDX-License-Identifier: Apache-2.0
/* Writes V8's CPU profile (Profiler.Profile of the DevTools protocol). It has a single thread: ours are below the root by name and follow
 * each other on the time line. Samples are at their own times only if there is just one thread and it has time stamps. */
#include <errno.h>
#include <stdlib.h>

#include "base/number.h"
#include "codec/json.h"
#include "formats/formats.h"
#include "frames/call_nodes.h"
#include "frames/frame_list.h"
#include "frames/timeline.h"
#include "frames/tracks.h"

#define ROOT 0U
#define IDLE 1U
#define NODE_ID(node) ((uint64_t)(node) + 1) /* V8 numbers from 1 */

struct v8 {
	struct json json;
	const struct profile *profile;
	struct frame_list frames; /* numbers after its own: (root), (idle), then the tracks */
	struct tracks tracks;
	struct call_nodes nodes;
	/* Texts of all frames, concatenated: built once and copied. */
	struct buffer call_frames;
	size_t *ends;		   /* by frame: where its text ends */
	uint32_t *leaf;	       /* by index in tracks.samples: the node */
	int64_t *hits;	       /* by node */
	uint32_t *first_child; /* by node, and one more: index into `children` */
	uint32_t *children;
	int64_t written_us; /* start of the last entry on the time line */
};

static int add_nodes(struct v8 *v8)
{
	uint32_t root_frame = v8->frames.nr_entries, nr_samples = profile_nr_samples(v8->profile);
	int err = 0;

	v8->leaf = malloc(((size_t)nr_samples + 1) * sizeof(*v8->leaf));
	if (!v8->leaf || call_nodes_add(&v8->nodes, PROFILE_NONE, root_frame) != ROOT ||
	    call_nodes_add(&v8->nodes, ROOT, root_frame + 1) != IDLE)
		return -ENOMEM;
	for (uint32_t i = 0; i < v8->tracks.nr && !err; i++) {
		const struct track *track = &v8->tracks.all[i];
		uint32_t node = call_nodes_add(&v8->nodes, ROOT, root_frame + 2 + i);

		if (node == PROFILE_NONE)
			return -ENOMEM;
		for (uint32_t j = track->first; j < track->first + track->nr && !err; j++)
			err = call_nodes_add_sample(&v8->nodes, node, v8->profile, profile_sample_at(v8->profile, v8->tracks.samples[j]),
						    v8->frames.of_location, &v8->leaf[j]);
	}
	return err;
}

static int count_hits(struct v8 *v8)
{
	v8->hits = calloc(v8->nodes.nr, sizeof(*v8->hits));
	if (!v8->hits)
		return -ENOMEM;
	for (uint32_t i = 0; i < profile_nr_samples(v8->profile); i++) {
		int64_t *hits = &v8->hits[v8->leaf[i]];

		*hits = number_sum(*hits, profile_sample_at(v8->profile, v8->tracks.samples[i])->values[profile_shown_value(v8->profile)]);
	}
	return 0;
}

static int list_children(struct v8 *v8)
{
	uint32_t nr = v8->nodes.nr;

	v8->first_child = calloc((size_t)nr + 2, sizeof(*v8->first_child));
	v8->children = calloc((size_t)nr, sizeof(*v8->children));
	if (!v8->first_child || !v8->children)
		return -ENOMEM;
	for (uint32_t i = 1; i < nr; i++)
		v8->first_child[v8->nodes.all[i].parent + 2]++;
	for (uint32_t i = 2; i < nr + 2; i++)
		v8->first_child[i] += v8->first_child[i - 1];
	for (uint32_t i = 1; i < nr; i++)
		v8->children[v8->first_child[v8->nodes.all[i].parent + 1]++] = i; /* this moves the start of each list to its final index */
	return 0;
}

static int write_call_frame(struct v8 *v8, uint32_t frame)
{
	CLEANUP(buffer_done) struct buffer name = BUFFER_INIT(v8->json.buffer->max);
	struct json json = { .buffer = &v8->call_frames };
	const char *file = "";
	int64_t line = -1;

	if (frame < v8->frames.nr_entries) {
		const struct frame_entry *entry = &v8->frames.entries[frame];

		buffer_text(&name, frame_entry_name(v8->profile, entry));
		file = frame_entry_file(v8->profile, entry);
		line = (int64_t)profile_function_at(v8->profile, entry->function)->line - 1;
	} else if (frame < v8->frames.nr_entries + 2) {
		buffer_text(&name, frame == v8->frames.nr_entries ? "(root)" : "(idle)");
	} else {
		track_name(v8->profile, &v8->tracks.all[frame - v8->frames.nr_entries - 2], &name);
	}
	if (name.err)
		return name.err;
	json_open(&json, '{');
	json_key_text(&json, "functionName", name.data);
	json_key_text(&json, "scriptId", "0");
	json_key_text(&json, "url", file);
	json_key(&json, "lineNumber");
	json_i64(&json, line);
	json_key(&json, "columnNumber");
	json_i64(&json, -1);
	json_close(&json, '}');
	return 0;
}

static int write_call_frames(struct v8 *v8)
{
	uint32_t nr = v8->frames.nr_entries + 2 + v8->tracks.nr;
	int err = 0;

	v8->ends = malloc(nr * sizeof(*v8->ends));
	if (!v8->ends)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr && !err; i++) {
		err = write_call_frame(v8, i);
		v8->ends[i] = v8->call_frames.size;
	}
	return err ? err : v8->call_frames.err;
}

static void write_node(struct v8 *v8, uint32_t node)
{
	struct json *json = &v8->json;
	uint32_t frame = v8->nodes.all[node].frame;
	size_t from = frame ? v8->ends[frame - 1] : 0;

	json_line(json);
	json_open(json, '{');
	json_key_u64(json, "id", NODE_ID(node));
	json_key(json, "callFrame");
	buffer_append(json->buffer, v8->call_frames.data + from, v8->ends[frame] - from);
	json->comma = true;
	json_key(json, "hitCount");
	json_fixed(json, v8->hits[node] > 0 ? v8->hits[node] : 0, 0);
	if (v8->first_child[node] < v8->first_child[node + 1]) {
		json_key(json, "children");
		json_open(json, '[');
		for (uint32_t i = v8->first_child[node]; i < v8->first_child[node + 1]; i++)
			json_u64(json, NODE_ID(v8->children[i]));
		json_close(json, ']');
	}
	json_close(json, '}');
}

static struct timeline timeline_of(const struct v8 *v8)
{
	uint32_t shown = profile_shown_value(v8->profile);

	return (struct timeline){
		.scale = value_scale_of(v8->profile, shown),
		.first_ns = first_time_ns(v8->profile),
		.type = shown,
		.is_timed = v8->tracks.nr == 1 && v8->tracks.all[0].is_timed,
	};
}

static int64_t place_us(const struct timeline *timeline, int64_t at)
{
	return timeline->scale.is_time ? at / 1000 : at;
}

static void write_samples(struct v8 *v8)
{
	struct timeline timeline = timeline_of(v8);

	json_key(&v8->json, "samples");
	json_open(&v8->json, '[');
	for (uint32_t i = 0; i < profile_nr_samples(v8->profile); i++) {
		struct step step = timeline_step(&timeline, profile_sample_at(v8->profile, v8->tracks.samples[i]));

		if (step.gap)
			json_u64(&v8->json, NODE_ID(IDLE));
		json_u64(&v8->json, NODE_ID(v8->leaf[i]));
	}
	json_u64(&v8->json, NODE_ID(IDLE)); /* ends the last sample */
	json_close(&v8->json, ']');
}

/* Writes the distance to the start of the previous entry, rounded so that the sums are exact. */
static void write_delta(struct v8 *v8, int64_t begins_us)
{
	json_fixed(&v8->json, begins_us - v8->written_us, 0);
	v8->written_us = begins_us;
}

static void write_deltas(struct v8 *v8)
{
	struct timeline timeline = timeline_of(v8);

	json_key(&v8->json, "timeDeltas");
	json_open(&v8->json, '[');
	for (uint32_t i = 0; i < profile_nr_samples(v8->profile); i++) {
		int64_t at = timeline.at;
		struct step step = timeline_step(&timeline, profile_sample_at(v8->profile, v8->tracks.samples[i]));

		if (step.gap)
			write_delta(v8, place_us(&timeline, at));
		write_delta(v8, place_us(&timeline, timeline.at - step.weight));
	}
	write_delta(v8, place_us(&timeline, timeline.at));
	json_close(&v8->json, ']');
}

static void write_nodes(struct v8 *v8)
{
	json_key(&v8->json, "nodes");
	json_open(&v8->json, '[');
	for (uint32_t i = 0; i < v8->nodes.nr && !v8->json.buffer->err; i++)
		write_node(v8, i);
	json_close(&v8->json, ']');
}

static int prepare(struct v8 *v8)
{
	int err = frame_list_find(v8->profile, false, &v8->frames);

	if (!err)
		err = tracks_find(v8->profile, &v8->tracks);
	if (!err)
		err = add_nodes(v8);
	if (!err)
		err = count_hits(v8);
	if (!err)
		err = write_call_frames(v8);
	return err ? err : list_children(v8);
}

static void v8_done(struct v8 *v8)
{
	frame_list_done(&v8->frames);
	tracks_done(&v8->tracks);
	call_nodes_done(&v8->nodes);
	buffer_done(&v8->call_frames);
	free(v8->ends);
	free(v8->leaf);
	free(v8->hits);
	free(v8->first_child);
	free(v8->children);
}

int write_cpuprofile(const struct profile *profile, const struct export_options *options, struct buffer *buffer)
{
	CLEANUP(v8_done) struct v8 v8 = { .json = { .buffer = buffer }, .profile = profile, .call_frames = BUFFER_INIT(buffer->max) };
	int64_t start_us = (int64_t)(first_time_ns(profile) / 1000);
	int err = prepare(&v8);

	if (err)
		return err;
	json_open(&v8.json, '{');
	write_nodes(&v8);
	json_line(&v8.json);
	write_samples(&v8);
	json_line(&v8.json);
	write_deltas(&v8);
	json_key(&v8.json, "startTime");
	json_fixed(&v8.json, start_us, 0);
	json_key(&v8.json, "endTime");
	json_fixed(&v8.json, v8.written_us > INT64_MAX - start_us ? INT64_MAX : start_us + v8.written_us, 0);
	json_close(&v8.json, '}');
	buffer_text(buffer, "\n");
	return 0;
}
