// SPDX-License-Identifier: Apache-2.0
#include "cfi/code_window.h"

void code_window_done(struct code_window *window)
{
	free(window->bytes);
}

bool code_window_has(const struct code_window *window, uint64_t vaddr, uint64_t size)
{
	uint64_t off = vaddr - window->vaddr;

	return off < window->size && size <= window->size - off; /* vaddr may be near 2^64 */
}

const uint8_t *code_window_at(struct code_window *window, uint64_t vaddr, uint64_t *size)
{
	if (code_window_has(window, vaddr, *size))
		return window->bytes + (vaddr - window->vaddr);
	if (!window->bytes && !(window->bytes = malloc(window->max_bytes)))
		return NULL;
	for (uint32_t i = 0; i < elf_file_nr_segments(window->elf); i++) {
		const struct elf_segment *segment = elf_file_segment(window->elf, i);
		uint64_t off = vaddr - segment->vaddr, start, wanted;

		if (vaddr < segment->vaddr || off >= segment->file_size)
			continue;
		if (*size > segment->file_size - off)
			*size = segment->file_size - off;
		start = off;
		if (*size <= window->max_bytes / 2) /* the next read is often just before */
			start &= ~(uint64_t)(window->max_bytes / 2 - 1);
		wanted = segment->file_size - start < window->max_bytes ? segment->file_size - start : window->max_bytes;
		window->size = 0;
		if (*size > wanted || elf_file_read_at(window->elf, segment->file_off + start, window->bytes, wanted))
			return NULL;
		window->vaddr = segment->vaddr + start;
		window->size = wanted;
		return window->bytes + (off - start);
	}
	return NULL;
}
