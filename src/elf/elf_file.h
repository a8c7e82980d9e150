/* SPDX-License-Identifier: Apache-2.0 */
/* elf_file: one 64-bit little-endian ELF file, read with pread (a file that shrinks gives an error, never a SIGBUS) or from memory. The
 * bytes are untrusted: every count and offset is checked against the size and against caps. Reads and keeps the file, program and section
 * headers. Section contents are read on demand and owned by the caller. Immutable once open; any thread may read. Layouts: System V gABI
 * chapter 4, elf.h. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/diag.h"

#define BUILD_ID_MAX 64 /* bytes; GNU ld writes 20 (SHA-1), lld 8 or 20, others up to 32 */

struct build_id {
	uint8_t size; /* 0: none */
	uint8_t bytes[BUILD_ID_MAX];
};

struct elf_segment { /* a PT_LOAD */
	uint64_t file_off, file_size, vaddr, mem_size, align;
	uint32_t flags; /* PF_X, PF_W, PF_R */
};

struct elf_section {
	const char *name; /* borrowed from the elf_file; "" when the name table is damaged */
	uint32_t type, link, info;
	uint64_t flags, vaddr, file_off, size, entry_size;
};

struct elf_file;

/* Takes over `fd` on success only. 0; -ENOEXEC: no regular file, or not an ELF file that we read; -EBADMSG: its headers contradict its
 * size; -ENOMEM or the error of the read. */
MUST_CHECK int elf_file_open_fd(int fd, struct diag *diag, struct elf_file **ret_elf);
/* The same over bytes in memory (the vdso, fuzzing), borrowed until elf_file_free. */
MUST_CHECK int elf_file_open_memory(const void *bytes, size_t size, struct diag *diag, struct elf_file **ret_elf);
/* Adds an owner, who must also call elf_file_free; on any thread. Returns `elf`. */
struct elf_file *elf_file_share(struct elf_file *elf);
void elf_file_free(struct elf_file *elf); /* accepts NULL */
static inline void elf_file_freep(struct elf_file **elf)
{
	elf_file_free(*elf);
}

uint16_t elf_file_machine(const struct elf_file *elf); /* EM_X86_64, ... */
uint16_t elf_file_type(const struct elf_file *elf);    /* ET_EXEC, ET_DYN, ... */
uint64_t elf_file_entry(const struct elf_file *elf);   /* elf_vaddr where a program starts; 0: none */
uint64_t elf_file_size(const struct elf_file *elf);
/* For another library that reads the same bytes: the descriptor (-1 for an ELF file in memory), and the bytes in memory (NULL for a file).
 * Borrowed. */
int elf_file_fd(const struct elf_file *elf);
const void *elf_file_bytes(const struct elf_file *elf);
/* The uid of the file's owner when it was opened; 0 for one in memory. */
uint32_t elf_file_owner(const struct elf_file *elf);
/* The GNU build id from a PT_NOTE or SHT_NOTE; size 0 when there is none. Read at open. */
const struct build_id *elf_file_build_id(const struct elf_file *elf);

uint32_t elf_file_nr_segments(const struct elf_file *elf);
const struct elf_segment *elf_file_segment(const struct elf_file *elf, uint32_t i); /* i < nr_segments */
uint32_t elf_file_nr_sections(const struct elf_file *elf);
const struct elf_section *elf_file_section(const struct elf_file *elf, uint32_t i); /* i < nr_sections */
/* The size of the section headers and names; and freeing them: then the file has no sections. */
size_t elf_file_section_bytes(const struct elf_file *elf);
void elf_file_forget_sections(struct elf_file *elf);
/* NULL when there is no section of that name. */
const struct elf_section *elf_file_find_section(const struct elf_file *elf, const char *name);
/* Where PT_GNU_EH_FRAME is (for files whose section headers are stripped). 0 or -ENODATA. */
MUST_CHECK int elf_file_eh_frame_hdr(const struct elf_file *elf, uint64_t *ret_file_off, uint64_t *ret_vaddr, uint64_t *ret_size);

/* Returns the elf_vaddr of `file_off` in an executable PT_LOAD. 0 or -ENOENT. */
MUST_CHECK int elf_file_off_to_vaddr(const struct elf_file *elf, uint64_t file_off, uint64_t *ret_elf_vaddr);

/* Reads a whole section and decompresses it (SHF_COMPRESSED: zlib, zstd). The caller frees *ret_bytes. 0; -ENODATA for SHT_NOBITS; -EFBIG:
 * above max_bytes, compressed or not; -EBADMSG: outside of the file, or damaged; -EOPNOTSUPP: another compression. */
MUST_CHECK int elf_file_read_section(const struct elf_file *elf, const struct elf_section *section, size_t max_bytes,
				     struct diag *diag, void **ret_bytes, size_t *ret_size);
/* Reads `size` bytes at `file_off` into `to`. 0; -EBADMSG: not all are in the file. */
MUST_CHECK int elf_file_read_at(const struct elf_file *elf, uint64_t file_off, void *to, size_t size);
/* Reads the file's bytes at an address as linked. 0; -EFAULT: not in the file (.bss); -EBADMSG. */
MUST_CHECK int elf_file_read_vaddr(const struct elf_file *elf, uint64_t elf_vaddr, void *to, size_t size);

/* Lower-case hexadecimal, NUL-terminated; "" for none. `to` holds 2 * BUILD_ID_MAX + 1. */
void build_id_text(const struct build_id *id, char *to);
