// SPDX-License-Identifier: Apache-2.0
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "cfi/cfi_program.h"

#define MAX_SECTION_BYTES ((size_t)256 << 20) /* the largest one seen has 8 MB */
#define PAGE_BYTES	  4096u
#define LOOK_STEP_BYTES	  (1u << 20)
#define MAX_HEADER_BYTES  12u		      /* version, three encodings, a pointer of at most eight bytes */

void cfi_section_done(struct cfi_section *section)
{
	free((void *)section->bytes);
	section->bytes = NULL;
}

static uint64_t vaddr_of(const struct elf_file *elf, const char *name)
{
	const struct elf_section *section = elf_file_find_section(elf, name);

	return section ? section->vaddr : 0;
}

static bool is_zero(const uint8_t *bytes, size_t size)
{
	return !bytes[0] && !memcmp(bytes, bytes + 1, size - 1);
}

/* A hole in the file ends a section: linkers leave none there, but an untrusted file can have a huge one at no cost. Returns the bytes up
 * to the hole or a little after it: checks one page per MiB. (lseek(2) would change the file offset of all who share the file's
 * description.) */
static uint64_t size_to_hole(const struct elf_file *elf, const struct elf_section *section)
{
	uint8_t page[PAGE_BYTES];

	for (uint64_t at = 0; at + sizeof(page) < section->size; at += LOOK_STEP_BYTES) {
		if (elf_file_read_at(elf, section->file_off + at, page, sizeof(page)))
			break; /* reading it all will report the error */
		if (is_zero(page, sizeof(page)))
			return at;
	}
	return section->size;
}

static int read_named(const struct elf_file *elf, const char *name, struct diag *diag, struct cfi_section *section)
{
	const struct elf_section *named = elf_file_find_section(elf, name);
	struct elf_section dense;
	void *bytes;
	int err;

	if (!named || named->type == SHT_NOBITS || named->type == SHT_NULL || (named->flags & SHF_COMPRESSED))
		return -ENODATA;
	dense = *named;
	dense.size = size_to_hole(elf, named);
	section->is_open_ended = dense.size < named->size;
	err = elf_file_read_section(elf, &dense, MAX_SECTION_BYTES, diag, &bytes, &section->size);
	if (err)
		return err;
	section->bytes = bytes;
	section->vaddr = named->vaddr;
	section->text_vaddr = vaddr_of(elf, ".text");
	section->data_vaddr = vaddr_of(elf, ".got");
	return 0;
}

/* The start of .eh_frame, from the header that the run time uses to find it (LSB core "Exception Frame Header"). */
static int read_eh_frame_ptr(const struct elf_file *elf, uint64_t *ret_vaddr)
{
	uint8_t bytes[MAX_HEADER_BYTES] = { 0 };
	uint64_t file_off, vaddr, size, start;
	struct cfi_section header = { .bytes = bytes };
	struct reader r;

	if (elf_file_eh_frame_hdr(elf, &file_off, &vaddr, &size))
		return -ENODATA;
	if (size > sizeof(bytes))
		size = sizeof(bytes);
	if (elf_file_read_at(elf, file_off, bytes, size))
		return -EBADMSG;
	header.vaddr = header.data_vaddr = vaddr;
	r = reader_of(bytes, size);
	if (reader_u8(&r) != 1)
		return -EBADMSG;
	reader_skip(&r, 3);
	start = cfi_read_pointer(&header, &r, bytes[1]);
	if (r.bad || !start)
		return -EBADMSG;
	*ret_vaddr = start;
	return 0;
}

/* Without section headers the size is not known: the end of the segment bounds it, and the zero terminator ends it. */
static int read_through_header(const struct elf_file *elf, struct diag *diag, struct cfi_section *section)
{
	uint64_t start;
	void *bytes;
	int err = read_eh_frame_ptr(elf, &start);

	if (err)
		return err == -ENODATA ? err : diag_errno(diag, -err, ".eh_frame_hdr is damaged");
	for (uint32_t i = 0; i < elf_file_nr_segments(elf); i++) {
		const struct elf_segment *segment = elf_file_segment(elf, i);
		struct elf_section range = { .name = ".eh_frame", .type = SHT_PROGBITS };

		if (start < segment->vaddr || start - segment->vaddr >= segment->file_size)
			continue;
		range.file_off = segment->file_off + (start - segment->vaddr);
		range.size = segment->file_size - (start - segment->vaddr);
		if (range.size > MAX_SECTION_BYTES)
			range.size = MAX_SECTION_BYTES;
		range.size = size_to_hole(elf, &range);
		section->vaddr = start;
		section->is_open_ended = true;
		err = elf_file_read_section(elf, &range, MAX_SECTION_BYTES, diag, &bytes, &section->size);
		section->bytes = err ? NULL : bytes;
		return err;
	}
	return diag_errno(diag, EBADMSG, ".eh_frame_hdr points out of the file");
}

int cfi_section_read(const struct elf_file *elf, enum cfi_format format, struct diag *diag, struct cfi_section *ret_section)
{
	struct cfi_section section = { .format = format, .machine = elf_file_machine(elf) };
	int err = read_named(elf, format == CFI_EH_FRAME ? ".eh_frame" : ".debug_frame", diag, &section);

	if (err == -ENODATA && format == CFI_EH_FRAME && !elf_file_find_section(elf, ".eh_frame"))
		err = read_through_header(elf, diag, &section);
	if (!err)
		*ret_section = section;
	return err;
}
