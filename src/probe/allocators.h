/* SPDX-License-Identifier: Apache-2.0 */
/* allocators: the functions of a memory allocator that a file defines, and where their probes go: found by the file's symbols, also the
 * local ones of a static program. As bytes that the worker sends to the process that may not read files; they are checked there. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "abi/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "elf/elf_file.h"

#define ALLOCATORS_MAX 64

struct allocator_function {
	uint64_t entry_off, probe_off; /* in the file; probe_off as placement_improve found it */
	uint32_t call;                 /* enum sonde_alloc_call */
	uint32_t is_slow;              /* 0 or 1: as of its placement */
};

struct allocators {
	uint32_t nr, nr_refused; /* functions without room */
	struct allocator_function functions[ALLOCATORS_MAX];
};

/* Appends a struct allocators; nr 0: the file has no allocator. 0, -ENOMEM or the error of reading the file. Runs in the worker. */
MUST_CHECK int allocators_make(const struct elf_file *elf, struct buffer *to);
/* Reads and checks the bytes. 0; -EBADMSG: allocators_make cannot have made them of a file of that size. */
MUST_CHECK int allocators_read(const void *bytes, size_t size, uint64_t file_bytes, struct allocators *ret_allocators);
