/* SPDX-License-Identifier: Apache-2.0 */
/* spans: collects the rows of one file's FDEs in the section's order and returns them in order of address. Overlaps are cut, the earlier
 * FDE wins. Private to unwind_table. Cost: linear for what linkers write (a radix sort of the FDEs, none if they are sorted); n log n in
 * overlapping FDEs. */
#pragma once
#include <stdbool.h>

#include "unwind/rule_table.h"

struct span_row {
	uint32_t off; /* from the span's start */
	uint16_t rule;
};

struct span { /* an FDE */
	uint64_t start_vaddr, end_vaddr;
	uint32_t first_row, end_row;
	uint32_t cursor; /* for spans_each: the row that is valid at the end of the last piece */
};

struct spans {
	struct rule_table *rules; /* borrowed */
	struct span *spans;
	struct span_row *rows;
	uint64_t start_vaddr, end_vaddr; /* of all spans: the lowest start and the highest end */
	uint32_t nr_spans, nr_rows;
	uint32_t max_spans, max_rows; /* allocated */
	bool is_open;		      /* the last one has no end yet */
};

void spans_done(struct spans *spans);
/* A cfi_row_fn; `arg` is the spans. 0; -ENOMEM; -EFBIG if an FDE has more than 2^32 addresses. */
int spans_take_row(void *arg, uint64_t start_vaddr, const struct sonde_rule *rule);

/* Rows in order of address: of an FDE, of a part of one, or of a gap (one row, SONDE_RULE_NONE or SONDE_RULE_WIDE). The first row holds
 * from `from_vaddr`, the others from base_vaddr + their off. From call to call, equal neighbours are possible. */
struct span_piece {
	uint64_t base_vaddr, from_vaddr;
	const struct span_row *rows;
	uint32_t nr_rows;
};
typedef int (*span_piece_fn)(void *arg, const struct span_piece *piece);
/* Maximum number of rows that spans_each gives. */
uint64_t spans_max_rows(const struct spans *spans);
/* Not to be called while rows are being added. 0; -ENOMEM; -EFBIG if there are more than 2^32 addresses; or the error of `piece`. */
MUST_CHECK int spans_each(struct spans *spans, span_piece_fn piece, void *arg);
/* The lowest start and the highest end; both 0 if there are no spans. */
void spans_range(const struct spans *spans, uint64_t *ret_start, uint64_t *ret_end);
