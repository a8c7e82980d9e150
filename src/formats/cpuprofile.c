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

struct cpu_profile {
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

static int add_nodes(struct cpu_profile *cpu)
{
	uint32_t root_frame = cpu->frames.nr_entries, nr_samples = profile_nr_samples(cpu->profile);
	int err = 0;

	cpu->leaf = malloc(((size_t)nr_samples + 1) * sizeof(*cpu->leaf));
	if (!cpu->leaf || call_nodes_add(&cpu->nodes, PROFILE_NONE, root_frame) != ROOT ||
	    call_nodes_add(&cpu->nodes, ROOT, root_frame + 1) != IDLE)
		return -ENOMEM;
	for (uint32_t i = 0; i < cpu->tracks.nr && !err; i++) {
		const struct track *track = &cpu->tracks.all[i];
		uint32_t node = call_nodes_add(&cpu->nodes, ROOT, root_frame + 2 + i);

		if (node == PROFILE_NONE)
			return -ENOMEM;
		for (uint32_t j = track->first; j < track->first + track->nr && !err; j++)
			err = call_nodes_add_sample(&cpu->nodes, node, cpu->profile,
						    profile_sample_at(cpu->profile, cpu->tracks.samples[j]), cpu->frames.of_location,
						    &cpu->leaf[j]);
	}
	return err;
}

static int count_hits(struct cpu_profile *cpu)
{
	cpu->hits = calloc(cpu->nodes.nr, sizeof(*cpu->hits));
	if (!cpu->hits)
		return -ENOMEM;
	for (uint32_t i = 0; i < profile_nr_samples(cpu->profile); i++) {
		const struct profile_sample *sample = profile_sample_at(cpu->profile, cpu->tracks.samples[i]);
		int64_t *hits = &cpu->hits[cpu->leaf[i]];

		*hits = number_sum(*hits, sample->values[profile_shown_value(cpu->profile)]);
	}
	return 0;
}

static int list_children(struct cpu_profile *cpu)
{
	uint32_t nr = cpu->nodes.nr;

	cpu->first_child = calloc((size_t)nr + 2, sizeof(*cpu->first_child));
	cpu->children = calloc((size_t)nr, sizeof(*cpu->children));
	if (!cpu->first_child || !cpu->children)
		return -ENOMEM;
	for (uint32_t i = 1; i < nr; i++)
		cpu->first_child[cpu->nodes.all[i].parent + 2]++;
	for (uint32_t i = 2; i < nr + 2; i++)
		cpu->first_child[i] += cpu->first_child[i - 1];
	for (uint32_t i = 1; i < nr; i++)
		/* this moves the start of each list to its final index */
		cpu->children[cpu->first_child[cpu->nodes.all[i].parent + 1]++] = i;
	return 0;
}

static int write_call_frame(struct cpu_profile *cpu, uint32_t frame)
{
	CLEANUP(buffer_done) struct buffer name = BUFFER_INIT(cpu->json.buffer->max);
	struct json json = { .buffer = &cpu->call_frames };
	const char *file = "";
	int64_t line = -1;

	if (frame < cpu->frames.nr_entries) {
		const struct frame_entry *entry = &cpu->frames.entries[frame];

		buffer_text(&name, frame_entry_name(cpu->profile, entry));
		file = frame_entry_file(cpu->profile, entry);
		line = (int64_t)profile_function_at(cpu->profile, entry->function)->line - 1;
	} else if (frame < cpu->frames.nr_entries + 2) {
		buffer_text(&name, frame == cpu->frames.nr_entries ? "(root)" : "(idle)");
	} else {
		track_name(cpu->profile, &cpu->tracks.all[frame - cpu->frames.nr_entries - 2], &name);
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

static int write_call_frames(struct cpu_profile *cpu)
{
	uint32_t nr = cpu->frames.nr_entries + 2 + cpu->tracks.nr;
	int err = 0;

	cpu->ends = malloc(nr * sizeof(*cpu->ends));
	if (!cpu->ends)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr && !err; i++) {
		err = write_call_frame(cpu, i);
		cpu->ends[i] = cpu->call_frames.size;
	}
	return err ? err : cpu->call_frames.err;
}

static void write_node(struct cpu_profile *cpu, uint32_t node)
{
	struct json *json = &cpu->json;
	uint32_t frame = cpu->nodes.all[node].frame;
	size_t from = frame ? cpu->ends[frame - 1] : 0;

	json_line(json);
	json_open(json, '{');
	json_key_u64(json, "id", NODE_ID(node));
	json_key(json, "callFrame");
	buffer_append(json->buffer, cpu->call_frames.data + from, cpu->ends[frame] - from);
	json->comma = true;
	json_key(json, "hitCount");
	json_fixed(json, cpu->hits[node] > 0 ? cpu->hits[node] : 0, 0);
	if (cpu->first_child[node] < cpu->first_child[node + 1]) {
		json_key(json, "children");
		json_open(json, '[');
		for (uint32_t i = cpu->first_child[node]; i < cpu->first_child[node + 1]; i++)
			json_u64(json, NODE_ID(cpu->children[i]));
		json_close(json, ']');
	}
	json_close(json, '}');
}

static struct timeline timeline_of(const struct cpu_profile *cpu)
{
	uint32_t shown = profile_shown_value(cpu->profile);

	return (struct timeline){
		.scale = value_scale_of(cpu->profile, shown),
		.first_ns = first_time_ns(cpu->profile),
		.type = shown,
		.is_timed = cpu->tracks.nr == 1 && cpu->tracks.all[0].is_timed,
	};
}

static int64_t place_us(const struct timeline *timeline, int64_t at)
{
	return timeline->scale.is_time ? at / 1000 : at;
}

static void write_samples(struct cpu_profile *cpu)
{
	struct timeline timeline = timeline_of(cpu);

	json_key(&cpu->json, "samples");
	json_open(&cpu->json, '[');
	for (uint32_t i = 0; i < profile_nr_samples(cpu->profile); i++) {
		struct step step = timeline_step(&timeline, profile_sample_at(cpu->profile, cpu->tracks.samples[i]));

		if (step.gap)
			json_u64(&cpu->json, NODE_ID(IDLE));
		json_u64(&cpu->json, NODE_ID(cpu->leaf[i]));
	}
	json_u64(&cpu->json, NODE_ID(IDLE)); /* ends the last sample */
	json_close(&cpu->json, ']');
}

/* Writes the distance to the start of the previous entry, rounded so that the sums are exact. */
static void write_delta(struct cpu_profile *cpu, int64_t begins_us)
{
	json_fixed(&cpu->json, begins_us - cpu->written_us, 0);
	cpu->written_us = begins_us;
}

static void write_deltas(struct cpu_profile *cpu)
{
	struct timeline timeline = timeline_of(cpu);

	json_key(&cpu->json, "timeDeltas");
	json_open(&cpu->json, '[');
	for (uint32_t i = 0; i < profile_nr_samples(cpu->profile); i++) {
		int64_t at = timeline.at;
		struct step step = timeline_step(&timeline, profile_sample_at(cpu->profile, cpu->tracks.samples[i]));

		if (step.gap)
			write_delta(cpu, place_us(&timeline, at));
		write_delta(cpu, place_us(&timeline, timeline.at - step.weight));
	}
	write_delta(cpu, place_us(&timeline, timeline.at));
	json_close(&cpu->json, ']');
}

static void write_nodes(struct cpu_profile *cpu)
{
	json_key(&cpu->json, "nodes");
	json_open(&cpu->json, '[');
	for (uint32_t i = 0; i < cpu->nodes.nr && !cpu->json.buffer->err; i++)
		write_node(cpu, i);
	json_close(&cpu->json, ']');
}

static int prepare(struct cpu_profile *cpu)
{
	int err = frame_list_find(cpu->profile, false, &cpu->frames);

	if (!err)
		err = tracks_find(cpu->profile, &cpu->tracks);
	if (!err)
		err = add_nodes(cpu);
	if (!err)
		err = count_hits(cpu);
	if (!err)
		err = write_call_frames(cpu);
	return err ? err : list_children(cpu);
}

static void cpu_profile_done(struct cpu_profile *cpu)
{
	frame_list_done(&cpu->frames);
	tracks_done(&cpu->tracks);
	call_nodes_done(&cpu->nodes);
	buffer_done(&cpu->call_frames);
	free(cpu->ends);
	free(cpu->leaf);
	free(cpu->hits);
	free(cpu->first_child);
	free(cpu->children);
}

int write_cpuprofile(const struct profile *profile, const struct export_options *options, struct buffer *buffer)
{
	CLEANUP(cpu_profile_done)
	struct cpu_profile cpu = { .json = { .buffer = buffer }, .profile = profile, .call_frames = BUFFER_INIT(buffer->max) };
	int64_t start_us = (int64_t)(first_time_ns(profile) / 1000);
	int err = prepare(&cpu);

	if (err)
		return err;
	json_open(&cpu.json, '{');
	write_nodes(&cpu);
	json_line(&cpu.json);
	write_samples(&cpu);
	json_line(&cpu.json);
	write_deltas(&cpu);
	json_key(&cpu.json, "startTime");
	json_fixed(&cpu.json, start_us, 0);
	json_key(&cpu.json, "endTime");
	json_fixed(&cpu.json, cpu.written_us > INT64_MAX - start_us ? INT64_MAX : start_us + cpu.written_us, 0);
	json_close(&cpu.json, '}');
	buffer_text(buffer, "\n");
	return 0;
}
