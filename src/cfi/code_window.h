/* SPDX-License-Identifier: Apache-2.0 */
/* code_window: reads a file's code in large pieces, one of which is kept: neighbouring functions are read one after the other. */
#pragma once
#include <stdbool.h>

#include "elf/elf_file.h"

struct code_gap { /* code without rows */
	uint64_t start_vaddr, end_vaddr;
};

struct code_window {
	const struct elf_file *elf;
	uint32_t max_bytes; /* a power of two */
	uint8_t *bytes;	    /* the code that was read last */
	uint64_t vaddr, size;
};

void code_window_done(struct code_window *window);
/* Can these bytes be had without reading? */
bool code_window_has(const struct code_window *window, uint64_t vaddr, uint64_t size);
/* The code at an address, *size bytes or as many as there are; at most half of a window is sure. Borrowed until the next call. NULL: cannot
 * be read, or no memory. */
const uint8_t *code_window_at(struct code_window *window, uint64_t vaddr, uint64_t *size);
