/* SPDX-License-Identifier: Apache-2.0 */
/* go_image: Go programs made by hand, in the three layouts of .gopclntab, for the tests of the reader and the seeds of its fuzz target. */
#pragma once
#include <stdbool.h>

#include "elf_image.h"

#define GO_TEXT_VADDR 0x401000
#define GO_TABLE_VADDR 0x500000
#define GO_MODULE_VADDR 0x600000
#define GO_RODATA_VADDR 0x700000
#define GO_MAX_MADE 24

/* A piece of one of a function's tables: the value is valid up to `end`, an offset in the function. end 0 ends the list. */
struct made_piece {
	uint32_t end;
	int32_t value;
};

struct made_function {
	const char *name;
	const char *code;
	uint32_t code_size, size; /* of the code, padded with int3 up to `size` */
	uint8_t flags;
	struct made_piece sp[12], files[4], lines[6], inlined[6];
	uint32_t start_line;
};

struct made_call { /* of the inline tree */
	const char *name;
	uint32_t parent_off, start_line;
};

struct made_program {
	uint32_t magic;
	struct made_function functions[GO_MAX_MADE];
	uint32_t nr_functions;
	struct made_call calls[4];
	const char *files[4];
};

static inline void put_varint(struct bytes *to, uint32_t value)
{
	for (; value >= 0x80; value >>= 7)
		put_u8(to, (uint8_t)(value | 0x80));
	put_u8(to, (uint8_t)value);
}

/* Returns the offset of the table, 0 for none: so the first table must not be at 0. */
static inline uint32_t put_pieces(struct bytes *values, const struct made_piece *pieces, size_t max)
{
	uint32_t start = (uint32_t)values->size, last = 0;
	int32_t value = -1;

	if (!pieces[0].end)
		return 0;
	for (size_t i = 0; i < max && pieces[i].end; i++) {
		int32_t step = pieces[i].value - value;

		put_varint(values, step < 0 ? ~((uint32_t)step << 1) : (uint32_t)step << 1);
		put_varint(values, pieces[i].end - last);
		value = pieces[i].value;
		last = pieces[i].end;
	}
	put_u8(values, 0);
	return start;
}

static inline uint32_t put_name(struct bytes *to, const char *name)
{
	uint32_t start = (uint32_t)to->size;

	put(to, name, strlen(name) + 1);
	return start;
}

static struct bytes go_names, go_units, go_files, go_values, go_entries, go_index, go_text, go_table, go_module, go_tree;

static inline void put_function(const struct made_program *program, const struct made_function *function, uint64_t vaddr)
{
	bool is_old = program->magic == 0xfffffffa, is_new = program->magic == 0xfffffff1;
	uint32_t sp = put_pieces(&go_values, function->sp, 12), file = put_pieces(&go_values, function->files, 4);
	uint32_t line = put_pieces(&go_values, function->lines, 6), inlined = put_pieces(&go_values, function->inlined, 6);

	put_padding(&go_entries, 8);
	if (is_old)
		put_u64(&go_entries, vaddr);
	else
		put_u32(&go_entries, (uint32_t)(vaddr - GO_TEXT_VADDR));
	put_u32(&go_entries, put_name(&go_names, function->name));
	put_u64(&go_entries, 0);
	put_u32(&go_entries, sp);
	put_u32(&go_entries, file);
	put_u32(&go_entries, line);
	put_u32(&go_entries, 3);
	put_u32(&go_entries, 0);
	if (is_new)
		put_u32(&go_entries, function->start_line);
	put_u8(&go_entries, 0);
	put_u8(&go_entries, function->flags);
	put_u8(&go_entries, 0);
	put_u8(&go_entries, 4);
	put_u64(&go_entries, 0);
	put_u32(&go_entries, inlined);
	for (int i = 0; i < 4; i++)
		put_u32(&go_entries, i == 3 && inlined ? 0 : UINT32_MAX);
	put(&go_text, function->code, function->code_size);
	while (go_text.size < vaddr - GO_TEXT_VADDR + function->size)
		put_u8(&go_text, 0xcc);
}

