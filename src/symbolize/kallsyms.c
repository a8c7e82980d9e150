// SPDX-License-Identifier: Apache-2.0
/* The lines are in order of address, except for modules and BPF programs, so they are sorted only if a line is out of order. Keeps 12 bytes
 * per address and the names. Format: kernel/kallsyms.c, s_show(). */
#include "symbolize/kallsyms.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/array.h"
#include "base/buffer.h"
#include "base/number.h"
#include "base/suffix.h"
#include "symbolize/line_reader.h"

#define MAX_FILE_BYTES ((uint64_t)512 << 20)
#define MAX_SYMBOLS    ((size_t)8 << 20)
#define NO_NAME	       UINT32_MAX
#define PADDING	       "__pfx_" /* of the compiler's, before a function (CONFIG_FUNCTION_PADDING_BYTES) */

enum rank { RANK_GLOBAL, RANK_WEAK, RANK_LOCAL, RANK_BOUNDARY };

struct entry {
	uint64_t kaddr;
	uint32_t name; /* offset in the text; NO_NAME for a boundary */
	uint32_t rank;
};

/* Start and end of the kernel's scheduler and of its locks, set by the linker script; 0: not in the list. */
static const char *const scheduler_bounds[] = { "__sched_text_start", "__sched_text_end", "__lock_text_start", "__lock_text_end" };

struct kallsyms {
	uint64_t scheduler[ARRAY_SIZE(scheduler_bounds)];
	uint64_t *kaddrs; /* ascending, each once */
	uint32_t *names;  /* NO_NAME: nothing is known from this address on */
	uint32_t nr;
	char *text;
};

struct build {
	uint64_t scheduler[ARRAY_SIZE(scheduler_bounds)];
	struct buffer entries, text;
	uint64_t last_kaddr;
	bool unsorted, any_line, any_address;
};

void kallsyms_free(struct kallsyms *kallsyms)
{
	if (!kallsyms)
		return;
	free(kallsyms->kaddrs);
	free(kallsyms->names);
	free(kallsyms->text);
	free(kallsyms);
}

static void build_done(struct build *build)
{
	buffer_done(&build->entries);
	buffer_done(&build->text);
}

/* Set by the linker script; not a function: something else begins there. */
static bool is_section_marker(const char *name, size_t size)
{
	static const char *const names[] = { "_text", "_stext", "_etext", "_sinittext", "_einittext", "__pi__text" };

	if (size == 0 || name[0] != '_')
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (size == strlen(names[i]) && memcmp(name, names[i], size) == 0)
			return true;
	}
	/* __entry_text_start, __irqentry_text_end, ... */
	return has_suffix(name, size, "text_start") || has_suffix(name, size, "text_begin") || has_suffix(name, size, "text_end");
}

static enum rank rank_of(char type, const char *name, size_t size)
{
	if (!strchr("tTwWiI", type) || is_section_marker(name, size))
		return RANK_BOUNDARY;
	if (type == 'T' || type == 'i' || type == 'I')
		return RANK_GLOBAL;
	return type == 't' ? RANK_LOCAL : RANK_WEAK;
}

static void take_bound(struct build *build, const char *name, size_t size, uint64_t kaddr)
{
	for (size_t i = 0; i < ARRAY_SIZE(scheduler_bounds); i++) {
		if (size == strlen(scheduler_bounds[i]) && memcmp(name, scheduler_bounds[i], size) == 0)
			build->scheduler[i] = kaddr;
	}
}

/* Parses "ffffffff81000000 T name", with an optional "\t[module]". Lines of any other form are skipped. */
static void parse_line(struct build *build, const char *line, const char *end)
{
	struct entry entry = { .name = NO_NAME };
	const char *name, *tab;
	size_t size;

	if (number_hex(&line, end, &entry.kaddr) || end - line < 4 || line[0] != ' ' || line[1] == '\0' || line[2] != ' ')
		return;
	name = line + 3;
	size = (size_t)(end - name);
	tab = memchr(name, '\t', size);
	entry.rank = rank_of(line[1], name, tab ? (size_t)(tab - name) : size);
	build->any_line = true;
	if (entry.kaddr == 0) /* hidden, or an offset into per-CPU data */
		return;
	build->any_address = true;
	build->unsorted |= entry.kaddr < build->last_kaddr;
	build->last_kaddr = entry.kaddr;
	if (entry.rank != RANK_BOUNDARY) {
		entry.name = (uint32_t)build->text.size;
		buffer_append(&build->text, name, size);
		buffer_append(&build->text, "", 1);
		if (tab && !build->text.err)
			build->text.data[entry.name + (tab - name)] = ' ';
	} else {
		take_bound(build, name, size, entry.kaddr);
	}
	buffer_append(&build->entries, &entry, sizeof(entry));
}

/* Negative when `a` is the better name for an address of both. */
static int compare_aliases(const struct entry *a, const struct entry *b, const char *text)
{
	size_t size_a, size_b;

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (a->rank == RANK_BOUNDARY)
		return 0;
	size_a = strlen(text + a->name);
	size_b = strlen(text + b->name);
	if (size_a != size_b)
		return size_a < size_b ? -1 : 1;
	return strcmp(text + a->name, text + b->name);
}

static int compare_kaddrs(const void *left, const void *right)
{
	const struct entry *a = left, *b = right;

	return a->kaddr < b->kaddr ? -1 : a->kaddr > b->kaddr;
}

