/* SPDX-License-Identifier: Apache-2.0 */
/* code_ranges: pieces of code in the order in which they were written to memory. JITs reuse memory, so where pieces overlap the later one
 * wins; the rest of the earlier one still counts. Immutable once made. */
#pragma once
#include <stdint.h>

#include "base/cleanup.h"

struct code_piece {
	uint64_t start;
	uint32_t size_bytes;
	uint32_t payload; /* for the caller's use */
};

struct code_ranges {
	uint64_t *starts; /* ascending; each range ends where the next starts */
	uint32_t *owners; /* per range: the number of a piece, or none for a gap */
	uint32_t nr;
};

/* No piece may pass the end of the address space. 0 or -ENOMEM. */
MUST_CHECK int code_ranges_make(const struct code_piece *pieces, uint32_t nr_pieces, struct code_ranges *ret_ranges);
void code_ranges_done(struct code_ranges *ranges);
/* Returns the number of the piece that covers pc. 0 or -ENOENT. */
MUST_CHECK int code_ranges_find(const struct code_ranges *ranges, uint64_t pc, uint32_t *ret_piece);
