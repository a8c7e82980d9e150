/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* beam_code: the function that a pc is in, as the runtime itself finds it (erts_lookup_function_info, beam_ranges.c): the active table of
 * modules' ranges is sorted, and so is a module's table of functions. A scheduler's threads agree on a new table only when each of them has
 * stopped running Erlang code, so the table is whole while a thread is interrupted in it. */
#pragma once
#include "../abi/beam.h"
#include "runtime.h"

#define BEAM_MAX_HALVINGS 20
#define BEAM_MAX_MODULES (1u << BEAM_MAX_HALVINGS)

struct beam_function {
	__u64 info, next; /* the ErtsCodeInfo of the function, and of the one behind it */
	__u64 module, function, arity;
};

/* One halving of a sorted table of ranges: entries of `stride` bytes, whose first words are starts; the next word ends it. */
static __always_inline int beam_halve(struct walk *w, __u64 *low, __u64 *high, __u32 stride, __u64 pc)
{
	__u64 middle = *low + (*high - *low) / 2, range[2];

	if (read_user(w, range, sizeof(range), w->emulation.line[0] + middle * stride))
		return -1;
	if (pc < range[0]) {
		*high = middle;
	} else if (pc >= range[1]) {
		*low = middle + 1;
	} else {
		w->emulation.line[1] = range[0];
		w->emulation.line[2] = range[1];
		return 1;
	}
	return 0;
}

/* Searches the table at emulation.line[0], of `nr` entries. 1: emulation.line[1] and [2] are the range; 0: none; -1: not readable. */
WALK_FUNCTION int beam_search(WALK_REF ref, __u32 nr, __u32 stride, __u64 pc)
{
	struct walk *w = walk_of(ref);
	__u64 low = 0, high = nr;
	int found;

	if (!w)
		return -1;
	w->nr_looks += 8;
	WALK_ROLLED
	for (int i = 0; i < BEAM_MAX_HALVINGS && low < high; i++) {
		found = beam_halve(w, &low, &high, stride, pc);
		if (found)
			return found;
	}
	return 0;
}

/* Finds the function that pc is in. 1, and the module's start is *ret_header; 0: it is in none; -1: not readable. */
static __always_inline int beam_find(struct walk *w, const struct sonde_beam *b, __u64 pc, __u64 *ret_header,
				     struct beam_function *ret_function)
{
	__u64 ranges[2], nr;
	__u32 index;
	int found;

	if (read_user(w, &index, sizeof(index), b->active_index) || index >= SONDE_BEAM_CODE_INDICES ||
	    read_user(w, ranges, sizeof(ranges), b->ranges + index * SONDE_BEAM_RANGES_BYTES) || ranges[1] >= BEAM_MAX_MODULES)
		return -1;
	w->emulation.line[0] = ranges[0];
	found = beam_search(ref_of(w), ranges[1], 16, pc);
	if (found <= 0)
		return found;
	*ret_header = w->emulation.line[1];
	if (read_user(w, &nr, sizeof(nr), *ret_header) || nr >= BEAM_MAX_MODULES)
		return -1;
	w->emulation.line[0] = *ret_header + b->functions;
	found = beam_search(ref_of(w), nr, 8, pc);
	if (found <= 0)
		return found;
	ret_function->info = w->emulation.line[1];
	ret_function->next = w->emulation.line[2];
	return read_user(w, &ret_function->module, 24, ret_function->info + SONDE_BEAM_INFO_MFA) ? -1 : 1;
}
