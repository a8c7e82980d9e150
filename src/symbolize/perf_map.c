// SPDX-License-Identifier: Apache-2.0
#include "symbolize/perf_map.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/array.h"
#include "base/buffer.h"
#include "base/number.h"
#include "symbolize/code_ranges.h"
#include "symbolize/line_reader.h"

struct perf_map {
	struct code_piece *entries; /* in the file's order; payload: offset of the name in the text */
	uint32_t nr_entries, nr_refused;
	char *text;
	struct code_ranges ranges;
};

struct build {
	struct buffer entries, text;
	uint32_t nr_refused;
};

void perf_map_free(struct perf_map *map)
{
	if (!map)
		return;
	free(map->entries);
	free(map->text);
	code_ranges_done(&map->ranges);
	free(map);
}

static void build_done(struct build *build)
{
	buffer_done(&build->entries);
	buffer_done(&build->text);
}

/* A hexadecimal number and the blanks after it. */
static bool parse_number(const char **pos, const char *end, uint64_t *ret_value)
{
	const char *blank;

	if (end - *pos > 2 && (*pos)[0] == '0' && (*pos)[1] == 'x')
		*pos += 2;
	if (number_hex(pos, end, ret_value))
		return false;
	for (blank = *pos; *pos < end && **pos == ' '; ++*pos)
		;
	return *pos > blank;
}

static bool parse_line(struct build *build, const char *line, const char *end)
{
	struct code_piece entry = { .payload = (uint32_t)build->text.size };
	uint64_t size, last;

	if (!parse_number(&line, end, &entry.start) || !parse_number(&line, end, &size))
		return false;
	if (size == 0 || size > UINT32_MAX || __builtin_add_overflow(entry.start, size, &last))
		return false;
	if (line == end || memchr(line, '\0', (size_t)(end - line)))
		return false;
	if (build->entries.size / sizeof(entry) >= PERF_MAP_MAX_ENTRIES)
		return false;
	entry.size_bytes = (uint32_t)size;
	buffer_append(&build->text, line, (size_t)(end - line));
	buffer_append(&build->text, "", 1);
	buffer_append(&build->entries, &entry, sizeof(entry));
	return true;
}

static int parse(struct line_reader *reader, struct perf_map **ret_map)
{
	CLEANUP(perf_map_freep) struct perf_map *map = calloc(1, sizeof(*map));
	CLEANUP(build_done)
	struct build build = { .entries = BUFFER_INIT(PERF_MAP_MAX_ENTRIES * sizeof(struct code_piece)),
			       .text = BUFFER_INIT(PERF_MAP_MAX_BYTES) };
	const char *line, *end;
	int err;

	if (!map)
		return -ENOMEM;
	while ((err = line_reader_next(reader, &line, &end)) > 0)
		build.nr_refused += !parse_line(&build, line, end);
	if (!err)
		err = build.entries.err ? build.entries.err : build.text.err;
	if (err)
		return err;
	if (!build.entries.size)
		return -ENODATA;
	map->nr_refused = build.nr_refused + reader->nr_too_long;
	map->nr_entries = (uint32_t)(build.entries.size / sizeof(struct code_piece));
	array_shrink(&build.entries.data, build.entries.size);
	array_shrink(&build.text.data, build.text.size);
	map->entries = (struct code_piece *)MOVE(build.entries.data);
	map->text = MOVE(build.text.data);
	err = code_ranges_make(map->entries, map->nr_entries, &map->ranges);
	if (err)
		return err;
	*ret_map = MOVE(map);
	return 0;
}

int perf_map_parse(const char *bytes, size_t size, struct perf_map **ret_map)
{
	struct line_reader reader;

	line_reader_init_memory(&reader, bytes, size);
	return parse(&reader, ret_map);
}

int perf_map_read_fd(int fd, struct perf_map **ret_map)
{
	CLEANUP(line_reader_done) struct line_reader reader = { 0 };
	int err = line_reader_init_fd(&reader, fd, PERF_MAP_MAX_BYTES);

	return err ? err : parse(&reader, ret_map);
}

int perf_map_find(const struct perf_map *map, uint64_t pc, const char **ret_name, uint64_t *ret_start)
{
	uint32_t i;
	int err = code_ranges_find(&map->ranges, pc, &i);

	if (err)
		return err;
	*ret_name = map->text + map->entries[i].payload;
	*ret_start = map->entries[i].start;
	return 0;
}

uint32_t perf_map_size(const struct perf_map *map)
{
	return map->nr_entries;
}

uint32_t perf_map_nr_refused(const struct perf_map *map)
{
	return map->nr_refused;
}
