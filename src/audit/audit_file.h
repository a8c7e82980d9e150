/* SPDX-License-Identifier: Apache-2.0 */
/* audit_file: libelf handles of the files that libdw asks for, one per file for all processes. A handle reads with pread from its own
 * descriptor, or from a copy of the bytes; it does not depend on the elf_file it was made from. One thread. */
#pragma once
#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "elf/elf_file.h"

#define AUDIT_MAX_FILES 64
#define AUDIT_MAX_FILE_BYTES ((uint64_t)32 << 20)   /* that libdw may read of one file for .eh_frame, and for .debug_frame */
#define AUDIT_MAX_TOTAL_BYTES ((uint64_t)128 << 20) /* of all kept files */

struct audit_file {
	dev_t dev;
	ino_t ino;
	struct timespec changed;
	uint64_t size, cfi_bytes;
	int fd;      /* -1: in memory */
	void *bytes; /* own copy, NULL: from fd */
	Elf *handle; /* NULL: libdw may not read it */
};

struct audit_files {
	struct audit_file files[AUDIT_MAX_FILES];
	uint32_t nr_files;
	uint64_t cfi_bytes;
};

/* No room for another file: the owner ends everything that uses a handle, and calls audit_files_clear. */
bool audit_files_are_full(const struct audit_files *files);
void audit_files_clear(struct audit_files *files);
/* Returns one more reference to the handle of `elf`, for elf_end. NULL: libdw may not or cannot read it. Do not call when full. */
Elf *audit_files_handle(struct audit_files *files, const struct elf_file *elf);
/* Number of bytes that libdw reads for .debug_frame, which is all debug sections. 0: there is none, or libdw may not read it. */
uint64_t audit_debug_frame_bytes(const struct elf_file *elf);
