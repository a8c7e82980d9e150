// SPDX-License-Identifier: Apache-2.0
/* One unit's tables: its line rows, and the ranges of its functions and of what was inlined into them. Names wait until somebody asks. */
#include <dwarf.h>
#include <errno.h>
#include <string.h>

#include "elf/dwarf_private.h"

#define MAX_ROWS	 (1u << 25)
#define MAX_FILES	 (1u << 20)
#define LIBDW_ROW_BYTES	 64 /* its own record of a row, and what goes with it */
#define LIBDW_UNIT_BYTES 32768
#define DWO_UNIT_BYTES	 262144

/* Linkers leave what they removed at 0 or the like; that is no code. */
static bool is_code(const struct dwarf_lines *lines, uint64_t elf_vaddr)
{
	uint32_t nr = elf_file_nr_segments(lines->file);

	for (uint32_t i = 0; i < nr; i++) {
		const struct elf_segment *segment = elf_file_segment(lines->file, i);

		if (segment->flags & 1 /* PF_X */ && elf_vaddr >= segment->vaddr && elf_vaddr - segment->vaddr < segment->mem_size)
			return true;
	}
	return nr == 0;
}

int dwarf_add_range(struct dwarf_lines *lines, struct dwarf_spans *spans, uint64_t start, uint64_t end, uint32_t owner, uint32_t *nr)
{
	if (!is_code(lines, start))
		return 0;
	(*nr)++;
	return dwarf_spans_add(spans, start, end, owner);
}

int dwarf_add_ranges(struct dwarf_lines *lines, struct dwarf_spans *spans, Dwarf_Die *die, uint32_t owner, uint32_t *nr)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t offset = 0;
	int err = 0;

	while (!err && (offset = dwarf_ranges(die, offset, &base, &start, &end)) > 0)
		err = dwarf_add_range(lines, spans, start, end, owner, nr);
	return err;
}

int dwarf_unit_ranges(struct dwarf_lines *lines, Dwarf_Die *unit, uint32_t number)
{
	uint32_t nr = 0;

	return dwarf_add_ranges(lines, &lines->code, unit, number, &nr);
}

static int unit_file(struct dwarf_lines *lines, struct dwarf_unit *unit, const char *folder, Dwarf_Files *files, size_t number)
{
	const char *path = dwarf_filesrc(files, number, NULL, NULL);
	int err = path ? dwarf_path(lines, folder, path, &unit->files[number]) : -EFBIG;

	if (err == -EFBIG) {
		unit->files[number] = "";
		err = 0;
	}
	return err;
}

/* Of rows at one address the last counts; one that says what the row before says is left out. */
static int add_row(struct dwarf_unit *unit, uint64_t vaddr, uint32_t line, uint32_t file)
{
	void *grown;

	if (unit->nr_rows && unit->rows[unit->nr_rows - 1].vaddr == vaddr)
		unit->nr_rows--;
	if (unit->nr_rows && unit->rows[unit->nr_rows - 1].line == line && unit->rows[unit->nr_rows - 1].file == file)
		return 0;
	if (unit->nr_rows == unit->max_rows) {
		grown = dwarf_grow(unit->rows, unit->nr_rows, &unit->max_rows, MAX_ROWS, sizeof(*unit->rows));
		if (!grown)
			return unit->max_rows >= MAX_ROWS ? -EFBIG : -ENOMEM;
		unit->rows = grown;
	}
	unit->rows[unit->nr_rows++] = (struct dwarf_row){ vaddr, line, file };
	return 0;
}

static int read_row(struct dwarf_lines *lines, struct dwarf_unit *unit, const char *folder, Dwarf_Line *line)
{
	bool is_end = false;
	Dwarf_Files *files;
	size_t file;
	Dwarf_Addr vaddr;
	int number = 0, err;

	if (dwarf_lineaddr(line, &vaddr) || dwarf_lineendsequence(line, &is_end))
		return 0;
	if (is_end)
		return add_row(unit, vaddr, 0, DWARF_NONE);
	if (dwarf_lineno(line, &number) || dwarf_line_file(line, &files, &file) || file >= unit->nr_files)
		return add_row(unit, vaddr, 0, DWARF_NONE);
	err = unit->files[file] ? 0 : unit_file(lines, unit, folder, files, file);
	return err ? err : add_row(unit, vaddr, number > 0 ? (uint32_t)number : 0, (uint32_t)file);
}

