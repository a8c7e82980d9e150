// SPDX-License-Identifier: Apache-2.0
/* Finds the unit by a table of all units' ranges, from their DIEs (not from .debug_aranges, which clang does not write). Memory: our tables
 * of units are capped. libdw keeps all that it ever read until it is closed, so it is closed and opened again when that takes too much. Our
 * tables stay: they refer to DIEs by offset. */
#include "dwarf/dwarf_lines.h"

#include <dwarf.h>
#include <errno.h>
#include <gelf.h>
#include <string.h>
#include <sys/mman.h>

#include "base/array.h"
#include "dwarf/dwarf_private.h"

#define MAX_UNITS	  (1u << 20)
#define MAX_TABLE_BYTES	  ((uint64_t)48 << 20)
#define MAX_LIBDW_BYTES	  ((uint64_t)48 << 20)
#define MAX_PAGE_BYTES	  ((uint64_t)32 << 20) /* about how much of the mapped file is resident at a time */
#define HEADER_PAGE_BYTES 65536		       /* per unit */
#define MAX_TEXT_BYTES	  ((size_t)256 << 20)
#define MAX_UNPACKED	  ((uint64_t)640 << 20) /* of a file's sections: the worker has 1 GiB in all */
#define ZLIB_MAX_RATIO	  1032			/* deflate cannot compress better, see zlib's "Technical Details" */

/* We map the file ourselves, so that its pages can be given back while libdw is in use. */
static int map_file(struct dwarf_lines *lines)
{
	uint64_t size = elf_file_size(lines->file);
	int fd = elf_file_fd(lines->file);
	void *bytes = (void *)(uintptr_t)elf_file_bytes(lines->file);

	if (elf_version(EV_CURRENT) == EV_NONE || size > SIZE_MAX)
		return -EBADMSG;
	if (fd < 0 && lines->is_compressed)
		return -EBADMSG;
	/* libelf writes into the section headers when it decompresses: such pages must not be given back. */
	if (fd >= 0) {
		bytes = mmap(NULL, (size_t)size, lines->is_compressed ? PROT_READ | PROT_WRITE : PROT_READ, MAP_PRIVATE, fd, 0);
		if (bytes == MAP_FAILED)
			return -errno;
		lines->mapping = bytes;
		lines->nr_mapped = (size_t)size;
	}
	lines->elf = elf_memory(bytes, (size_t)size);
	return lines->elf ? 0 : -EBADMSG;
}

static void give_back_pages(struct dwarf_lines *lines)
{
	if (lines->nr_page_bytes <= lines->limits.max_page_bytes)
		return;
	lines->nr_page_bytes = 0;
	if (lines->mapping && !lines->is_compressed)
		(void)madvise(lines->mapping, lines->nr_mapped, MADV_DONTNEED); /* read again when needed */
}

/* libdw reads the headers of all units before the first DIE requested behind them. Each brings in a page and its neighbours. */
static bool next_unit(struct dwarf_lines *lines, Dwarf_CU **cu, uint8_t *ret_type, Dwarf_Die *ret_die)
{
	if (dwarf_get_units(lines->dwarf, *cu, cu, NULL, ret_type, ret_die, NULL) != 0)
		return false;
	lines->nr_page_bytes += HEADER_PAGE_BYTES;
	give_back_pages(lines);
	return true;
}

/* As libdw left it: decompressed. */
static struct dwarf_bytes section_bytes(Elf *elf, const char *name)
{
	Elf_Scn *section = NULL;
	size_t names;

	while (!elf_getshdrstrndx(elf, &names) && (section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		Elf_Data *data;
		const char *found;

		if (!gelf_getshdr(section, &header) || header.sh_type == SHT_NOBITS || header.sh_flags & SHF_COMPRESSED)
			continue;
		found = elf_strptr(elf, names, header.sh_name);
		if (!found || (strncmp(found, ".debug_", 7) && strncmp(found, ".zdebug_", 8)) || strcmp(strchr(found, '_') + 1, name) != 0)
			continue;
		data = elf_getdata(section, NULL);
		return data && data->d_buf ? (struct dwarf_bytes){ data->d_buf, data->d_size } : (struct dwarf_bytes){ 0 };
	}
	return (struct dwarf_bytes){ 0 };
}

static int open_libdw(struct dwarf_lines *lines)
{
	lines->dwarf = dwarf_begin_elf(lines->elf, DWARF_C_READ, NULL);
	lines->nr_libdw_bytes = 0;
	if (!lines->dwarf)
		return -EBADMSG;
	lines->line_tables = section_bytes(lines->elf, "line");
	lines->line_texts = section_bytes(lines->elf, "line_str");
	lines->debug_texts = section_bytes(lines->elf, "str");
	dwarf_alt_open(lines);
	return 0;
}

/* Leaves the ELF file open, with what libelf decompressed. */
static void close_libdw(struct dwarf_lines *lines)
{
	dwarf_end(lines->dwarf);
	lines->dwarf = NULL;
	dwarf_alt_close(lines);
}

static bool has_debug_info(struct dwarf_lines *lines)
{
	const struct elf_section *info = elf_file_find_section(lines->file, ".debug_info");

	for (uint32_t i = 0; i < elf_file_nr_sections(lines->file); i++) {
		const struct elf_section *section = elf_file_section(lines->file, i);

		lines->is_compressed |= section->flags & SHF_COMPRESSED || strncmp(section->name, ".zdebug", 7) == 0;
	}
	if (!info)
		info = elf_file_find_section(lines->file, ".zdebug_info");
	return info && info->type != SHT_NOBITS && elf_file_type(lines->file) != ET_REL;
}

/* Can libelf decompress what libdw will read, within the limit? It supports zlib, and allocates the sizes that the file claims. */
static bool can_unpack(const struct dwarf_lines *lines)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < elf_file_nr_sections(lines->file); i++) {
		const struct elf_section *section = elf_file_section(lines->file, i);
		Elf64_Chdr header;

		if (strncmp(section->name, ".debug_", 7) != 0 || !(section->flags & SHF_COMPRESSED))
			continue;
		if (elf_file_read_at(lines->file, section->file_off, &header, sizeof(header)) || header.ch_type != ELFCOMPRESS_ZLIB ||
		    header.ch_size > lines->limits.max_unpacked_bytes || header.ch_size / ZLIB_MAX_RATIO > section->size)
			return false;
		sum += header.ch_size;
	}
	return sum <= lines->limits.max_unpacked_bytes;
}

