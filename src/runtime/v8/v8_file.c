// SPDX-License-Identifier: Apache-2.0
#include "runtime/v8/v8_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <elf.h>

#define MAX_TABLE_BYTES (64 << 20)

static bool is_wanted(const char *name)
{
	return !strncmp(name, "v8dbg_", 6) || !strncmp(name, "_ZN2v88internal", 15) || !strncmp(name, "v8_Default_", 11);
}

static int add(struct v8_file *file, const char *name, uint64_t elf_vaddr)
{
	if (file->nr == file->capacity) {
		size_t capacity = file->capacity ? 2 * file->capacity : 1024;
		struct v8_symbol *symbols = reallocarray(file->symbols, capacity, sizeof(*symbols));

		if (!symbols)
			return -ENOMEM;
		file->symbols = symbols;
		file->capacity = capacity;
	}
	file->symbols[file->nr++] = (struct v8_symbol){ name, elf_vaddr };
	return 0;
}

/* Adds the symbols of one table. A damaged one counts as none. */
static int add_table(struct v8_file *file, uint32_t type, char **strings)
{
	CLEANUP(freep) Elf64_Sym *symbols = NULL;
	size_t size = 0, strings_size = 0;
	int err = 0;

	for (uint32_t i = 0; i < elf_file_nr_sections(file->elf); i++) {
		const struct elf_section *section = elf_file_section(file->elf, i);

		if (section->type != type || section->link >= elf_file_nr_sections(file->elf))
			continue;
		err = elf_file_read_section(file->elf, section, MAX_TABLE_BYTES, NULL, (void **)&symbols, &size);
		if (!err)
			err = elf_file_read_section(file->elf, elf_file_section(file->elf, section->link), MAX_TABLE_BYTES, NULL,
						    (void **)strings, &strings_size);
		break;
	}
	if (err || !strings_size || (*strings)[strings_size - 1])
		return err == -ENOMEM ? err : 0;
	for (size_t i = 0; !err && i < size / sizeof(*symbols); i++) {
		if (symbols[i].st_name < strings_size && symbols[i].st_shndx != SHN_UNDEF && is_wanted(*strings + symbols[i].st_name))
			err = add(file, *strings + symbols[i].st_name, symbols[i].st_value);
	}
	return err;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct v8_symbol *)a)->name, ((const struct v8_symbol *)b)->name);
}

int v8_file_read(const struct elf_file *elf, struct v8_file *ret_file)
{
	int err;

	*ret_file = (struct v8_file){ .elf = elf };
	err = add_table(ret_file, SHT_DYNSYM, &ret_file->strings[0]);
	if (!err)
		err = add_table(ret_file, SHT_SYMTAB, &ret_file->strings[1]);
	if (err)
		return err;
	if (!ret_file->nr)
		return -ENOENT;
	qsort(ret_file->symbols, ret_file->nr, sizeof(*ret_file->symbols), by_name);
	return 0;
}

void v8_file_done(struct v8_file *file)
{
	free(file->symbols);
	free(file->strings[0]);
	free(file->strings[1]);
}

const struct v8_symbol *v8_file_find(const struct v8_file *file, const char *prefix)
{
	size_t low = 0, high = file->nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(file->symbols[middle].name, prefix) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < file->nr && !strncmp(file->symbols[low].name, prefix, strlen(prefix)) ? &file->symbols[low] : NULL;
}

int v8_file_constant(const struct v8_file *file, const char *prefix, int32_t *ret_value)
{
	const struct v8_symbol *symbol = v8_file_find(file, prefix);

	return symbol && !elf_file_read_vaddr(file->elf, symbol->elf_vaddr, ret_value, sizeof(*ret_value)) ? 0 : -ENOENT;
}
