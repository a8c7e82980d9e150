// SPDX-License-Identifier: Apache-2.0
/* Reads a unit's line table (DWARF 5 section 6.2, DWARF 2 to 4 likewise) without libdw, which keeps 64 bytes per row until it is closed. It
 * also sorts all rows, although they come in sequences that are sorted already. */
#include <dwarf.h>
#include <errno.h>
#include <string.h>

#include "base/reader.h"
#include "dwarf/dwarf_private.h"

#define MAX_ROWS      (1u << 25)
#define MAX_SEQUENCES (1u << 22)
#define MAX_FILES     (1u << 20)
#define MAX_FORMATS   16 /* parts of an entry in the lists of directories and files */

struct entry { /* a directory or a file; "": its name cannot be read */
	const char *name;
	uint64_t folder;
};

struct entries {
	struct entry *at;
	uint32_t nr, capacity;
};

struct sequence {
	uint64_t start;
	uint32_t first, nr; /* rows; the last one only ends the sequence */
};

struct table {
	struct dwarf_lines *lines;
	struct reader program;
	uint16_t version;
	bool is_64;
	uint8_t min_bytes, line_range, opcode_base;
	int8_t line_base;
	uint8_t nr_operands[256];
	struct entries folders, files;
	struct dwarf_row *rows;
	struct sequence *sequences;
	uint32_t nr_rows, max_rows, nr_sequences, max_sequences;
};

static void table_done(struct table *table)
{
	free(table->folders.at);
	free(table->files.at);
	free(table->rows);
	free(table->sequences);
}

static int add_entry(struct entries *entries, struct entry entry)
{
	if (entries->nr == entries->capacity) {
		void *grown = dwarf_grow(entries->at, entries->nr, &entries->capacity, MAX_FILES, sizeof(*entries->at));

		if (!grown)
			return entries->nr < MAX_FILES ? -ENOMEM : -EFBIG;
		entries->at = grown;
	}
	entries->at[entries->nr++] = entry;
	return 0;
}

static uint64_t read_offset(const struct table *table, struct reader *r)
{
	return table->is_64 ? reader_u64(r) : reader_u32(r);
}

static const char *text_at(const struct dwarf_bytes *section, uint64_t offset)
{
	struct reader r;

	if (offset >= section->size)
		return "";
	r = reader_of((const uint8_t *)section->at + offset, section->size - (size_t)offset);
	return reader_text(&r);
}

/* Reads a value of DWARF 5's lists: a text or a number. A form that is not for these lists fails the reader. */
static uint64_t read_value(const struct table *table, struct reader *r, uint64_t form, const char **ret_text)
{
	switch (form) {
	case DW_FORM_string:
		*ret_text = reader_text(r);
		return 0;
	case DW_FORM_line_strp:
		*ret_text = text_at(&table->lines->line_texts, read_offset(table, r));
		return 0;
	case DW_FORM_strp:
		*ret_text = text_at(&table->lines->debug_texts, read_offset(table, r));
		return 0;
	case DW_FORM_udata:
		return reader_uleb(r);
	case DW_FORM_data1:
		return reader_u8(r);
	case DW_FORM_data2:
		return reader_u16(r);
	case DW_FORM_data4:
		return reader_u32(r);
	case DW_FORM_data8:
		return reader_u64(r);
	case DW_FORM_data16:
		reader_skip(r, 16);
		return 0;
	case DW_FORM_block:
		reader_skip(r, (size_t)reader_uleb(r));
		return 0;
	default:
		reader_fail(r);
		return 0;
	}
}

static int read_list(const struct table *table, struct reader *r, struct entries *entries)
{
	uint64_t kinds[MAX_FORMATS], forms[MAX_FORMATS], nr;
	unsigned int nr_formats = reader_u8(r);
	int err = 0;

	if (nr_formats > MAX_FORMATS)
		return -EFBIG;
	for (unsigned int i = 0; i < nr_formats; i++) {
		kinds[i] = reader_uleb(r);
		forms[i] = reader_uleb(r);
	}
	nr = reader_uleb(r);
	if (nr > MAX_FILES || (nr && !nr_formats))
		return -EFBIG;
	for (uint64_t i = 0; i < nr && !err && !r->bad; i++) {
		struct entry entry = { .name = "" };

		for (unsigned int k = 0; k < nr_formats; k++) {
			const char *text = NULL;
			uint64_t value = read_value(table, r, forms[k], &text);

			if (kinds[k] == DW_LNCT_path && text)
				entry.name = text;
			else if (kinds[k] == DW_LNCT_directory_index)
				entry.folder = value;
		}
		err = add_entry(entries, entry);
	}
	return err;
}

