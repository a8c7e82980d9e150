/* SPDX-License-Identifier: Apache-2.0 */
/* dwarf_spans: ranges of addresses that may lie in each other, and the last to start of those that cover an address. Filled, then sealed,
 * then asked. Each has a link to the nearest earlier one that is still open where it starts; so a search is exact, and takes as many steps
 * as there are ranges nested that ended before the address. */
#pragma once
#include <stdint.h>

#include "base/cleanup.h"

#define DWARF_NONE UINT32_MAX

struct dwarf_span {
	uint64_t start, end; /* elf_vaddr; end is the first behind it */
	uint32_t owner, link;
};

struct dwarf_spans {
	struct dwarf_span *at;
	uint32_t nr, capacity;
};

/* Empty ones are left out. 0; -ENOMEM; -EFBIG: there are too many. */
MUST_CHECK int dwarf_spans_add(struct dwarf_spans *spans, uint64_t start, uint64_t end, uint32_t owner);
/* Of equal ones the greater owner is taken for the inner. 0 or -ENOMEM. */
MUST_CHECK int dwarf_spans_seal(struct dwarf_spans *spans);
/* The owner, or DWARF_NONE. */
uint32_t dwarf_spans_find(const struct dwarf_spans *spans, uint64_t elf_vaddr);
void dwarf_spans_done(struct dwarf_spans *spans);