static struct dwarf_lines_limits limits_of(const struct dwarf_lines_limits *wanted)
{
	struct dwarf_lines_limits limits = wanted ? *wanted : (struct dwarf_lines_limits){ 0 };

	if (!limits.max_table_bytes)
		limits.max_table_bytes = MAX_TABLE_BYTES;
	if (!limits.max_libdw_bytes)
		limits.max_libdw_bytes = MAX_LIBDW_BYTES;
	if (!limits.max_page_bytes)
		limits.max_page_bytes = MAX_PAGE_BYTES;
	if (!limits.max_unpacked_bytes)
		limits.max_unpacked_bytes = MAX_UNPACKED;
	return limits;
}

static int add_unit(struct dwarf_lines *lines, Dwarf_Die *die)
{
	if (lines->nr_units == lines->max_units) {
		void *grown = dwarf_grow(lines->units, lines->nr_units, &lines->max_units, MAX_UNITS, sizeof(*lines->units));

		if (!grown)
			return lines->nr_units < MAX_UNITS ? -ENOMEM : -EFBIG;
		lines->units = grown;
	}
	lines->units[lines->nr_units] = (struct dwarf_unit){ .die = dwarf_dieoffset(die) };
	return dwarf_unit_ranges(lines, die, lines->nr_units++);
}

/* Damage ends the list; the units before it count. */
static int read_units(struct dwarf_lines *lines)
{
	Dwarf_CU *cu = NULL;
	uint8_t type = 0;
	Dwarf_Die die;
	int err = 0;

	while (!err && next_unit(lines, &cu, &type, &die)) {
		if (type == DW_UT_compile || type == DW_UT_skeleton)
			err = add_unit(lines, &die);
	}
	if (err == -EFBIG) {
		lines->counts.nr_cut++;
		err = 0;
	}
	return err ? err : dwarf_spans_seal(&lines->code);
}

int dwarf_lines_open_limited(const struct elf_file *elf, const char *debug_dir, const struct dwarf_lines_limits *limits, struct diag *diag,
			     struct dwarf_lines **ret_lines)
{
	CLEANUP(dwarf_lines_freep) struct dwarf_lines *lines = calloc(1, sizeof(*lines));
	int err;

	if (!lines)
		return -ENOMEM;
	lines->file = elf;
	lines->limits = limits_of(limits);
	if (!has_debug_info(lines))
		return -ENODATA;
	if (!can_unpack(lines)) {
		lines->counts.nr_packed = 1; /* without units there are no answers */
		*ret_lines = MOVE(lines);
		return 0;
	}
	lines->debug_dir = strdup(debug_dir ? debug_dir : "/usr/lib/debug");
	lines->texts = arena_new(MAX_TEXT_BYTES);
	if (!lines->debug_dir || !lines->texts)
		return -ENOMEM;
	err = map_file(lines);
	if (!err)
		err = open_libdw(lines);
	if (err)
		return diag_errno(diag, -err, "DWARF: %s", dwarf_errmsg(-1));
	err = read_units(lines);
	if (err)
		return err;
	*ret_lines = MOVE(lines);
	return 0;
}

void dwarf_lines_free(struct dwarf_lines *lines)
{
	if (!lines)
		return;
	close_libdw(lines);
	elf_end(lines->elf);
	if (lines->mapping)
		munmap(lines->mapping, lines->nr_mapped);
	for (uint32_t i = 0; i < lines->nr_units; i++)
		dwarf_unit_forget(lines, &lines->units[i]);
	free(lines->units);
	dwarf_spans_done(&lines->code);
	arena_free(lines->texts);
	u64_map_done(&lines->text_numbers);
	free(lines->text_list);
	free(lines->debug_dir);
	free(lines);
}

