/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* java_rows: where the CFA is at an instruction of a blob, as user space has read from the blob's code (src/runtime/java/java_code.h). Code
 * that was not read yet has no rows: then the walk decides by itself, and says what it assumed. */
#pragma once
#include "../../abi/java.h"
#include "../runtime.h"

static __always_inline __u64 java_row_word(const struct sonde_java_row *row)
{
	_Static_assert(sizeof(*row) == sizeof(__u64), "a row is a word");
	return *(const __u64 *)row;
}

#ifdef __bpf__
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, SONDE_JAVA_MAX_CODES);
	__type(key, struct sonde_java_rows_key);
	__type(value, struct sonde_java_rows);
} java_rows MAP("sonde_java_rows");

/* The row at `off` of the code of a blob: as a word; 0: not known. User space may give the memory to another blob's rows while they are
 * read: then another look does not find it. */
WALK_FUNCTION __u64 java_row_at(__u64 start, __u32 serial, __u32 id, __u32 off)
{
	struct sonde_java_rows_key key = { .start = start, .serial = serial, .id = id };
	const struct sonde_java_rows *rows = bpf_map_lookup_elem(&java_rows, &key);
	__u32 at = 0, shift;
	__u64 word;

	if (rows && !rows->nr) {
		shift = rows->shift & 31;
		key.part = (off >> shift) + 1;
		off &= (1u << shift) - 1;
		rows = bpf_map_lookup_elem(&java_rows, &key);
	}
	if (!rows)
		return 0;
	WALK_UNROLLED
	for (__u32 step = SONDE_JAVA_MAX_ROWS / 2; step; step /= 2) { /* without branches, as walk_find_rule */
		__u32 next = at + step;

		barrier_var(next); /* else the mask is left out, and verifiers before Linux 6.3 do not know the range */
		at += step & (__u32)at_most(next + 1, rows->nr) & (__u32)at_most(rows->rows[next & (SONDE_JAVA_MAX_ROWS - 1)].off, off);
	}
	barrier_var(at);
	word = java_row_word(&rows->rows[at & (SONDE_JAVA_MAX_ROWS - 1)]);
	return bpf_map_lookup_elem(&java_rows, &key) == rows ? word : 0;
}
#elif defined(JAVA_ROW_AT)
#define java_row_at JAVA_ROW_AT
#else
static inline __u64 java_row_at(__u64 start, __u32 serial, __u32 id, __u32 off)
{
	return 0;
}
#endif
