// SPDX-License-Identifier: Apache-2.0
/* dwz moves what several debug files have in common to one more file. .gnu_debugaltlink has its path and build id. libdw would resolve that
 * path against the debug file's own, for which it needs /proc. Here the usual locations are tried first. */
#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "dwarf/dwarf_private.h"

static bool try_alt(struct dwarf_lines *lines, const char *path, const void *id, size_t size)
{
	CLEANUP(elf_file_freep) struct elf_file *file = NULL;
	CLEANUP(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	const struct build_id *found;

	if (fd < 0 || elf_file_open_fd(fd, NULL, &file))
		return false;
	fd = -1;
	found = elf_file_build_id(file);
	if (found->size != size || memcmp(found->bytes, id, size) != 0)
		return false;
	lines->alt_elf = elf_begin(elf_file_fd(file), ELF_C_READ_MMAP, NULL);
	lines->alt = lines->alt_elf ? dwarf_begin_elf(lines->alt_elf, DWARF_C_READ, NULL) : NULL;
	lines->alt_file = MOVE(file);
	if (!lines->alt)
		dwarf_alt_close(lines);
	return lines->alt;
}

void dwarf_alt_open(struct dwarf_lines *lines)
{
	const char *link = NULL, *shared;
	const uint8_t *id;
	const void *bytes;
	char path[4096], hex[2 * BUILD_ID_MAX + 1] = "";
	ssize_t size = lines->alt ? 0 : dwelf_dwarf_gnu_debugaltlink(lines->dwarf, &link, &bytes);

	if (!lines->alt) {
		if (size < 2 || size > BUILD_ID_MAX || !link)
			return;
		id = bytes;
		for (ssize_t i = 0; i < size; i++)
			snprintf(hex + 2 * i, 3, "%02x", id[i]);
		snprintf(path, sizeof(path), "%s/.build-id/%.2s/%s.debug", lines->debug_dir, hex, hex + 2);
		if (!try_alt(lines, path, bytes, (size_t)size) && *link == '/' && strlen(link) < sizeof(path))
			(void)try_alt(lines, link, bytes, (size_t)size);
		shared = strstr(link, ".dwz/");
		if (!lines->alt && shared && snprintf(path, sizeof(path), "%s/%s", lines->debug_dir, shared) < (int)sizeof(path))
			(void)try_alt(lines, path, bytes, (size_t)size);
	}
	if (lines->alt)
		dwarf_setalt(lines->dwarf, lines->alt);
}

void dwarf_alt_close(struct dwarf_lines *lines)
{
	dwarf_end(lines->alt);
	elf_end(lines->alt_elf);
	elf_file_free(lines->alt_file);
	lines->alt = NULL;
	lines->alt_elf = NULL;
	lines->alt_file = NULL;
}