/* Before DWARF 5 both lists count from 1, and directory 0 is the unit's own. */
static int read_old_lists(struct table *table, struct reader *r, const char *folder)
{
	const char *name;
	int err = add_entry(&table->folders, (struct entry){ .name = folder ? folder : "" });

	while (!err && *(name = reader_text(r)))
		err = add_entry(&table->folders, (struct entry){ .name = name });
	if (!err)
		err = add_entry(&table->files, (struct entry){ .name = "" });
	while (!err && *(name = reader_text(r))) {
		uint64_t number = reader_uleb(r);

		(void)reader_uleb(r); /* modification time and size */
		(void)reader_uleb(r);
		err = add_entry(&table->files, (struct entry){ name, number });
	}
	return err;
}

static int read_header(struct table *table, uint64_t offset, const char *folder)
{
	const struct dwarf_bytes *section = &table->lines->line_tables;
	struct reader r, header;
	uint64_t size;
	uint8_t max_operations = 1;
	int err;

	if (offset >= section->size)
		return -EFBIG;
	r = reader_of((const uint8_t *)section->at + offset, section->size - (size_t)offset);
	size = reader_u32(&r);
	table->is_64 = size == UINT32_MAX;
	if (table->is_64)
		size = reader_u64(&r);
	r = reader_sub(&r, (size_t)size);
	table->version = reader_u16(&r);
	if (table->version < 2 || table->version > 5)
		return -EFBIG;
	if (table->version == 5)
		reader_skip(&r, 2); /* sizes of addresses and segments */
	header = reader_sub(&r, (size_t)read_offset(table, &r));
	table->program = r;
	table->min_bytes = reader_u8(&header);
	if (table->version >= 4)
		max_operations = reader_u8(&header);
	(void)reader_u8(&header); /* whether a row is a statement by default */
	table->line_base = (int8_t)reader_u8(&header);
	table->line_range = reader_u8(&header);
	table->opcode_base = reader_u8(&header);
	if (header.bad || max_operations > 1 || !table->line_range || !table->opcode_base)
		return -EFBIG;
	for (unsigned int i = 1; i < table->opcode_base; i++)
		table->nr_operands[i] = reader_u8(&header);
	if (table->version < 5)
		err = read_old_lists(table, &header, folder);
	else {
		err = read_list(table, &header, &table->folders);
		if (!err)
			err = read_list(table, &header, &table->files);
	}
	return err ? err : header.bad ? -EFBIG : 0;
}

struct machine {
	uint64_t vaddr;
	uint64_t file, line;
	uint32_t first; /* first row of the sequence */
};

static int add_row(struct table *table, const struct machine *machine, bool is_end)
{
	struct dwarf_row row = { machine->vaddr, 0, DWARF_NONE };

	if (table->nr_rows == table->max_rows) {
		void *grown = dwarf_grow(table->rows, table->nr_rows, &table->max_rows, MAX_ROWS, sizeof(*table->rows));

		if (!grown)
			return table->nr_rows < MAX_ROWS ? -ENOMEM : -EFBIG;
		table->rows = grown;
	}
	if (!is_end && machine->file < table->files.nr) {
		row.file = (uint32_t)machine->file;
		row.line = machine->line <= INT32_MAX ? (uint32_t)machine->line : 0;
	}
	table->rows[table->nr_rows++] = row;
	return 0;
}

/* Leaves out an empty sequence, and one whose code the linker removed. */
static int end_sequence(struct table *table, struct machine *machine)
{
	struct sequence sequence = { table->rows[machine->first].vaddr, machine->first, table->nr_rows - machine->first };

	*machine = (struct machine){ .file = 1, .line = 1, .first = table->nr_rows };
	if (!dwarf_is_code(table->lines, sequence.start) || sequence.start == table->rows[table->nr_rows - 1].vaddr) {
		table->nr_rows = machine->first = sequence.first;
		return 0;
	}
	if (table->nr_sequences == table->max_sequences) {
		void *grown =
		    dwarf_grow(table->sequences, table->nr_sequences, &table->max_sequences, MAX_SEQUENCES, sizeof(*table->sequences));

		if (!grown)
			return table->nr_sequences < MAX_SEQUENCES ? -ENOMEM : -EFBIG;
		table->sequences = grown;
	}
	table->sequences[table->nr_sequences++] = sequence;
	return 0;
}

static int run_extended(struct table *table, struct reader *r, struct machine *machine)
{
	struct reader operands = reader_sub(r, (size_t)reader_uleb(r));
	uint8_t code = reader_u8(&operands);
	int err = 0;

	if (operands.bad)
		return 0;
	if (code == DW_LNE_end_sequence) {
		err = add_row(table, machine, true);
		if (!err)
			err = end_sequence(table, machine);
	} else if (code == DW_LNE_set_address) {
		machine->vaddr = 0;
		reader_copy(&operands, &machine->vaddr, reader_left(&operands) < 8 ? reader_left(&operands) : 8);
	}
	return err;
}

