// SPDX-License-Identifier: Apache-2.0
#include "elf/elf_file.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include <zlib.h>
#include <zstd.h>

#include "elf/elf_file_private.h"

#ifndef ELFCOMPRESS_ZSTD /* glibc has it since 2.38 */
#define ELFCOMPRESS_ZSTD 2
#endif

struct elf_file *elf_file_share(struct elf_file *elf)
{
	__atomic_fetch_add(&elf->nr_sharers, 1, __ATOMIC_RELAXED);
	return elf;
}

void elf_file_free(struct elf_file *elf)
{
	if (!elf || __atomic_fetch_sub(&elf->nr_sharers, 1, __ATOMIC_ACQ_REL))
		return;
	closep(&elf->fd);
	free(elf->segments);
	free(elf->sections);
	free(elf->names);
	free(elf);
}

uint16_t elf_file_machine(const struct elf_file *elf)
{
	return elf->machine;
}

uint64_t elf_file_entry(const struct elf_file *elf)
{
	return elf->entry;
}

uint16_t elf_file_type(const struct elf_file *elf)
{
	return elf->type;
}

uint64_t elf_file_size(const struct elf_file *elf)
{
	return elf->size;
}

int elf_file_fd(const struct elf_file *elf)
{
	return elf->fd;
}

uint32_t elf_file_owner(const struct elf_file *elf)
{
	return elf->owner;
}

const void *elf_file_bytes(const struct elf_file *elf)
{
	return elf->bytes;
}

const struct build_id *elf_file_build_id(const struct elf_file *elf)
{
	return &elf->build_id;
}

uint32_t elf_file_nr_segments(const struct elf_file *elf)
{
	return elf->nr_segments;
}

const struct elf_segment *elf_file_segment(const struct elf_file *elf, uint32_t i)
{
	return &elf->segments[i];
}

uint32_t elf_file_nr_sections(const struct elf_file *elf)
{
	return elf->nr_sections;
}

const struct elf_section *elf_file_section(const struct elf_file *elf, uint32_t i)
{
	return &elf->sections[i];
}

size_t elf_file_section_bytes(const struct elf_file *elf)
{
	return elf->nr_sections * sizeof(*elf->sections) + elf->names_size;
}

void elf_file_forget_sections(struct elf_file *elf)
{
	free(MOVE(elf->sections));
	free(MOVE(elf->names));
	elf->nr_sections = 0;
	elf->names_size = 0;
}

const struct elf_section *elf_file_find_section(const struct elf_file *elf, const char *name)
{
	for (uint32_t i = 0; i < elf->nr_sections; i++) {
		if (!strcmp(elf->sections[i].name, name))
			return &elf->sections[i];
	}
	return NULL;
}

int elf_file_eh_frame_hdr(const struct elf_file *elf, uint64_t *ret_file_off, uint64_t *ret_vaddr, uint64_t *ret_size)
{
	if (!elf->has_eh_frame_hdr)
		return -ENODATA;
	*ret_file_off = elf->eh_frame_hdr.file_off;
	*ret_vaddr = elf->eh_frame_hdr.vaddr;
	*ret_size = elf->eh_frame_hdr.file_size;
	return 0;
}

int elf_file_off_to_vaddr(const struct elf_file *elf, uint64_t file_off, uint64_t *ret_elf_vaddr)
{
	const struct elf_segment *rounded = NULL;
	uint64_t page_mask = (uint64_t)sysconf(_SC_PAGESIZE) - 1;

	for (uint32_t i = 0; i < elf->nr_segments; i++) {
		const struct elf_segment *segment = &elf->segments[i];

		if (!(segment->flags & PF_X) || file_off >= segment->file_off + segment->file_size)
			continue;
		if (file_off >= segment->file_off) {
			*ret_elf_vaddr = segment->vaddr + (file_off - segment->file_off);
			return 0;
		}
		if (file_off >= (segment->file_off & ~page_mask))
			rounded = segment;
	}
	/* A mapping starts at a page boundary although its segment may start later in that page (lld lays them out so). */
	if (!rounded)
		return -ENOENT;
	*ret_elf_vaddr = rounded->vaddr - (rounded->file_off - file_off);
	return 0;
}

