// SPDX-License-Identifier: Apache-2.0
/* The lines, which may overlap, become disjoint ranges: a sweep over their starts in order, with a heap of the lines that cover the
 * sweep's place, the latest on top. n log n; a look-up is one binary search. */
#include "symbolize/perf_map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/number.h"
#include "symbolize/line_reader.h"
#include "symbolize/regular_file.h"

#define NO_ENTRY UINT32_MAX

struct entry { /* a line */
	uint64_t start;
	uint32_t size_bytes, name;
};

struct perf_map {
	struct entry *entries; /* in the file's order */
	uint32_t nr_entries, nr_refused;
	char *text;
	uint64_t *starts; /* of the ranges, ascending; each ends where the next starts */
	uint32_t *owners; /* of the ranges: entries, or NO_ENTRY for a gap */
	uint32_t nr_ranges;
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
	free(map->starts);
	free(map->owners);
	free(map);
}

static void build_done(struct build *build)
{
	buffer_done(&build->entries);
	buffer_done(&build->text);
}

/* A hexadecimal number and the blanks behind it. */
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
	struct entry entry = { .name = (uint32_t)build->text.size };
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

static uint64_t end_of(const struct perf_map *map, uint32_t i)
{
	return map->entries[i].start + map->entries[i].size_bytes;
}

static int compare_starts(const void *left, const void *right, void *arg)
{
	const struct entry *entries = arg;
	uint64_t a = entries[*(const uint32_t *)left].start, b = entries[*(const uint32_t *)right].start;

	return a < b ? -1 : a > b;
}

/* A binary heap of entry numbers, the greatest on top. */
struct heap {
	uint32_t *items, nr;
};

static void heap_push(struct heap *heap, uint32_t item)
{
	uint32_t at = heap->nr++;

	for (; at > 0 && heap->items[(at - 1) / 2] < item; at = (at - 1) / 2)
		heap->items[at] = heap->items[(at - 1) / 2];
	heap->items[at] = item;
}

static void heap_pop(struct heap *heap)
{
	uint32_t item = heap->items[--heap->nr], at = 0, child;

	for (; (child = 2 * at + 1) < heap->nr; at = child) {
		if (child + 1 < heap->nr && heap->items[child + 1] > heap->items[child])
			child++;
		if (heap->items[child] <= item)
			break;
		heap->items[at] = heap->items[child];
	}
	heap->items[at] = item;
}

static void add_range(struct perf_map *map, uint64_t start, uint32_t owner)
{
	if (map->nr_ranges && map->owners[map->nr_ranges - 1] == owner)
		return;
	map->starts[map->nr_ranges] = start;
	map->owners[map->nr_ranges++] = owner;
}

/* Each round moves on to a start or an end, so there are at most two ranges per entry. */
static void sweep(struct perf_map *map, const uint32_t *order, struct heap *covering)
{
	uint64_t pc = 0;

	for (uint32_t next = 0; next < map->nr_entries || covering->nr;) {
		if (!covering->nr)
			pc = map->entries[order[next]].start;
		while (next < map->nr_entries && map->entries[order[next]].start <= pc)
			heap_push(covering, order[next++]);
		while (covering->nr && end_of(map, covering->items[0]) <= pc)
			heap_pop(covering);
		add_range(map, pc, covering->nr ? covering->items[0] : NO_ENTRY);
		if (!covering->nr) /* a gap, or the end of all */
			continue;
		pc = end_of(map, covering->items[0]);
		if (next < map->nr_entries && map->entries[order[next]].start < pc)
			pc = map->entries[order[next]].start;
	}
}

static void shrink(void *array_ptr, size_t size)
{
	void *smaller = realloc(*(void **)array_ptr, size);

	if (smaller)
		*(void **)array_ptr = smaller;
}

static int make_ranges(struct perf_map *map)
{
	CLEANUP(freep) uint32_t *order = calloc(map->nr_entries, sizeof(*order));
	CLEANUP(freep) uint32_t *room = calloc(map->nr_entries, sizeof(*room));
	struct heap covering = { .items = room };

	map->starts = calloc((size_t)map->nr_entries * 2, sizeof(*map->starts));
	map->owners = calloc((size_t)map->nr_entries * 2, sizeof(*map->owners));
	if (!order || !room || !map->starts || !map->owners)
		return -ENOMEM;
	for (uint32_t i = 0; i < map->nr_entries; i++)
		order[i] = i;
	qsort_r(order, map->nr_entries, sizeof(*order), compare_starts, map->entries);
	sweep(map, order, &covering);
	shrink(&map->starts, map->nr_ranges * sizeof(*map->starts));
	shrink(&map->owners, map->nr_ranges * sizeof(*map->owners));
	return 0;
}

