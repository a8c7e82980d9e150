/* SPDX-License-Identifier: Apache-2.0 */
/* audit_file: libelf's handles of the files that libdw was asked about, one per file however many processes map it. A handle reads with
 * pread, from a descriptor of its own, or from a copy of the bytes: it does not depend on the elf_file it came from. One thread. */
#pragma once
#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "elf/elf_file.h"

#define AUDIT_MAX_FILES 64
#define AUDIT_MAX_FILE_BYTES ((uint64_t)32 << 20)   /* that libdw may read for .eh_frame of one file, and as many for .debug_frame */
#define AUDIT_MAX_TOTAL_BYTES ((uint64_t)128 << 20) /* of all that are kept */

struct audit_file {
	dev_t dev;
	ino_t ino;
	struct timespec changed;
	uint64_t size, cfi_bytes;
	int fd;      /* -1: in memory */
	void *bytes; /* own copy, NULL: from fd */
	Elf *handle; /* NULL: not to be given to libdw */
};

struct audit_files {
	struct audit_file files[AUDIT_MAX_FILES];
	uint32_t nr_files;
	uint64_t cfi_bytes;
};

/* No room for another file: the owner ends everything that uses a handle and clears. */
bool audit_files_are_full(const struct audit_files *files);
void audit_files_clear(struct audit_files *files);
/* One more reference to the handle of `elf`, for elf_end; NULL: libdw is not to read it, or cannot. Call only when not full. */
Elf *audit_files_handle(struct audit_files *files, const struct elf_file *elf);
/* How many bytes libdw reads when it is asked for .debug_frame, which is all debug sections. 0: there is none, or it may not. */
uint64_t audit_debug_frame_bytes(const struct elf_file *elf);
