/* SPDX-License-Identifier: Apache-2.0 */
/* spans: the rows of the FDEs of one file in the section's order, and their way into order of address: what overlaps is cut,
 * the earlier FDE wins. Private to unwind_table. Cost: linear for what linkers write (a radix sort of the FDEs, and none when
 * they are sorted); n log n in overlapping FDEs. */
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
	uint32_t cursor; /* of spans_each: the row that holds where the last piece ended */
};

struct spans {
	struct rule_table *rules; /* borrowed */
	struct span *spans;
	struct span_row *rows;
	uint64_t start_vaddr, end_vaddr; /* of all: the lowest and the end of the highest */
	uint32_t nr_spans, nr_rows;
	uint32_t max_spans, max_rows; /* allocated */
	bool is_open;		      /* the last one has no end yet */
};

void spans_done(struct spans *spans);
/* A cfi_row_fn; `arg` is the spans. 0; -ENOMEM; -EFBIG when an FDE has more than 2^32 addresses. */
int spans_take_row(void *arg, uint64_t start_vaddr, const struct sonde_rule *rule);

/* Rows in order of address: of one FDE, or of a part of it, or a gap (one row, SONDE_RULE_NONE or SONDE_RULE_WIDE). The first holds from
 * `from_vaddr`, rows[1] and all later ones from base_vaddr + their off. Equal neighbours are possible from call to call. */
struct span_piece {
	uint64_t base_vaddr, from_vaddr;
	const struct span_row *rows;
	uint32_t nr_rows;
};
typedef int (*span_piece_fn)(void *arg, const struct span_piece *piece);
/* How many rows spans_each gives at most. */
uint64_t spans_max_rows(const struct spans *spans);
/* Not while spans are taken. 0; -ENOMEM; -EFBIG when there are more than 2^32 addresses; or what `piece` gave. */
MUST_CHECK int spans_each(struct spans *spans, span_piece_fn piece, void *arg);
/* The lowest and the end of the highest address; start 0 and end 0 when there are no spans. */
void spans_range(const struct spans *spans, uint64_t *ret_start, uint64_t *ret_end);