/* libdw sorts the rows by address, and ends of sequences before what starts there. */
static int read_rows(struct dwarf_lines *lines, struct dwarf_unit *unit, Dwarf_Die *die)
{
	const char *folder = dwarf_attr_text(die, DW_AT_comp_dir);
	Dwarf_Lines *found;
	Dwarf_Files *files;
	size_t nr, nr_files;
	int err = 0;

	if (dwarf_getsrclines(die, &found, &nr) || dwarf_getsrcfiles(die, &files, &nr_files))
		return 0;
	lines->nr_libdw_bytes += nr * LIBDW_ROW_BYTES;
	unit->nr_files = nr_files < MAX_FILES ? (uint32_t)nr_files : MAX_FILES;
	unit->files = calloc(unit->nr_files + 1u, sizeof(*unit->files));
	if (!unit->files)
		return -ENOMEM;
	for (size_t i = 0; i < nr && !err; i++)
		err = read_row(lines, unit, folder, dwarf_onesrcline(found, i));
	return err;
}

bool dwarf_unit_dies(struct dwarf_lines *lines, const struct dwarf_unit *unit, Dwarf_Die *ret_unit, Dwarf_Die *ret_code)
{
	uint8_t type = 0;

	if (!dwarf_offdie(lines->dwarf, unit->die, ret_unit) || dwarf_cu_info(ret_unit->cu, NULL, &type, NULL, ret_code, NULL, NULL, NULL))
		return false;
	if (type == DW_UT_skeleton) {
		lines->nr_libdw_bytes += DWO_UNIT_BYTES;
		return ret_code->addr && dwarf_cu_getdwarf(ret_code->cu) != lines->dwarf;
	}
	*ret_code = *ret_unit;
	return true;
}

static void give_back(void **items, uint32_t nr, uint32_t *capacity, size_t item_size)
{
	void *fitting = nr && nr < *capacity ? reallocarray(*items, nr, item_size) : NULL;

	if (!fitting)
		return;
	*items = fitting;
	*capacity = nr;
}

static int read_tables(struct dwarf_lines *lines, struct dwarf_unit *unit)
{
	bool has_code, is_cut = false;
	Dwarf_Die die = { 0 }, code = { 0 };
	int err;

	lines->nr_libdw_bytes += LIBDW_UNIT_BYTES;
	if (unit + 1 < lines->units + lines->nr_units)
		lines->nr_page_bytes += unit[1].die - unit->die;
	has_code = dwarf_unit_dies(lines, unit, &die, &code);
	if (!die.addr)
		return 0;
	err = read_rows(lines, unit, &die);
	if (err == -EFBIG)
		is_cut = true;
	else if (err)
		return err;
	if (!has_code)
		lines->counts.nr_missing_dwo += !unit->is_counted;
	else {
		err = dwarf_unit_walk(lines, unit, &code);
		if (err == -EFBIG)
			is_cut = true;
		else if (err)
			return err;
	}
	lines->counts.nr_cut += is_cut && !unit->is_counted;
	unit->is_counted = true;
	give_back((void **)&unit->rows, unit->nr_rows, &unit->max_rows, sizeof(*unit->rows));
	give_back((void **)&unit->nodes, unit->nr_nodes, &unit->max_nodes, sizeof(*unit->nodes));
	return dwarf_spans_seal(&unit->code);
}

int dwarf_unit_read(struct dwarf_lines *lines, struct dwarf_unit *unit)
{
	int err = read_tables(lines, unit);

	if (err) {
		dwarf_unit_forget(lines, unit);
		return err;
	}
	unit->is_read = true;
	unit->nr_bytes = unit->code.capacity * sizeof(*unit->code.at) + unit->max_nodes * sizeof(*unit->nodes) +
			 unit->max_rows * sizeof(*unit->rows) + unit->nr_files * sizeof(*unit->files);
	lines->nr_bytes += unit->nr_bytes;
	return 0;
}

void dwarf_unit_forget(struct dwarf_lines *lines, struct dwarf_unit *unit)
{
	dwarf_spans_done(&unit->code);
	free(unit->nodes);
	free(unit->facts);
	free(unit->rows);
	free(unit->files);
	lines->nr_bytes -= unit->nr_bytes;
	*unit = (struct dwarf_unit){ .die = unit->die, .is_counted = unit->is_counted, .last_use = unit->last_use };
}
