// SPDX-License-Identifier: Apache-2.0
#include "runtime/fde_index.h"

#include <errno.h>
#include <string.h>

#define MAX_FDES (1u << 20)

/* Encodings that linkers use: DW_EH_PE_udata4; datarel | sdata4; pcrel | sdata4. */
#define UDATA4 0x03
#define DATAREL_SDATA4 0x3b
#define PCREL_SDATA4 0x1b

int fde_index_read(const struct elf_file *elf, struct fde_index *ret_index)
{
	uint64_t file_off, vaddr, size;
	struct fde_entry *entries;
	uint8_t head[12];
	uint32_t nr;

	if (elf_file_eh_frame_hdr(elf, &file_off, &vaddr, &size) || size < sizeof(head) ||
	    elf_file_read_at(elf, file_off, head, sizeof(head)))
		return -ENOENT;
	memcpy(&nr, head + 8, sizeof(nr));
	if (head[0] != 1 || head[1] != PCREL_SDATA4 || head[2] != UDATA4 || head[3] != DATAREL_SDATA4 || !nr || nr > MAX_FDES ||
	    nr > (size - sizeof(head)) / sizeof(*entries))
		return -ENOENT;
	entries = calloc(nr, sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	if (elf_file_read_at(elf, file_off + sizeof(head), entries, nr * sizeof(*entries))) {
		free(entries);
		return -ENOENT;
	}
	*ret_index = (struct fde_index){ .vaddr = vaddr, .nr = nr, .entries = entries };
	return 0;
}

uint64_t fde_index_pc(const struct fde_index *index, uint32_t i)
{
	return index->vaddr + (uint64_t)(int64_t)index->entries[i].pc;
}

uint32_t fde_index_find(const struct fde_index *index, uint64_t pc)
{
	uint32_t low = 0, high = index->nr;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (fde_index_pc(index, middle) <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? low - 1 : index->nr;
}

int fde_index_end(const struct elf_file *elf, const struct fde_index *index, uint32_t i, uint64_t *ret_end)
{
	uint64_t at = index->vaddr + (uint64_t)(int64_t)index->entries[i].fde, start = fde_index_pc(index, i);
	uint32_t words[4]; /* length, CIE, pc, size */

	if (elf_file_read_vaddr(elf, at, words, sizeof(words)) || at + 8 + (uint64_t)(int64_t)(int32_t)words[2] != start || !words[3])
		return -EBADMSG;
	*ret_end = start + words[3];
	return 0;
}
