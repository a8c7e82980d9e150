/* SPDX-License-Identifier: Apache-2.0 */
/* code_listing: the instructions of one function of a file, as text, to be sent from the worker. Written there by capstone, which is loaded
 * on demand: 77,000 relocations that nothing else should pay for. Read on the other side as untrusted bytes. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "base/reader.h"
#include "elf/elf_file.h"

#define CODE_LISTING_MAX_BYTES ((uint64_t)1 << 20) /* of code; the rest is left out, and is_cut is set */

struct code_request {
	uint64_t elf_vaddr;              /* inside the function */
	uint64_t guess_start, guess_end; /* what to list if no symbol covers it; start 0: nothing */
};

struct code_listing {
	struct reader lines;
	uint64_t start, end;  /* elf_vaddr */
	bool is_guess, is_cut;
	uint64_t next_vaddr;
};

struct code_line {
	uint64_t elf_vaddr;
	uint32_t nr_bytes;
	const char *text; /* borrowed from the answer; untrusted */
};

/* Loads the library, before the worker loses the ability to open files. If it is missing, code_listing_write reports that. */
void code_listing_preload(void);
/* Appends the listing. `path`: where to look for a debug file; may be NULL. 0; -ENOENT: no symbol covers the address, or there is no code;
 * -ELIBACC: no capstone; -EOPNOTSUPP: another machine; -ENOMEM. */
MUST_CHECK int code_listing_write(const struct elf_file *elf, const char *path, const struct code_request *request, struct diag *diag,
				  struct buffer *to);

/* 0 or -EBADMSG. Borrows the bytes. */
MUST_CHECK int code_listing_open(const void *bytes, size_t size, struct code_listing *ret_listing);
/* False at the end, and when the rest is damaged (listing->lines.bad). */
bool code_listing_next(struct code_listing *listing, struct code_line *ret_line);
