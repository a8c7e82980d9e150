// SPDX-License-Identifier: Apache-2.0
/* Names and paths, one copy of each: libdw's own are freed when it is closed. */
#include <errno.h>
#include <string.h>

#include "dwarf/dwarf_private.h"

#define MAX_TEXTS (1u << 24)

void *dwarf_grow(void *items, uint32_t nr, uint32_t *capacity, uint32_t max, size_t item_size)
{
	uint32_t wanted = nr < 32 ? 64 : nr + nr / 2;
	void *grown;

	if (wanted > max)
		wanted = max;
	grown = wanted > nr ? reallocarray(items, wanted, item_size) : NULL;
	if (grown)
		*capacity = wanted;
	return grown;
}

static int add_text(struct dwarf_lines *lines, uint64_t hash, const char *text, size_t length)
{
	char *copy;
	int err;

	if (lines->nr_texts == lines->max_texts) {
		void *grown = dwarf_grow(lines->text_list, lines->nr_texts, &lines->max_texts, MAX_TEXTS, sizeof(*lines->text_list));

		if (!grown)
			return lines->nr_texts < MAX_TEXTS ? -ENOMEM : -EFBIG;
		lines->text_list = grown;
	}
	copy = arena_alloc(lines->texts, length + 1);
	if (!copy)
		return -ENOMEM;
	err = u64_map_add(&lines->text_numbers, hash, lines->nr_texts);
	if (err)
		return err;
	memcpy(copy, text, length + 1);
	lines->text_list[lines->nr_texts++] = copy;
	return 0;
}

int dwarf_text(struct dwarf_lines *lines, const char *text, const char **ret_text)
{
	size_t length = strnlen(text, DWARF_MAX_NAME);
	uint64_t hash = hash_bytes(text, length, 0);
	uint32_t cursor = 0, *number;
	int err;

	if (length == DWARF_MAX_NAME)
		return -EFBIG;
	while ((number = u64_map_each(&lines->text_numbers, hash, &cursor))) {
		if (strcmp(lines->text_list[*number], text) == 0) {
			*ret_text = lines->text_list[*number];
			return 0;
		}
	}
	err = add_text(lines, hash, text, length);
	if (!err)
		*ret_text = lines->text_list[lines->nr_texts - 1];
	return err;
}

/* Appends the path without "./" and "//". False: too long. */
static bool add_path(char *plain, size_t *length, const char *path)
{
	for (const char *at = path; *at;) {
		bool starts = at == path || at[-1] == '/';

		if (*length + 1 >= DWARF_MAX_NAME)
			return false;
		if (starts && at[0] == '.' && (at[1] == '/' || !at[1])) {
			at += at[1] ? 2 : 1;
			continue;
		}
		if (*at != '/' || !*length || plain[*length - 1] != '/')
			plain[(*length)++] = *at;
		at++;
	}
	plain[*length] = '\0';
	return true;
}

static bool add_folder(char *plain, size_t *length, const char *folder)
{
	return add_path(plain, length, folder) && (!*length || add_path(plain, length, "/"));
}

int dwarf_path(struct dwarf_lines *lines, const char *folder, const char *between, const char *name, const char **ret_path)
{
	size_t length = 0, folder_length = folder ? strlen(folder) : 0;
	const char *first = *name == '/' || !*between ? name : between;
	bool is_whole = *first == '/' || !folder_length ||
			(*folder != '/' && strncmp(first, folder, folder_length) == 0 &&
			 (first[folder_length] == '/' || (first == between && !first[folder_length])));
	char plain[DWARF_MAX_NAME];

	if (!is_whole && !add_folder(plain, &length, folder))
		return -EFBIG;
	if (first == between && !add_folder(plain, &length, between))
		return -EFBIG;
	return add_path(plain, &length, name) ? dwarf_text(lines, plain, ret_path) : -EFBIG;
}
