// SPDX-License-Identifier: Apache-2.0
/* Opening: every count and offset of the headers is checked here, once. */
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/reader.h"
#include "elf/elf_file_private.h"

#define MAX_SEGMENTS   256u		    /* kept for each file; linked files have a dozen */
/* These and their names are kept for each file: 300 KiB at most. Linked files have some dozens. */
#define MAX_SECTIONS   4096u
#define MAX_NAME_BYTES ((size_t)64 << 10)
#define MAX_NOTES      64u		    /* note sections and segments that are read */
#define MAX_NOTE_BYTES ((uint64_t)64 << 10) /* the build id is among the first notes */

/* Reads a header table of `nr` entries into newly allocated memory. */
static int read_table(const struct elf_file *elf, uint64_t file_off, uint32_t nr, size_t entry_size, struct diag *diag, void **ret_table)
{
	CLEANUP(freep) void *table = NULL;
	int err;

	if (!elf_is_in_file(elf, file_off, nr * (uint64_t)entry_size)) /* nr is capped */
		return diag_errno(diag, EBADMSG, "ELF header table passes the file's end");
	table = malloc(nr * entry_size);
	if (!table)
		return -ENOMEM;
	err = elf_file_read_at(elf, file_off, table, nr * entry_size);
	if (err)
		return diag_errno(diag, -err, "ELF header table cannot be read");
	*ret_table = MOVE(table);
	return 0;
}

/* Sets the build id from the first GNU build id among notes padded to `align` (4 or 8). */
static void scan_notes(struct elf_file *elf, uint64_t file_off, uint64_t size, uint64_t align)
{
	CLEANUP(freep) void *bytes = NULL;
	struct reader r;

	align = align == 8 ? 8 : 4;
	if (elf->nr_notes_read++ >= MAX_NOTES)
		return;
	if (size > MAX_NOTE_BYTES)
		size = MAX_NOTE_BYTES;
	bytes = malloc(size ? size : 1);
	if (!bytes || elf_file_read_at(elf, file_off, bytes, size))
		return; /* without a build id the file still unwinds */
	r = reader_of(bytes, size);
	while (reader_left(&r)) {
		uint64_t name_size = reader_u32(&r), desc_size = reader_u32(&r);
		uint32_t type = reader_u32(&r);
		uint64_t start = (uint64_t)(r.pos - (const uint8_t *)bytes);
		uint64_t desc = (start + name_size + align - 1) & ~(align - 1);
		uint64_t next = (desc + desc_size + align - 1) & ~(align - 1);

		if (r.bad || desc + desc_size > size)
			return;
		if (type == NT_GNU_BUILD_ID && name_size == 4 && !memcmp(r.pos, "GNU", 4) && desc_size && desc_size <= BUILD_ID_MAX) {
			elf->build_id.size = (uint8_t)desc_size;
			memcpy(elf->build_id.bytes, (const uint8_t *)bytes + desc, desc_size);
			return;
		}
		reader_skip(&r, next - start);
	}
}

/* The first section has the counts that do not fit the header (gABI, "ELF header"). */
static int count_sections(const struct elf_file *elf, const Elf64_Ehdr *header, struct diag *diag, uint32_t *ret_nr, uint32_t *ret_names)
{
	uint64_t nr = header->e_shnum;
	uint32_t names = header->e_shstrndx;

	if (header->e_shoff && (!nr || names == SHN_XINDEX)) {
		Elf64_Shdr first;
		int err = elf_file_read_at(elf, header->e_shoff, &first, sizeof(first));

		if (err)
			return diag_errno(diag, -err, "ELF section headers cannot be read");
		nr = nr ? nr : first.sh_size;
		names = names == SHN_XINDEX ? first.sh_link : names;
	}
	if (!header->e_shoff)
		nr = 0; /* stripped */
	if (nr > MAX_SECTIONS || (nr && header->e_shentsize != sizeof(Elf64_Shdr)))
		return diag_errno(diag, EBADMSG, "ELF file of %llu section headers of %u bytes", (unsigned long long)nr,
				  header->e_shentsize);
	*ret_nr = (uint32_t)nr;
	*ret_names = names;
	return 0;
}

/* Reads the name table and adds a NUL, so that every offset into it is a text. */
static void read_names(struct elf_file *elf, const struct elf_section *section)
{
	if (section->type != SHT_STRTAB || section->size > MAX_NAME_BYTES || !elf_is_in_file(elf, section->file_off, section->size))
		return;
	elf->names = malloc(section->size + 1);
	if (!elf->names || elf_file_read_at(elf, section->file_off, elf->names, section->size)) {
		free(MOVE(elf->names));
		return;
	}
	elf->names[section->size] = '\0';
	elf->names_size = section->size;
}

static int read_sections(struct elf_file *elf, const Elf64_Ehdr *header, struct diag *diag)
{
	CLEANUP(freep) void *table = NULL;
	uint32_t nr = 0, names = 0;
	const Elf64_Shdr *raw;
	int err = count_sections(elf, header, diag, &nr, &names);

	if (err || !nr)
		return err;
	err = read_table(elf, header->e_shoff, nr, sizeof(Elf64_Shdr), diag, &table);
	if (err)
		return err;
	raw = table;
	elf->sections = calloc(nr, sizeof(*elf->sections));
	if (!elf->sections)
		return -ENOMEM;
	elf->nr_sections = nr;
	for (uint32_t i = 0; i < nr; i++) {
		elf->sections[i] = (struct elf_section){
			.name = "",
			.type = raw[i].sh_type,
			.link = raw[i].sh_link,
			.info = raw[i].sh_info,
			.flags = raw[i].sh_flags,
			.vaddr = raw[i].sh_addr,
			.file_off = raw[i].sh_offset,
			.size = raw[i].sh_size,
			.entry_size = raw[i].sh_entsize,
		};
	}
	if (names < nr)
		read_names(elf, &elf->sections[names]);
	for (uint32_t i = 0; i < nr; i++) {
		if (raw[i].sh_name < elf->names_size)
			elf->sections[i].name = elf->names + raw[i].sh_name;
	}
	return 0;
}

