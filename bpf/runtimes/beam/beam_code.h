/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* beam_code: the function that a pc is in, as the runtime itself finds it (erts_lookup_function_info, beam_ranges.c): the active table of
 * modules' ranges is sorted, and so is a module's table of functions. A scheduler's threads agree on a new table only when each of them has
 * stopped running Erlang code, so the table is whole while a thread is interrupted in it. */
#pragma once
#include "../../abi/beam.h"
#include "../runtime.h"

#define BEAM_MAX_HALVINGS 20
#define BEAM_MAX_MODULES (1u << BEAM_MAX_HALVINGS)

struct beam_function {
	__u64 info, next; /* the ErtsCodeInfo of the function, and of the one behind it */
	__u64 module, function, arity;
};

/* The functions of a walk's frames: recursion has the same ones over and over. Code cannot be replaced while a thread that runs it stands
 * still, so what a walk has found holds to its end. */
#define BEAM_CACHE_SHIFT 8

struct beam_cached {
	__u64 pc, walk; /* of one of the CPU's walks, and its number */
	__u64 header;
	struct beam_function function;
	__u32 serial, number;
};

#ifdef __bpf__
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1 << BEAM_CACHE_SHIFT);
	__type(key, __u32);
	__type(value, struct beam_cached);
} beam_cache MAP("sonde_beam_code");

static __always_inline struct beam_cached *beam_cached(__u64 pc)
{
	__u32 slot = (pc * 0x9e3779b97f4a7c15ULL) >> (64 - BEAM_CACHE_SHIFT);

	return bpf_map_lookup_elem(&beam_cache, &slot);
}

static __always_inline __u32 beam_walk_number(const struct walk *w)
{
	return w->number;
}
#else
static inline struct beam_cached *beam_cached(__u64 pc)
{
	(void)pc;
	return 0;
}

static inline __u32 beam_walk_number(const struct walk *w)
{
	(void)w;
	return 0;
}
#endif

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
static __always_inline int beam_look_up(struct walk *w, const struct sonde_beam *b, __u64 pc, __u64 *ret_header,
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

/* beam_look_up with the cache. */
static __always_inline int beam_find(struct walk *w, const struct sonde_beam *b, __u64 pc, __u64 *ret_header,
				     struct beam_function *ret_function)
{
	struct beam_cached *cached = beam_cached(pc);
	int found;

	if (cached && cached->pc == pc && cached->walk == w->nr_walks && cached->serial == b->process.serial &&
	    cached->number == beam_walk_number(w)) {
		*ret_header = cached->header;
		*ret_function = cached->function;
		return 1;
	}
	found = beam_look_up(w, b, pc, ret_header, ret_function);
	if (cached && found == 1) {
		cached->pc = pc;
		cached->walk = w->nr_walks;
		cached->header = *ret_header;
		cached->function = *ret_function;
		cached->serial = b->process.serial;
		cached->number = beam_walk_number(w);
	}
	return found;
}

/* Is the interrupted instruction a module's way to shared code: a jump that all functions of the module use? These jumps are behind the
 * last function (OTP 27) and seem to be part of it: jmp rel32 with an empty prefix, or through a table. */
WALK_FUNCTION int is_beam_veneer(WALK_REF ref, __u64 header, __u32 functions, __u64 next)
{
	struct walk *w = walk_of(ref);
	__u64 nr, end;
	__u8 code[8] = {};

	if (!w || read_user(w, code, sizeof(code), w->pc) ||
	    !((code[0] == 0x40 && code[1] == 0xe9) || (code[0] == 0xff && code[1] == 0x25)))
		return 0;
	return read_user(w, &nr, sizeof(nr), header) || nr >= BEAM_MAX_MODULES ||
	       read_user(w, &end, sizeof(end), header + functions + 8 * nr) || end == next;
}