/* Keeps one entry per address: the best name. Of adjacent boundaries, keeps the first. */
static uint32_t drop_aliases(struct entry *entries, size_t nr, const char *text)
{
	uint32_t nr_kept = 0;

	for (size_t i = 0; i < nr;) {
		struct entry best = entries[i];

		for (i++; i < nr && entries[i].kaddr == best.kaddr; i++) {
			if (compare_aliases(&entries[i], &best, text) < 0)
				best = entries[i];
		}
		if (best.rank == RANK_BOUNDARY && (nr_kept == 0 || entries[nr_kept - 1].rank == RANK_BOUNDARY))
			continue;
		entries[nr_kept++] = best;
	}
	return nr_kept;
}

/* Does the second one name the function behind the first one's padding? */
static bool is_padding_of(const char *padding, const char *name)
{
	return strncmp(padding, PADDING, sizeof(PADDING) - 1) == 0 && strcmp(padding + sizeof(PADDING) - 1, name) == 0;
}

/* Of the text without aliases. A function whose padding has a name shares that name's end: half of the text. */
static int keep_names(const struct entry *entries, const char *text, struct kallsyms *kallsyms)
{
	CLEANUP(buffer_done) struct buffer kept = BUFFER_INIT(UINT32_MAX - 1);
	const char *before = "";

	for (uint32_t i = 0; i < kallsyms->nr; i++) {
		const char *name = entries[i].name == NO_NAME ? NULL : text + entries[i].name;

		if (!name) {
			kallsyms->names[i] = NO_NAME;
		} else if (is_padding_of(before, name)) {
			kallsyms->names[i] = kallsyms->names[i - 1] + (uint32_t)sizeof(PADDING) - 1;
		} else {
			kallsyms->names[i] = (uint32_t)kept.size;
			buffer_append(&kept, name, strlen(name) + 1);
		}
		before = name ?: "";
	}
	if (kept.err)
		return kept.err;
	kallsyms->text = realloc(kept.data, kept.size); /* gives the spare room back */
	if (!kallsyms->text)
		return -ENOMEM;
	kept = BUFFER_INIT(0);
	return 0;
}

static int finish(struct build *build, struct kallsyms *kallsyms)
{
	struct entry *entries = (struct entry *)build->entries.data;
	size_t nr = build->entries.size / sizeof(*entries);
	int err;

	if (build->entries.err || build->text.err)
		return build->entries.err ? build->entries.err : build->text.err;
	if (!build->text.size)
		return -ENODATA;
	if (build->unsorted)
		qsort(entries, nr, sizeof(*entries), compare_kaddrs);
	kallsyms->nr = drop_aliases(entries, nr, build->text.data);
	kallsyms->kaddrs = calloc(kallsyms->nr, sizeof(*kallsyms->kaddrs));
	kallsyms->names = calloc(kallsyms->nr, sizeof(*kallsyms->names));
	if (!kallsyms->kaddrs || !kallsyms->names)
		return -ENOMEM;
	for (uint32_t i = 0; i < kallsyms->nr; i++)
		kallsyms->kaddrs[i] = entries[i].kaddr;
	err = keep_names(entries, build->text.data, kallsyms);
	if (err)
		return err;
	memcpy(kallsyms->scheduler, build->scheduler, sizeof(kallsyms->scheduler));
	return 0;
}

static int read_lines(struct line_reader *reader, struct kallsyms **ret_kallsyms)
{
	CLEANUP(kallsyms_freep) struct kallsyms *kallsyms = calloc(1, sizeof(*kallsyms));
	CLEANUP(build_done)
	struct build build = { .entries = BUFFER_INIT(MAX_SYMBOLS * sizeof(struct entry)), .text = BUFFER_INIT(UINT32_MAX - 1) };
	const char *line, *end;
	int err;

	if (!kallsyms)
		return -ENOMEM;
	while ((err = line_reader_next(reader, &line, &end)) > 0)
		parse_line(&build, line, end);
	if (err)
		return err;
	if (build.any_line && !build.any_address)
		return -EACCES;
	err = finish(&build, kallsyms);
	if (err)
		return err;
	*ret_kallsyms = MOVE(kallsyms);
	return 0;
}

int kallsyms_read(const char *path, struct kallsyms **ret_kallsyms)
{
	CLEANUP(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	CLEANUP(line_reader_done) struct line_reader reader = { 0 };
	int err;

	if (fd < 0)
		return errno == EPERM ? -EACCES : -errno;
	err = line_reader_init_fd(&reader, fd, MAX_FILE_BYTES);
	return err ? err : read_lines(&reader, ret_kallsyms);
}

int kallsyms_parse(const char *bytes, size_t size, struct kallsyms **ret_kallsyms)
{
	CLEANUP(line_reader_done) struct line_reader reader = { 0 };

	line_reader_init_memory(&reader, bytes, size);
	return read_lines(&reader, ret_kallsyms);
}

int kallsyms_find(const struct kallsyms *kallsyms, uint64_t kaddr, const char **ret_name, uint64_t *ret_start)
{
	uint32_t nr = array_count_at_most(kallsyms->kaddrs, kallsyms->nr, kaddr);

	if (nr == 0 || kallsyms->names[nr - 1] == NO_NAME || kaddr - kallsyms->kaddrs[nr - 1] >= KALLSYMS_MAX_FUNCTION_BYTES)
		return -ENOENT;
	*ret_name = kallsyms->text + kallsyms->names[nr - 1];
	*ret_start = kallsyms->kaddrs[nr - 1];
	return 0;
}

bool kallsyms_is_scheduler(const struct kallsyms *kallsyms, uint64_t kaddr)
{
	for (size_t i = 0; i < ARRAY_SIZE(scheduler_bounds); i += 2) {
		if (kaddr >= kallsyms->scheduler[i] && kaddr < kallsyms->scheduler[i + 1])
			return true;
	}
	return false;
}

uint32_t kallsyms_size(const struct kallsyms *kallsyms)
{
	return kallsyms->nr;
}
