// SPDX-License-Identifier: Apache-2.0
/* Any bytes as an ELF file: if it opens, every answer lies within the file, and an unwind table built from it is valid. */
#include <errno.h>
#include <string.h>

#include "check_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask(const struct elf_file *elf)
{
	uint64_t at, vaddr, length;
	char text[2 * BUILD_ID_MAX + 1];

	build_id_text(elf_file_build_id(elf), text);
	check_that(strlen(text) == 2u * elf_file_build_id(elf)->size && elf_file_build_id(elf)->size <= BUILD_ID_MAX);
	for (uint32_t i = 0; i < elf_file_nr_sections(elf); i++) {
		const struct elf_section *section = elf_file_section(elf, i);
		void *bytes;
		size_t nr_bytes;

		check_that(elf_file_find_section(elf, section->name) != NULL);
		if (elf_file_read_section(elf, section, 4096, NULL, &bytes, &nr_bytes))
			continue;
		check_that(nr_bytes == section->size && nr_bytes <= elf_file_size(elf));
		free(bytes);
	}
	for (uint32_t i = 0; i < elf_file_nr_segments(elf); i++) {
		const struct elf_segment *segment = elf_file_segment(elf, i);
		int err = elf_file_off_to_vaddr(elf, segment->file_off, &vaddr);

		check_that(!err || err == -ENOENT);
		check_that(segment->vaddr + segment->mem_size >= segment->vaddr);
	}
	if (!elf_file_eh_frame_hdr(elf, &at, &vaddr, &length))
		check_that(at + length >= at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	CLEANUP(rule_table_freep) struct rule_table *rules = NULL;
	CLEANUP(unwind_table_freep) struct unwind_table *table = NULL;
	struct diag diag = { 0 };

	if (size > 65536 || elf_file_open_memory(data, size, &diag, &elf))
		return 0;
	ask(elf);
	rules = rule_table_new(256);
	if (rules && !unwind_table_build(elf, rules, &diag, &table))
		check_table(table, rules);
	return 0;
}
