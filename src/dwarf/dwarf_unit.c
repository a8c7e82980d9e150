// SPDX-License-Identifier: Apache-2.0
/* One unit's tables: its line rows, and the ranges of its functions and inlined functions. Names are read on demand. */
#include <dwarf.h>
#include <errno.h>
#include <string.h>

#include "dwarf/dwarf_private.h"

#define LIBDW_UNIT_BYTES 32768
#define DWO_UNIT_BYTES	 262144

bool dwarf_is_code(const struct dwarf_lines *lines, uint64_t elf_vaddr)
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
	if (!dwarf_is_code(lines, start))
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
	err = dwarf_unit_rows(lines, unit, &die);
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
