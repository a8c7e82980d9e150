// SPDX-License-Identifier: Apache-2.0
#include "audit/audit_file.h"

#include <elf.h>
#include <fcntl.h>
#include <gelf.h>
#include <string.h>
#include <sys/stat.h>

bool audit_files_are_full(const struct audit_files *files)
{
	return files->nr_files == AUDIT_MAX_FILES || files->cfi_bytes > AUDIT_MAX_TOTAL_BYTES - 2 * AUDIT_MAX_FILE_BYTES;
}

static void file_done(struct audit_file *file)
{
	if (file->handle)
		elf_end(file->handle);
	closep(&file->fd);
	free(file->bytes);
}

void audit_files_clear(struct audit_files *files)
{
	for (uint32_t i = 0; i < files->nr_files; i++)
		file_done(&files->files[i]);
	files->nr_files = 0;
	files->cfi_bytes = 0;
}

static uint64_t section_bytes(Elf_Scn *section)
{
	GElf_Shdr header;

	return section && gelf_getshdr(section, &header) ? header.sh_size : UINT64_MAX;
}

/* Number of bytes that libdw will read for .eh_frame, which it finds by section names or, without them, by PT_GNU_EH_FRAME (then the whole
 * file). */
static uint64_t eh_frame_bytes(Elf *handle, uint64_t file_size)
{
	uint64_t bytes = 0;
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(handle, &names) || !names)
		return file_size;
	if (section_bytes(elf_getscn(handle, names)) > AUDIT_MAX_FILE_BYTES)
		return UINT64_MAX;
	while ((section = elf_nextscn(handle, section))) {
		GElf_Shdr header;
		const char *name = gelf_getshdr(section, &header) ? elf_strptr(handle, names, header.sh_name) : NULL;

		if (!name || (strcmp(name, ".eh_frame") != 0 && strcmp(name, ".eh_frame_hdr") != 0))
			continue;
		if (header.sh_size > AUDIT_MAX_FILE_BYTES)
			return UINT64_MAX;
		bytes += header.sh_size;
		if (!strcmp(name, ".eh_frame"))
			return bytes;
	}
	return file_size;
}

static void open_handle(struct audit_file *file, const struct elf_file *elf)
{
	if (file->bytes)
		file->handle = elf_memory(file->bytes, file->size);
	else
		file->handle = elf_begin(file->fd, ELF_C_READ, NULL); /* not mapped: a shrinking file must not kill us */
	if (!file->handle)
		return;
	file->cfi_bytes = elf_kind(file->handle) == ELF_K_ELF ? eh_frame_bytes(file->handle, file->size) : UINT64_MAX;
	if (file->cfi_bytes > AUDIT_MAX_FILE_BYTES) {
		elf_end(file->handle);
		file->handle = NULL;
		file->cfi_bytes = 0;
		return;
	}
	file->cfi_bytes += audit_debug_frame_bytes(elf);
}

/* Fills in the file's identity. Returns false if the file cannot be read. */
static bool identify(const struct elf_file *elf, struct audit_file *file)
{
	struct stat st;

	*file = (struct audit_file){ .fd = -1, .size = elf_file_size(elf) };
	if (elf_file_bytes(elf))
		return file->size <= AUDIT_MAX_FILE_BYTES;
	if (fstat(elf_file_fd(elf), &st) < 0)
		return false;
	file->dev = st.st_dev;
	file->ino = st.st_ino;
	file->changed = st.st_mtim;
	return true;
}

static bool is_same(const struct audit_file *a, const struct audit_file *b, const struct elf_file *elf)
{
	if (a->size != b->size || !a->bytes != !elf_file_bytes(elf))
		return false;
	if (a->bytes)
		return !memcmp(a->bytes, elf_file_bytes(elf), a->size);
	return a->dev == b->dev && a->ino == b->ino && a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

static bool take_bytes(struct audit_file *file, const struct elf_file *elf)
{
	if (!elf_file_bytes(elf)) {
		file->fd = fcntl(elf_file_fd(elf), F_DUPFD_CLOEXEC, 0);
		return file->fd >= 0;
	}
	file->bytes = malloc(file->size);
	return file->bytes && memcpy(file->bytes, elf_file_bytes(elf), file->size);
}

Elf *audit_files_handle(struct audit_files *files, const struct elf_file *elf)
{
	struct audit_file wanted, *file = NULL;

	if (!identify(elf, &wanted))
		return NULL;
	for (uint32_t i = 0; i < files->nr_files && !file; i++)
		file = is_same(&files->files[i], &wanted, elf) ? &files->files[i] : NULL;
	if (!file) {
		if (audit_files_are_full(files) || !take_bytes(&wanted, elf))
			return NULL;
		open_handle(&wanted, elf);
		file = &files->files[files->nr_files++];
		*file = wanted;
		files->cfi_bytes += file->cfi_bytes;
	}
	return file->handle ? elf_begin(-1, ELF_C_READ, file->handle) : NULL;
}

/* Size of a section as libdw gets it: unpacked to the size in its header, which libelf does not exceed. */
static uint64_t unpacked_bytes(const struct elf_file *elf, const struct elf_section *section)
{
	Elf64_Chdr header;

	if (!(section->flags & SHF_COMPRESSED))
		return section->size;
	if (section->size < sizeof(header) || elf_file_read_at(elf, section->file_off, &header, sizeof(header)))
		return UINT64_MAX;
	return header.ch_size;
}

uint64_t audit_debug_frame_bytes(const struct elf_file *elf)
{
	bool has_debug_frame = false;
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < elf_file_nr_sections(elf); i++) {
		const struct elf_section *section = elf_file_section(elf, i);
		uint64_t unpacked;

		if (!strncmp(section->name, ".zdebug", 7))
			return 0; /* the older form of compression, which no compiler uses by default any more */
		if (strncmp(section->name, ".debug", 6) != 0 || section->type == SHT_NOBITS)
			continue;
		unpacked = unpacked_bytes(elf, section);
		if (unpacked > AUDIT_MAX_FILE_BYTES - bytes)
			return 0;
		bytes += unpacked;
		has_debug_frame |= !strcmp(section->name, ".debug_frame");
	}
	return has_debug_frame ? bytes : 0;
}
