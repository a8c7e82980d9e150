// SPDX-License-Identifier: Apache-2.0
#include "symbols/symbol_names.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define FAR_BYTES  512u	/* read for a name that does not follow the last one */
#define NEXT_BYTES ((size_t)64 << 10)
#define NAME_BYTES ((size_t)1 << 20) /* of one name, at most */
#define TABLE_BYTES ((size_t)1 << 30)

/* A compressed table has one part. */
static int read_whole(struct symbol_names *names, struct diag *diag)
{
	void *bytes;
	size_t size;
	int err = elf_file_read_section(names->elf, names->section, TABLE_BYTES, diag, &bytes, &size);

	if (err)
		return err;
	names->part = bytes;
	names->total = names->size = names->capacity = size;
	return 0;
}

static int read_last(struct symbol_names *names, struct diag *diag, char *ret_last)
{
	const struct elf_section *section = names->section;

	*ret_last = 'x';
	if (section->flags & SHF_COMPRESSED) {
		int err = read_whole(names, diag);

		if (!err && names->total)
			*ret_last = names->part[names->total - 1];
		return err;
	}
	if (section->type == SHT_NOBITS || section->type == SHT_NULL)
		return diag_errno(diag, ENODATA, "section %s has no bytes in the file", section->name);
	if (section->size > TABLE_BYTES)
		return diag_errno(diag, EFBIG, "section %s has %llu bytes", section->name, (unsigned long long)section->size);
	names->total = section->size;
	if (names->total && elf_file_read_at(names->elf, section->file_off + section->size - 1, ret_last, 1))
		return diag_errno(diag, EBADMSG, "section %s passes the file's end", section->name);
	return 0;
}

int symbol_names_open(struct symbol_names *names, const struct elf_file *elf, const struct elf_section *section, struct diag *diag)
{
	char last;
	int err;

	*names = (struct symbol_names){ .elf = elf, .section = section };
	err = read_last(names, diag, &last);
	return !err && last ? diag_errno(diag, EBADMSG, "string table %s does not end", section->name) : err;
}

void symbol_names_done(struct symbol_names *names)
{
	free(names->part);
	*names = (struct symbol_names){ 0 };
}

/* Reads so many bytes from there, or up to the end. */
static int read_part(struct symbol_names *names, uint64_t from, size_t size)
{
	uint64_t left = names->total - from;

	if (size > left)
		size = (size_t)left;
	if (size >= names->capacity) {
		char *grown = realloc(names->part, size + 1);

		if (!grown)
			return -ENOMEM;
		names->part = grown;
		names->capacity = size + 1;
	}
	names->from = from;
	names->size = elf_file_read_at(names->elf, names->section->file_off + from, names->part, size) ? 0 : size;
	names->part[names->size] = '\0';
	return names->size ? 0 : -EBADMSG;
}

/* The name, if all of it is in the part. */
static char *in_part(const struct symbol_names *names, uint64_t off)
{
	char *name;

	if (!names->size || off < names->from || off >= names->from + names->size)
		return NULL;
	name = names->part + (off - names->from);
	return strlen(name) < names->from + names->size - off ? name : NULL;
}

char *symbol_names_at(struct symbol_names *names, uint64_t off)
{
	bool is_next = off >= names->from && off < names->from + names->size + NEXT_BYTES;
	char *name = in_part(names, off);

	if (off >= names->total)
		return NULL;
	for (size_t size = is_next ? NEXT_BYTES : FAR_BYTES; !name && size <= NAME_BYTES; size *= 4) {
		if (read_part(names, off, size))
			return NULL;
		name = in_part(names, off);
	}
	return name;
}
