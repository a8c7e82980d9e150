// SPDX-License-Identifier: Apache-2.0
/* Nodes have an id, and name their children, which may stand anywhere. `samples` names a node for each sample; timeDeltas has the distance
 * to the sample before, so a sample lasts until the next one. (idle) stands for the time between samples in sonde's own files, where it has
 * no hits; then it is left out. A frame directly below (root) that is called like a thread ("name (12/34)") is one. */
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "importer/call_tree.h"
#include "importer/reading.h"
#include "viewers/viewers.h"

#define FILE_SCHEME "file://"

enum { SAMPLES, TIME, NR_TYPES };

struct node {
	uint64_t id;
	struct json_reader children; /* pos NULL: none */
	int64_t hits;                /* -1: it does not say */
	int64_t time_ns;
	bool is_idle, is_root;
	struct profile_sample thread; /* comm, tgid, tid; all 0: it is no thread */
};

struct cpuprofile {
	struct reading in;
	struct call_tree tree;
	struct node *nodes; /* as in the tree */
	uint32_t nr_nodes, max_nodes;
	struct u64_map by_id;
	struct json_reader list, samples, deltas;
	int64_t start_us, end_us;
	bool has_samples, has_deltas, has_end;
};

static void cpuprofile_done(struct cpuprofile *file)
{
	reading_done(&file->in);
	call_tree_done(&file->tree);
	free(file->nodes);
	u64_map_done(&file->by_id);
}

static bool text_is(const struct cpuprofile *file, uint32_t string, const char *text)
{
	return !strcmp(profile_string_text(file->in.importer->profile, string), text);
}

/* A string for the path in a URL. */
static uint32_t without_scheme(struct cpuprofile *file, uint32_t url)
{
	const char *text = profile_string_text(file->in.importer->profile, url);
	uint32_t path;

	if (strncmp(text, FILE_SCHEME, strlen(FILE_SCHEME)) != 0)
		return url;
	text += strlen(FILE_SCHEME);
	path = import_string(file->in.importer, text, strlen(text));
	if (path == PROFILE_NONE)
		file->in.text.err = -ENOMEM;
	return path == PROFILE_NONE ? PROFILE_EMPTY_STRING : path;
}

/* Lines are counted from 0; -1: not known. */
static uint32_t read_line(struct reading *in)
{
	int64_t line = json_read_decimal(&in->r, 0);

	return line >= 0 && line < INT32_MAX ? (uint32_t)line + 1 : 0;
}

static void read_call_frame(struct cpuprofile *file, struct frame_text *frame)
{
	struct reading *in = &file->in;

	for (json_enter(&in->r, '{'); json_next_key(&in->r, &in->key);) {
		if (reading_is_key(in, "functionName"))
			frame->name = reading_string(in);
		else if (reading_is_key(in, "url"))
			frame->file = reading_string(in);
		else if (reading_is_key(in, "lineNumber"))
			frame->first_line = read_line(in);
		else
			json_skip(&in->r);
	}
	frame->file = without_scheme(file, frame->file);
}

static int name_nameless(struct cpuprofile *file, struct frame_text *frame)
{
	if (frame->name == PROFILE_EMPTY_STRING)
		frame->name = profile_string(file->in.importer->profile, "(anonymous)");
	return frame->name == PROFILE_NONE ? -ENOMEM : 0;
}