static int parse(struct line_reader *reader, struct perf_map **ret_map)
{
	CLEANUP(perf_map_freep) struct perf_map *map = calloc(1, sizeof(*map));
	CLEANUP(build_done)
	struct build build = { .entries = BUFFER_INIT(PERF_MAP_MAX_ENTRIES * sizeof(struct entry)),
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
	map->nr_entries = (uint32_t)(build.entries.size / sizeof(struct entry));
	shrink(&build.entries.data, build.entries.size);
	shrink(&build.text.data, build.text.size);
	map->entries = (struct entry *)MOVE(build.entries.data);
	map->text = MOVE(build.text.data);
	err = make_ranges(map);
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

int perf_map_read_in(int root_fd, const char *path, uid_t uid, struct perf_map **ret_map)
{
	CLEANUP(line_reader_done) struct line_reader reader = { 0 };
	struct stat st;
	CLEANUP(closep) int fd = regular_file_open_in(root_fd, path, PERF_MAP_MAX_BYTES, &st);
	int err;

	if (fd < 0)
		return fd;
	/* A second name could be a link that somebody else made to a file that they cannot read themselves. */
	if ((st.st_uid != uid && st.st_uid != 0) || st.st_nlink != 1)
		return -EPERM;
	err = line_reader_init_fd(&reader, fd, PERF_MAP_MAX_BYTES);
	return err ? err : parse(&reader, ret_map);
}

/* A number's text up to the next blank or the line's end. */
static int status_number(char *text, uint64_t *ret_value)
{
	text[strcspn(text, "\t\n")] = '\0';
	return number_u64(text, UINT32_MAX, ret_value);
}

/* From /proc/TGID/status: the real user, and the number in the process's own (innermost) pid namespace. 0; -ENOENT: no such
 * process. */
static int process_status(uint32_t tgid, uint64_t *ret_uid, uint64_t *ret_inner_tgid)
{
	CLEANUP(fclosep) FILE *file = NULL;
	CLEANUP(freep) char *line = NULL;
	uint64_t uid = UINT64_MAX, inner_tgid = tgid;
	size_t capacity = 0;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/status", tgid);
	file = fopen(path, "re");
	while (file && getline(&line, &capacity, file) > 0) {
		if (strncmp(line, "Uid:\t", 5) == 0 && status_number(line + 5, &uid))
			return -ENOENT;
		if (strncmp(line, "NSpid:\t", 7) == 0 && status_number(strrchr(line, '\t') + 1, &inner_tgid))
			return -ENOENT;
	}
	if (uid == UINT64_MAX)
		return -ENOENT;
	*ret_uid = uid;
	*ret_inner_tgid = inner_tgid;
	return 0;
}

int perf_map_read_process(uint32_t tgid, struct perf_map **ret_map)
{
	CLEANUP(closep) int root_fd = -1;
	uint64_t uid, inner_tgid;
	char path[64];

	if (process_status(tgid, &uid, &inner_tgid)) {
		uid = geteuid(); /* the process is gone, and whose it was is not known: perf's rule, ours or root's */
	} else {
		snprintf(path, sizeof(path), "/proc/%u/root", tgid);
		root_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	}
	if (root_fd < 0) { /* gone, or a zombie, which has no root any more */
		inner_tgid = tgid;
		root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (root_fd < 0)
			return -errno;
	}
	snprintf(path, sizeof(path), "tmp/perf-%u.map", (uint32_t)inner_tgid);
	return perf_map_read_in(root_fd, path, (uid_t)uid, ret_map);
}

int perf_map_find(const struct perf_map *map, uint64_t pc, const char **ret_name, uint64_t *ret_start)
{
	uint32_t lo = 0, hi = map->nr_ranges;

	while (lo < hi) { /* how many start at or below pc */
		uint32_t mid = lo + (hi - lo) / 2;

		if (map->starts[mid] <= pc)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == 0 || map->owners[lo - 1] == NO_ENTRY)
		return -ENOENT;
	*ret_name = map->text + map->entries[map->owners[lo - 1]].name;
	*ret_start = map->entries[map->owners[lo - 1]].start;
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
