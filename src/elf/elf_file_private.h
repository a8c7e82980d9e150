/* SPDX-License-Identifier: Apache-2.0 */
/* What elf_file.c (look-ups) and elf_open.c (reading the headers) share. */
#pragma once
#include <stdbool.h>

#include "elf/elf_file.h"

struct elf_file {
	int fd;		      /* -1: in memory */
	uint32_t nr_sharers;  /* owners beside the first; atomic */
	const uint8_t *bytes; /* borrowed; NULL: in fd */
	uint64_t size;
	uint32_t owner;	      /* uid */
	uint16_t type, machine;
	uint64_t entry;
	struct build_id build_id;
	uint32_t nr_notes_read;
	struct elf_segment *segments;
	uint32_t nr_segments;
	struct elf_section *sections;
	uint32_t nr_sections;
	char *names; /* the section name table and a NUL */
	size_t names_size;
	bool has_eh_frame_hdr;
	struct elf_segment eh_frame_hdr;
};

static inline bool elf_is_in_file(const struct elf_file *elf, uint64_t file_off, uint64_t size)
{
	return file_off <= elf->size && size <= elf->size - file_off;
}