static int run_standard(struct table *table, struct reader *r, struct machine *machine, uint8_t code)
{
	switch (code) {
	case DW_LNS_copy:
		return add_row(table, machine, false);
	case DW_LNS_advance_pc:
		machine->vaddr += reader_uleb(r) * table->min_bytes;
		return 0;
	case DW_LNS_advance_line:
		machine->line = (uint32_t)(machine->line + (uint64_t)reader_sleb(r));
		return 0;
	case DW_LNS_set_file:
		machine->file = reader_uleb(r);
		return 0;
	case DW_LNS_const_add_pc:
		machine->vaddr += (uint64_t)((255 - table->opcode_base) / table->line_range) * table->min_bytes;
		return 0;
	case DW_LNS_fixed_advance_pc:
		machine->vaddr += reader_u16(r);
		return 0;
	default: /* columns, kinds of rows, and unknown opcodes */
		for (unsigned int i = 0; i < table->nr_operands[code]; i++)
			(void)reader_uleb(r);
		return 0;
	}
}

static int run_program(struct table *table)
{
	struct machine machine = { .file = 1, .line = 1 };
	struct reader r = table->program;
	int err = 0;

	while (!err && r.pos < r.end) {
		uint8_t code = reader_u8(&r);

		if (code >= table->opcode_base) {
			unsigned int step = code - table->opcode_base;

			machine.vaddr += (uint64_t)(step / table->line_range) * table->min_bytes;
			machine.line = (uint32_t)((int64_t)machine.line + table->line_base + (int)(step % table->line_range));
			err = add_row(table, &machine, false);
		} else if (code)
			err = run_standard(table, &r, &machine, code);
		else
			err = run_extended(table, &r, &machine);
	}
	table->nr_rows = machine.first; /* drops rows without an end */
	return err ? err : r.bad ? -EFBIG : 0;
}

static int by_start(const void *left, const void *right)
{
	const struct sequence *a = left, *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->first < b->first ? -1 : a->first > b->first;
}

/* Of rows at one address, keeps the last. Leaves out a row equal to the one before it. In damaged tables or overlapping sequences, also
 * leaves out a row whose address is lower than the one before it, so that the rows stay sorted. */
static int keep_rows(struct table *table, struct dwarf_unit *unit)
{
	uint32_t nr = 0;

	if (!table->nr_rows)
		return 0;
	unit->rows = calloc(table->nr_rows, sizeof(*unit->rows));
	if (!unit->rows)
		return -ENOMEM;
	unit->max_rows = table->nr_rows;
	qsort(table->sequences, table->nr_sequences, sizeof(*table->sequences), by_start);
	for (uint32_t i = 0; i < table->nr_sequences; i++) {
		const struct sequence *sequence = &table->sequences[i];

		for (uint32_t k = 0; k < sequence->nr; k++) {
			struct dwarf_row row = table->rows[sequence->first + k];

			if (nr && row.vaddr < unit->rows[nr - 1].vaddr)
				continue;
			if (nr && row.vaddr == unit->rows[nr - 1].vaddr)
				nr--;
			if (nr && unit->rows[nr - 1].line == row.line && unit->rows[nr - 1].file == row.file)
				continue;
			unit->rows[nr++] = row;
		}
	}
	unit->nr_rows = nr;
	return 0;
}

static int keep_files(const struct table *table, struct dwarf_unit *unit, const char *folder)
{
	int err = 0;

	unit->files = calloc(table->files.nr + 1u, sizeof(*unit->files));
	if (!unit->files)
		return -ENOMEM;
	for (uint32_t i = 0; i < table->files.nr && !err; i++) {
		const struct entry *file = &table->files.at[i];

		unit->files[i] = "";
		if (*file->name)
			err = dwarf_path(table->lines, folder, file->folder < table->folders.nr ? table->folders.at[file->folder].name : "",
					 file->name, &unit->files[i]);
		if (err == -EFBIG)
			err = 0;
	}
	unit->nr_files = table->files.nr;
	return err;
}

int dwarf_unit_rows(struct dwarf_lines *lines, struct dwarf_unit *unit, Dwarf_Die *die)
{
	CLEANUP(table_done) struct table table = { .lines = lines };
	const char *folder = dwarf_attr_text(die, DW_AT_comp_dir);
	Dwarf_Attribute attribute;
	Dwarf_Word offset;
	int err, cut;

	if (!dwarf_attr(die, DW_AT_stmt_list, &attribute) || dwarf_formudata(&attribute, &offset))
		return 0;
	err = read_header(&table, offset, folder);
	if (err)
		return err;
	lines->nr_page_bytes += reader_left(&table.program);
	cut = run_program(&table);
	if (cut && cut != -EFBIG)
		return cut;
	err = keep_rows(&table, unit);
	if (!err)
		err = keep_files(&table, unit, folder);
	return err ? err : cut;
}
