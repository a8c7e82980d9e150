// SPDX-License-Identifier: Apache-2.0
/* One page that needs nothing else: the viewer (assets/, put together by tools/embed.py) with the call tree as JSON in its middle. */
#include <errno.h>
#include <stdlib.h>

#include "base/json.h"
#include "export/account_json.h"
#include "export/assets/page.h"
#include "export/formats.h"
#include "export/tree.h"

struct page {
	struct json json;
	const struct profile *profile;
	struct tree tree;
	uint32_t *path_numbers; /* per string: its place among the page's paths + 1 */
};

static const char *kind_name(uint32_t kind)
{
	if (kind == TREE_ALL)
		return "all";
	if (kind == TREE_PROCESS)
		return "process";
	return kind == TREE_THREAD ? "thread" : frame_kind_name(kind);
}

/* The number of the kind is its place in this list. */
static void write_kinds(struct page *page)
{
	json_key(&page->json, "kinds");
	json_open(&page->json, '[');
	for (uint32_t kind = 0; kind <= TREE_THREAD; kind++)
		json_text(&page->json, kind_name(kind));
	json_close(&page->json, ']');
}

static void write_paths(struct page *page)
{
	uint32_t nr_paths = 0;

	json_key(&page->json, "paths");
	json_open(&page->json, '[');
	for (uint32_t i = 0; i < page->tree.nr_frames; i++) {
		uint32_t path = page->tree.frames[i].path;

		if (page->path_numbers[path])
			continue;
		page->path_numbers[path] = ++nr_paths;
		json_text(&page->json, profile_string_text(page->profile, path));
	}
	json_close(&page->json, ']');
}

static void write_frames(struct page *page)
{
	json_key(&page->json, "frames");
	json_open(&page->json, '[');
	for (uint32_t i = 0; i < page->tree.nr_frames; i++) {
		const struct tree_frame *frame = &page->tree.frames[i];

		json_open(&page->json, '[');
		if (frame->kind == TREE_THREAD)
			json_u64(&page->json, frame->name);
		else
			json_text(&page->json, profile_string_text(page->profile, frame->name));
		json_u64(&page->json, page->path_numbers[frame->path] - 1);
		json_u64(&page->json, frame->kind);
		json_close(&page->json, ']');
	}
	json_close(&page->json, ']');
}

/* Parent, frame, self of each node, one after the other. */
static void write_nodes(struct page *page)
{
	json_key(&page->json, "nodes");
	json_open(&page->json, '[');
	for (uint32_t i = 0; i < page->tree.nr_nodes; i++) {
		json_u64(&page->json, page->tree.nodes[i].parent);
		json_u64(&page->json, page->tree.nodes[i].frame);
		json_i64(&page->json, page->tree.nodes[i].self);
	}
	json_close(&page->json, ']');
}

static void page_done(struct page *page)
{
	tree_done(&page->tree);
	free(page->path_numbers);
}

int write_html(const struct profile *profile, const struct export_options *options, struct buffer *buffer)
{
	CLEANUP(page_done) struct page page = { .json = { .buffer = buffer, .in_html = true }, .profile = profile };
	int err = tree_build(profile, options->threads, &page.tree);

	if (err)
		return err;
	page.path_numbers = calloc(profile_nr_strings(profile), sizeof(*page.path_numbers));
	if (!page.path_numbers)
		return -ENOMEM;
	buffer_append(buffer, page_before_data, page_before_data_size);
	json_open(&page.json, '{');
	json_key(&page.json, "account");
	write_account(&page.json, profile_account_of(profile));
	write_kinds(&page);
	write_paths(&page);
	write_frames(&page);
	write_nodes(&page);
	json_close(&page.json, '}');
	buffer_append(buffer, page_after_data, page_after_data_size);
	return 0;
}