static int read_node(struct cpuprofile *file)
{
	struct reading *in = &file->in;
	struct node node = { .hits = -1 };
	struct frame_text frame = { 0 };
	uint32_t location = PROFILE_NONE;
	int err;

	for (json_enter(&in->r, '{'); json_next_key(&in->r, &in->key);) {
		if (reading_is_key(in, "id")) {
			node.id = json_read_u64(&in->r);
		} else if (reading_is_key(in, "callFrame")) {
			read_call_frame(file, &frame);
		} else if (reading_is_key(in, "hitCount")) {
			node.hits = json_read_decimal(&in->r, 0);
		} else {
			if (reading_is_key(in, "children"))
				node.children = in->r;
			json_skip(&in->r);
		}
	}
	err = reading_failed(in) ? 0 : name_nameless(file, &frame);
	if (err || reading_failed(in))
		return err;
	node.is_idle = text_is(file, frame.name, "(idle)");
	node.is_root = text_is(file, frame.name, "(root)");
	if (!node.is_root) {
		location = reading_location(in->importer, &frame);
		if (location == PROFILE_NONE)
			return -ENOMEM;
	}
	if (!array_grow(&file->nodes, file->nr_nodes, &file->max_nodes, sizeof(*file->nodes), 256, UINT32_MAX / 8))
		return -ENOMEM;
	file->nodes[file->nr_nodes] = node;
	return u64_map_add(&file->by_id, node.id, file->nr_nodes++) ? -ENOMEM : call_tree_add(&file->tree, PROFILE_NONE, location);
}

/* The node with the id that stands here; PROFILE_NONE: failed. */
static uint32_t read_id(struct cpuprofile *file)
{
	struct json_reader at = file->in.r;
	const uint32_t *node = u64_map_find(&file->by_id, json_read_u64(&file->in.r));

	if (node && !file->in.r.bad)
		return *node;
	if (!file->in.r.bad)
		reading_go(&file->in, at);
	json_fail(&file->in.r, "there is no node with this id");
	return PROFILE_NONE;
}

static void link_children(struct cpuprofile *file, uint32_t parent)
{
	reading_go(&file->in, file->nodes[parent].children);
	for (json_enter(&file->in.r, '['); json_next(&file->in.r);) {
		uint32_t child = read_id(file);

		if (child != PROFILE_NONE)
			file->tree.nodes[child].parent = parent;
	}
}

/* Takes the threads that sonde writes below the root out of the stacks. */
static int find_threads(struct cpuprofile *file)
{
	struct profile *profile = file->in.importer->profile;

	for (uint32_t i = 0; i < file->nr_nodes; i++) {
		uint32_t parent = file->tree.nodes[i].parent, location = file->tree.nodes[i].location;
		struct profile_sample thread = import_blank();
		const char *name;

		if (parent == PROFILE_NONE || !file->nodes[parent].is_root || location == PROFILE_NONE)
			continue;
		name = profile_string_text(profile, profile_function_at(profile, profile_location_at(profile, location)->function)->name);
		if (reading_thread(file->in.importer, name, strlen(name), &thread))
			return -ENOMEM;
		if (!thread.tgid)
			continue;
		file->nodes[i].thread = thread;
		file->tree.nodes[i].location = PROFILE_NONE;
	}
	return 0;
}

static void add_time(struct cpuprofile *file, uint32_t node, int64_t us)
{
	int64_t ns;

	if (node != PROFILE_NONE && !__builtin_mul_overflow(us, 1000, &ns) && ns > 0 &&
	    !__builtin_add_overflow(file->nodes[node].time_ns, ns, &ns))
		file->nodes[node].time_ns = ns;
}

static bool has_hits(const struct cpuprofile *file)
{
	for (uint32_t i = 0; i < file->nr_nodes; i++) {
		if (file->nodes[i].hits != -1)
			return true;
	}
	return false;
}

/* Two lists are read in step. In a file without hitCount a sample is a hit. */
static void read_samples(struct cpuprofile *file)
{
	bool counts = !has_hits(file);
	struct json_reader deltas = file->deltas;
	int64_t left_us = 0;
	uint32_t last = PROFILE_NONE;
	bool more = file->has_deltas && json_enter(&deltas, '[');

	if (__builtin_sub_overflow(file->end_us, file->start_us, &left_us))
		left_us = 0;
	reading_go(&file->in, file->samples);
	for (json_enter(&file->in.r, '['); json_next(&file->in.r);) {
		int64_t delta;
		uint32_t node = read_id(file);

		if (node == PROFILE_NONE)
			return;
		more = more && json_next(&deltas);
		delta = more ? json_read_decimal(&deltas, 0) : 0;
		add_time(file, last, delta);
		if (counts)
			file->nodes[node].hits = file->nodes[node].hits < 0 ? 1 : file->nodes[node].hits + 1;
		left_us = __builtin_sub_overflow(left_us, delta, &left_us) ? 0 : left_us;
		last = node;
	}
	if (deltas.bad)
		file->in.r = deltas;
	else if (file->has_end)
		add_time(file, last, left_us);
}