static bool segment_of(const Elf64_Phdr *raw, struct elf_segment *to)
{
	uint64_t end;

	*to = (struct elf_segment){
		.file_off = raw->p_offset,
		.file_size = raw->p_filesz,
		.vaddr = raw->p_vaddr,
		.mem_size = raw->p_memsz,
		.align = raw->p_align,
		.flags = raw->p_flags,
	};
	return !__builtin_add_overflow(to->file_off, to->file_size, &end) && !__builtin_add_overflow(to->vaddr, to->mem_size, &end);
}

/* Segments may pass the file's end: the program headers of a separate debug file describe the original. */
static int read_segments(struct elf_file *elf, const Elf64_Ehdr *header, struct diag *diag)
{
	CLEANUP(freep) void *table = NULL;
	uint32_t nr = header->e_phnum;
	const Elf64_Phdr *raw;
	int err;

	if (!header->e_phoff || !nr)
		return 0;
	if (header->e_phentsize != sizeof(Elf64_Phdr) || nr > MAX_SEGMENTS)
		return diag_errno(diag, EBADMSG, "ELF file of %u program headers of %u bytes", nr, header->e_phentsize);
	err = read_table(elf, header->e_phoff, nr, sizeof(Elf64_Phdr), diag, &table);
	if (err)
		return err;
	raw = table;
	elf->segments = calloc(nr, sizeof(*elf->segments));
	if (!elf->segments)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr; i++) {
		struct elf_segment segment;

		if (raw[i].p_type != PT_LOAD && raw[i].p_type != PT_GNU_EH_FRAME && raw[i].p_type != PT_NOTE)
			continue;
		if (!segment_of(&raw[i], &segment))
			return diag_errno(diag, EBADMSG, "ELF segment %u wraps around", i);
		if (raw[i].p_type == PT_LOAD) {
			elf->segments[elf->nr_segments++] = segment;
		} else if (raw[i].p_type == PT_GNU_EH_FRAME) {
			elf->eh_frame_hdr = segment;
			elf->has_eh_frame_hdr = true;
		} else if (!elf->build_id.size) {
			scan_notes(elf, segment.file_off, segment.file_size, raw[i].p_align);
		}
	}
	return 0;
}

/* Runs before the segments are read: if both have a build id, in a separate debug file the section is right and the segment is not. */
static void find_build_id(struct elf_file *elf)
{
	const struct elf_section *section = elf_file_find_section(elf, ".note.gnu.build-id");

	if (section && section->type == SHT_NOTE)
		scan_notes(elf, section->file_off, section->size, 4);
}

static void find_build_id_in_other_sections(struct elf_file *elf)
{
	for (uint32_t i = 0; i < elf->nr_sections && !elf->build_id.size; i++) {
		if (elf->sections[i].type == SHT_NOTE)
			scan_notes(elf, elf->sections[i].file_off, elf->sections[i].size, 4);
	}
}

static int read_headers(struct elf_file *elf, struct diag *diag)
{
	Elf64_Ehdr header;
	int err;

	if (elf->size < sizeof(header))
		return diag_errno(diag, ENOEXEC, "not an ELF file: too short");
	err = elf_file_read_at(elf, 0, &header, sizeof(header));
	if (err)
		return diag_errno(diag, -err, "ELF header cannot be read");
	if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
		return diag_errno(diag, ENOEXEC, "not an ELF file");
	if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
		return diag_errno(diag, ENOEXEC, "not a 64-bit little-endian ELF file");
	elf->type = header.e_type;
	elf->entry = header.e_entry;
	elf->machine = header.e_machine;
	err = read_sections(elf, &header, diag);
	if (err)
		return err;
	find_build_id(elf);
	err = read_segments(elf, &header, diag);
	if (err)
		return err;
	find_build_id_in_other_sections(elf);
	return 0;
}

static int open_file(int fd, const void *bytes, uint64_t size, struct diag *diag, struct elf_file **ret_elf)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = calloc(1, sizeof(*elf));
	int err;

	if (!elf)
		return -ENOMEM;
	elf->fd = fd;
	elf->bytes = bytes;
	elf->size = size;
	err = read_headers(elf, diag);
	if (err) {
		elf->fd = -1; /* the caller still owns it */
		return err;
	}
	*ret_elf = MOVE(elf);
	return 0;
}

int elf_file_open_fd(int fd, struct diag *diag, struct elf_file **ret_elf)
{
	struct stat st;
	int err;

	if (fstat(fd, &st) < 0)
		return diag_errno(diag, errno, "ELF file cannot be examined");
	if (!S_ISREG(st.st_mode) || st.st_size <= 0)
		return diag_errno(diag, ENOEXEC, "not a regular file, or empty");
	err = open_file(fd, NULL, (uint64_t)st.st_size, diag, ret_elf);
	if (!err)
		(*ret_elf)->owner = st.st_uid;
	return err;
}

int elf_file_open_memory(const void *bytes, size_t size, struct diag *diag, struct elf_file **ret_elf)
{
	return open_file(-1, bytes, size, diag, ret_elf);
}