int elf_file_read_at(const struct elf_file *elf, uint64_t file_off, void *to, size_t size)
{
	char *at = to;

	if (!elf_is_in_file(elf, file_off, size))
		return -EBADMSG;
	if (elf->fd < 0) {
		if (size)
			memcpy(to, elf->bytes + file_off, size);
		return 0;
	}
	while (size) {
		ssize_t got = pread(elf->fd, at, size, (off_t)file_off);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (!got) /* the file has shrunk */
			return -EBADMSG;
		at += got;
		file_off += (uint64_t)got;
		size -= (size_t)got;
	}
	return 0;
}

int elf_file_read_vaddr(const struct elf_file *elf, uint64_t elf_vaddr, void *to, size_t size)
{
	for (uint32_t i = 0; i < elf_file_nr_segments(elf); i++) {
		const struct elf_segment *segment = elf_file_segment(elf, i);
		uint64_t off = elf_vaddr - segment->vaddr;

		if (elf_vaddr < segment->vaddr || off >= segment->file_size || size > segment->file_size - off)
			continue;
		if (segment->file_off > UINT64_MAX - off)
			return -EBADMSG;
		return elf_file_read_at(elf, segment->file_off + off, to, size);
	}
	return -EFAULT;
}

/* The bytes after the header must be exactly the whole section. */
static int unpack(uint32_t type, const void *packed, size_t packed_size, void *to, size_t size)
{
	uLongf nr_out = size;

	if (type == ELFCOMPRESS_ZSTD)
		return ZSTD_decompress(to, size, packed, packed_size) == size ? 0 : -EBADMSG;
	return uncompress(to, &nr_out, packed, packed_size) == Z_OK && nr_out == size ? 0 : -EBADMSG;
}

/* Decompresses the bytes of a section (gABI chapter 4 "Section Compression") in place. */
static int unpack_section(const struct elf_section *section, size_t max_bytes, struct diag *diag, void **bytes, size_t *size)
{
	CLEANUP(freep) void *unpacked = NULL;
	Elf64_Chdr header;

	if (*size < sizeof(header))
		return diag_errno(diag, EBADMSG, "section %s is cut off", section->name);
	memcpy(&header, *bytes, sizeof(header));
	if (header.ch_type != ELFCOMPRESS_ZLIB && header.ch_type != ELFCOMPRESS_ZSTD)
		return diag_errno(diag, EOPNOTSUPP, "section %s is compressed in an unknown way", section->name);
	if (header.ch_size > max_bytes)
		return diag_errno(diag, EFBIG, "section %s has %llu bytes", section->name, (unsigned long long)header.ch_size);
	unpacked = malloc(header.ch_size ? header.ch_size : 1);
	if (!unpacked)
		return -ENOMEM;
	if (unpack(header.ch_type, (char *)*bytes + sizeof(header), *size - sizeof(header), unpacked, header.ch_size))
		return diag_errno(diag, EBADMSG, "compressed section %s is damaged", section->name);
	free(*bytes);
	*bytes = MOVE(unpacked);
	*size = header.ch_size;
	return 0;
}

int elf_file_read_section(const struct elf_file *elf, const struct elf_section *section, size_t max_bytes, struct diag *diag,
			  void **ret_bytes, size_t *ret_size)
{
	CLEANUP(freep) void *bytes = NULL;
	size_t size = section->size;
	int err;

	if (section->type == SHT_NOBITS || section->type == SHT_NULL)
		return diag_errno(diag, ENODATA, "section %s has no bytes in the file", section->name);
	if (!elf_is_in_file(elf, section->file_off, section->size))
		return diag_errno(diag, EBADMSG, "section %s passes the file's end", section->name);
	if (section->size > max_bytes)
		return diag_errno(diag, EFBIG, "section %s has %llu bytes", section->name, (unsigned long long)section->size);
	bytes = malloc(section->size ? section->size : 1);
	if (!bytes)
		return -ENOMEM;
	err = elf_file_read_at(elf, section->file_off, bytes, section->size);
	if (err)
		return diag_errno(diag, -err, "section %s cannot be read", section->name);
	if (section->flags & SHF_COMPRESSED)
		err = unpack_section(section, max_bytes, diag, &bytes, &size);
	if (err)
		return err;
	*ret_bytes = MOVE(bytes);
	*ret_size = size;
	return 0;
}

void build_id_text(const struct build_id *id, char *to)
{
	static const char digits[] = "0123456789abcdef";

	for (uint8_t i = 0; i < id->size; i++) {
		*to++ = digits[id->bytes[i] >> 4];
		*to++ = digits[id->bytes[i] & 15];
	}
	*to = '\0';
}