static uint32_t thread_of(const struct cpuprofile *file, uint32_t node)
{
	uint32_t nr_steps = 0;

	while (node != PROFILE_NONE && !file->nodes[node].thread.tgid && nr_steps++ < file->nr_nodes)
		node = file->tree.nodes[node].parent;
	return nr_steps <= file->nr_nodes ? node : PROFILE_NONE;
}

static int add_node(struct cpuprofile *file, uint32_t i)
{
	struct profile_sample sample = import_blank();
	const struct node *node = &file->nodes[i];
	uint32_t thread = thread_of(file, i);
	int err;

	if ((node->hits <= 0 && !node->time_ns) || (node->is_idle && node->hits <= 0))
		return 0;
	if (thread != PROFILE_NONE) {
		sample.comm = file->nodes[thread].thread.comm;
		sample.tgid = file->nodes[thread].thread.tgid;
		sample.tid = file->nodes[thread].thread.tid;
	}
	err = call_tree_stack(file->in.importer, &file->tree, i, &sample);
	if (err == -EBADMSG)
		return import_bad(file->in.importer, "cpuprofile", file->list.pos, "a node calls itself");
	sample.values[SAMPLES] = node->hits > 0 ? node->hits : 0;
	sample.values[TIME] = node->time_ns;
	return err ? err : import_end_sample(file->in.importer, &sample);
}

static int read_outermost(struct cpuprofile *file)
{
	struct reading *in = &file->in;

	for (json_enter(&in->r, '{'); json_next_key(&in->r, &in->key);) {
		if (reading_is_key(in, "startTime")) {
			file->start_us = json_read_decimal(&in->r, 0);
		} else if (reading_is_key(in, "endTime")) {
			file->end_us = json_read_decimal(&in->r, 0);
			file->has_end = true;
		} else {
			if (reading_is_key(in, "nodes"))
				file->list = in->r;
			if (reading_is_key(in, "samples")) {
				file->samples = in->r;
				file->has_samples = true;
			}
			if (reading_is_key(in, "timeDeltas")) {
				file->deltas = in->r;
				file->has_deltas = true;
			}
			json_skip(&in->r);
		}
	}
	json_end(&in->r);
	if (!in->r.bad && !file->list.pos)
		json_fail(&in->r, "it has no nodes");
	return reading_verdict(in, "cpuprofile");
}

static int read_nodes(struct cpuprofile *file)
{
	int err = 0;

	reading_go(&file->in, file->list);
	for (json_enter(&file->in.r, '['); !err && !reading_failed(&file->in) && json_next(&file->in.r);)
		err = read_node(file);
	for (uint32_t i = 0; !err && !reading_failed(&file->in) && i < file->nr_nodes; i++) {
		if (file->nodes[i].children.pos)
			link_children(file, i);
	}
	return err ? err : reading_verdict(&file->in, "cpuprofile");
}

int read_cpuprofile(struct importer *importer)
{
	static const struct value_text kinds[NR_TYPES] = { [SAMPLES] = { "samples", "count" }, [TIME] = { "time", "nanoseconds" } };
	CLEANUP(cpuprofile_done) struct cpuprofile file = { .in = READING_OF(importer) };
	int err = reading_set_types(importer, kinds, NR_TYPES);

	if (!err)
		err = read_outermost(&file);
	if (!err)
		err = read_nodes(&file);
	if (!err)
		err = find_threads(&file);
	if (!err && file.has_samples) {
		read_samples(&file);
		err = reading_verdict(&file.in, "cpuprofile");
	}
	for (uint32_t i = 0; !err && i < file.nr_nodes; i++)
		err = add_node(&file, i);
	return err;
}