static inline void put_tree(const struct made_program *program)
{
	for (size_t i = 0; i < 4 && program->calls[i].name; i++) {
		const struct made_call *call = &program->calls[i];

		if (program->magic == 0xfffffff0) { /* parent, funcID; file, line, name, parentPc */
			put_u64(&go_tree, 0);
			put_u32(&go_tree, 0);
			put_u32(&go_tree, put_name(&go_names, call->name));
			put_u32(&go_tree, call->parent_off);
		} else {
			put_u32(&go_tree, 0);
			put_u32(&go_tree, put_name(&go_names, call->name));
			put_u32(&go_tree, call->parent_off);
			put_u32(&go_tree, call->start_line);
		}
	}
}

static inline void put_module(const struct made_program *program)
{
	for (int i = 0; i < 41; i++) {
		uint64_t word = 0;

		if (i == 0)
			word = GO_TABLE_VADDR;
		else if (i == 20 || i == 22) /* minpc, text */
			word = GO_TEXT_VADDR;
		else if (i == 21 || i == 23)
			word = GO_TEXT_VADDR + go_text.size;
		else if (i == (program->magic == 0xfffffff1 ? 40 : 38))
			word = GO_RODATA_VADDR;
		put_u64(&go_module, word);
	}
}

/* Makes .gopclntab and the parts that it refers to, in the go_* above. */
static inline void go_make_parts(const struct made_program *program)
{
	struct bytes *all[] = { &go_names, &go_units, &go_files, &go_values, &go_entries,
				&go_index, &go_text,  &go_table, &go_module, &go_tree };
	const struct bytes *parts[] = { &go_names, &go_units, &go_files, &go_values, &go_index };
	bool is_old = program->magic == 0xfffffffa;
	uint64_t vaddr = GO_TEXT_VADDR, at = is_old ? 64 : 72, index_size = (program->nr_functions + 1u) * (is_old ? 16u : 8u);

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		all[i]->size = 0;
	put_u8(&go_names, 0);
	put_u8(&go_values, 0);
	for (size_t i = 0; i < 4 && program->files[i]; i++)
		put_u32(&go_units, put_name(&go_files, program->files[i]));
	for (uint32_t i = 0; i <= program->nr_functions; i++) {
		put_padding(&go_entries, 8);
		if (is_old) {
			put_u64(&go_index, vaddr);
			put_u64(&go_index, index_size + go_entries.size);
		} else {
			put_u32(&go_index, (uint32_t)(vaddr - GO_TEXT_VADDR));
			put_u32(&go_index, (uint32_t)(index_size + go_entries.size));
		}
		if (i < program->nr_functions) {
			put_function(program, &program->functions[i], vaddr);
			vaddr += program->functions[i].size;
		}
	}
	put(&go_index, go_entries.data, go_entries.size);
	put_tree(program);
	put_module(program);
	put_u32(&go_table, program->magic);
	put_u32(&go_table, 0x08010000);
	put_u64(&go_table, program->nr_functions);
	put_u64(&go_table, 1);
	if (!is_old)
		put_u64(&go_table, 0); /* textStart */
	for (size_t i = 0; i < 5; i++) {
		put_u64(&go_table, at);
		at += (parts[i]->size + 15) & ~15ULL;
	}
	for (size_t i = 0; i < 5; i++) {
		put(&go_table, parts[i]->data, parts[i]->size);
		while ((go_table.size - (is_old ? 64 : 72)) % 16)
			put_u8(&go_table, 0);
	}
}

/* Makes the file from the parts, with `table` as .gopclntab. */
static inline void go_make_image(struct bytes *image, const void *table, size_t table_size)
{
	struct image_section sections[] = {
		{ ".text", SHT_PROGBITS, GO_TEXT_VADDR, go_text.data, go_text.size },
		{ ".gopclntab", SHT_PROGBITS, GO_TABLE_VADDR, table, table_size },
		{ ".go.module", SHT_PROGBITS, GO_MODULE_VADDR, go_module.data, go_module.size },
		{ ".rodata", SHT_PROGBITS, GO_RODATA_VADDR, go_tree.data, go_tree.size },
	};
	Elf64_Phdr segments[4] = { 0 };
	uint64_t off = IMAGE_CONTENT_OFF;

	for (size_t i = 0; i < 4; i++) {
		off = (off + 15) & ~15ULL;
		segments[i] = (Elf64_Phdr){ .p_type = PT_LOAD,
					    .p_flags = i ? PF_R : PF_R | PF_X,
					    .p_offset = off,
					    .p_vaddr = sections[i].vaddr,
					    .p_filesz = sections[i].size,
					    .p_memsz = sections[i].size };
		off += sections[i].size;
	}
	image_make(image, segments, 4, sections, 4);
}