static void forget_unused(struct dwarf_lines *lines, const struct dwarf_unit *but)
{
	while (lines->nr_bytes > lines->limits.max_table_bytes) {
		struct dwarf_unit *oldest = NULL;

		for (uint32_t i = 0; i < lines->nr_units; i++) {
			struct dwarf_unit *unit = &lines->units[i];

			if (unit != but && unit->is_read && (!oldest || unit->last_use < oldest->last_use))
				oldest = unit;
		}
		if (!oldest)
			return;
		dwarf_unit_forget(lines, oldest);
	}
}

static int find_unit(struct dwarf_lines *lines, uint64_t elf_vaddr, struct dwarf_unit **ret_unit)
{
	uint32_t number = dwarf_spans_find(&lines->code, elf_vaddr);
	struct dwarf_unit *unit;
	int err;

	if (number == DWARF_NONE)
		return -ENOENT;
	if (lines->nr_libdw_bytes > lines->limits.max_libdw_bytes)
		close_libdw(lines);
	give_back_pages(lines);
	if (!lines->dwarf) {
		Dwarf_CU *cu = NULL;
		Dwarf_Die die;
		uint8_t type;

		if (open_libdw(lines))
			return -ENOENT; /* the file has changed */
		while (next_unit(lines, &cu, &type, &die))
			;
	}
	unit = &lines->units[number];
	unit->last_use = ++lines->nr_uses;
	if (!unit->is_read) {
		err = dwarf_unit_read(lines, unit);
		if (err)
			return err;
	}
	forget_unused(lines, unit);
	*ret_unit = unit;
	return 0;
}

/* The number of rows that start at or before the address; the last of them is the address's. */
static uint32_t nr_rows_before(const struct dwarf_unit *unit, uint64_t elf_vaddr)
{
	return array_count_starts(unit->rows, unit->nr_rows, sizeof(*unit->rows), elf_vaddr);
}

static void find_row(const struct dwarf_unit *unit, uint64_t elf_vaddr, const char **file, uint32_t *line)
{
	uint32_t nr = nr_rows_before(unit, elf_vaddr);

	*file = "";
	*line = 0;
	if (!nr || unit->rows[nr - 1].file == DWARF_NONE)
		return;
	*file = unit->files[unit->rows[nr - 1].file];
	*line = unit->rows[nr - 1].line;
}

int dwarf_lines_find(struct dwarf_lines *lines, uint64_t elf_vaddr, struct dwarf_frame *frames, uint32_t max, uint32_t *ret_nr)
{
	const struct dwarf_facts *facts = NULL;
	struct dwarf_unit *unit;
	const char *file;
	uint32_t nr = 0, line, node;
	int err = find_unit(lines, elf_vaddr, &unit);

	if (err)
		return err;
	find_row(unit, elf_vaddr, &file, &line);
	for (node = dwarf_spans_find(&unit->code, elf_vaddr); node != DWARF_NONE; node = unit->nodes[node].parent) {
		err = dwarf_unit_facts(lines, unit, node, &facts);
		if (err)
			return err;
		nr -= nr == max;
		frames[nr++] = (struct dwarf_frame){ .name = facts->name, .file = file, .line = line, .start_line = facts->start_line };
		file = facts->call_file;
		line = facts->call_line;
	}
	if (!nr && !line && !*file)
		return -ENOENT;
	if (!nr)
		frames[nr++] = (struct dwarf_frame){ .name = "", .file = file, .line = line };
	for (uint32_t i = 0; i < nr; i++)
		frames[i].start_vaddr = facts ? facts->start_vaddr : 0;
	*ret_nr = nr;
	return 0;
}

static void narrow_to_row(const struct dwarf_unit *unit, uint64_t elf_vaddr, uint64_t *start, uint64_t *end)
{
	uint32_t nr = nr_rows_before(unit, elf_vaddr);

	if (nr && unit->rows[nr - 1].vaddr > *start)
		*start = unit->rows[nr - 1].vaddr;
	if (nr < unit->nr_rows && unit->rows[nr].vaddr < *end)
		*end = unit->rows[nr].vaddr;
}

void dwarf_lines_narrow(const struct dwarf_lines *lines, uint64_t elf_vaddr, uint64_t *start, uint64_t *end)
{
	uint32_t number = dwarf_spans_find(&lines->code, elf_vaddr);
	const struct dwarf_unit *unit = number == DWARF_NONE ? NULL : &lines->units[number];

	dwarf_spans_narrow(&lines->code, elf_vaddr, start, end);
	if (unit && unit->is_read) {
		narrow_to_row(unit, elf_vaddr, start, end);
		dwarf_spans_narrow(&unit->code, elf_vaddr, start, end);
	} else if (unit) { /* its lines were forgotten, or cannot be read */
		*start = elf_vaddr;
		*end = elf_vaddr + 1;
	}
}

struct dwarf_lines_counts dwarf_lines_counts(const struct dwarf_lines *lines)
{
	return lines->counts;
}
