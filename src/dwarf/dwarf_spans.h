/* SPDX-License-Identifier: Apache-2.0 */
/* dwarf_spans: address ranges that may be nested; finds the last to start of those that cover an address. Filled, then sealed, then
 * searched. Each range links to the nearest earlier one that is still open where it starts. So a search is exact, and takes one step for
 * each nested range that ended before the address. */
#pragma once
#include <stdint.h>

#include "base/cleanup.h"

#define DWARF_NONE UINT32_MAX

struct dwarf_span {
	uint64_t start, end; /* elf_vaddr; end is exclusive */
	uint32_t owner, link;
};

struct dwarf_spans {
	struct dwarf_span *at;
	uint32_t nr, capacity;
};

/* Ignores an empty range. 0; -ENOMEM; -EFBIG: too many. */
MUST_CHECK int dwarf_spans_add(struct dwarf_spans *spans, uint64_t start, uint64_t end, uint32_t owner);
/* Of equal ranges, the one with the greater owner counts as the inner one. 0 or -ENOMEM. */
MUST_CHECK int dwarf_spans_seal(struct dwarf_spans *spans);
/* Returns the owner, or DWARF_NONE. */
uint32_t dwarf_spans_find(const struct dwarf_spans *spans, uint64_t elf_vaddr);
/* Narrows a range around the address, from *start to below *end, to where dwarf_spans_find returns the same. */
void dwarf_spans_narrow(const struct dwarf_spans *spans, uint64_t elf_vaddr, uint64_t *start, uint64_t *end);
void dwarf_spans_done(struct dwarf_spans *spans);
