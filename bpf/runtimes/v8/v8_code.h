/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* v8_code: finds the code object that a pc of V8's heap is in: backwards from the pc, at the places where one can begin, by its map (an
 * object's first word, which leads to the object's type) and its size. Found ones are cached; the object, which is read for each frame
 * anyway, proves an entry. */
#pragma once
#include "../../abi/v8.h"
#include "../runtime.h"

#define V8_CACHE_SHIFT 10
#define V8_CACHE_ENTRIES (1u << V8_CACHE_SHIFT)

struct v8_cached {
	__u64 pc;
	__u64 object; /* address of the object that contains the code */
	__u64 map;
	__u64 serial; /* of the process's struct sonde_v8 */
	struct sonde_v8_identity of; /* of the optimized code there when it was last pushed; its compilation 0: none */
};

#ifdef __bpf__
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, V8_CACHE_ENTRIES);
	__type(key, __u32);
	__type(value, struct v8_cached);
} v8_cache MAP("sonde_v8_code");

static __always_inline struct v8_cached *v8_cached(struct runtime_walk *r, __u64 pc)
{
	__u32 slot = (pc * 0x9e3779b97f4a7c15ULL) >> (64 - V8_CACHE_SHIFT);

	return bpf_map_lookup_elem(&v8_cache, &slot);
}
#else
/* A walk in user space keeps the last frame's: one stack is walked there at a time. */
#define V8_CACHED_WORD 48
static inline struct v8_cached *v8_cached(struct runtime_walk *r, __u64 pc)
{
	_Static_assert(sizeof(struct v8_cached) <= sizeof(r->buffer) - 8 * V8_CACHED_WORD, "no room");
	return (struct v8_cached *)&r->buffer[V8_CACHED_WORD];
}
#endif

/* What is known of the code that a pc is in. */
struct v8_code {
	__u64 start;       /* of the instructions */
	__u64 code;        /* the object that describes it */
	__u64 data;        /* deoptimization data, or the bytecodes */
	__u64 compilation; /* 0: not known */
	__u64 shared;      /* what is behind that in the deoptimization data; 0: not known */
	__u64 pc;          /* that it was found by */
	__u32 kind, size;
};

/* The working memory of a step, besides what is read: BPF's stack is small. */
#define V8_READ_WORDS 32
static __always_inline struct v8_code *v8_code_of(struct runtime_walk *r)
{
	return (struct v8_code *)&r->buffer[V8_READ_WORDS];
}

static __always_inline struct sonde_v8_identity *v8_identity_of(struct runtime_walk *r)
{
	_Static_assert(sizeof(struct v8_code) <= 8 * 8, "no room");
	return (struct sonde_v8_identity *)&r->buffer[V8_READ_WORDS + 8];
}

static __always_inline __u64 v8_u64(const __u64 *words, __u32 off)
{
	return words[off / 8 & (V8_READ_WORDS - 1)];
}

static __always_inline __u32 v8_u32(const __u64 *words, __u32 off)
{
	return ((const __u32 *)words)[off / 4 & (2 * V8_READ_WORDS - 1)];
}

#define V8_SCAN_STEP 32 /* the smallest alignment of code */
#define V8_SCAN_BYTES 1024
#define V8_MAX_SCANS 1024 /* code of up to a megabyte */

static __always_inline int v8_is_pointer(__u64 word)
{
	return (word & 7) == SONDE_V8_TAG && !(word >> 47) && word > 0xffff;
}

/* Is the word a pointer to a map, whose instance type is in the low half of `type`, at the offset in its high half? */
WALK_FUNCTION int v8_is_map(WALK_REF ref, __u64 word, __u32 type)
{
	struct walk *w = walk_of(ref);
	__u16 found = 0;

	return w && v8_is_pointer(word) && !read_user(w, &found, sizeof(found), word - SONDE_V8_TAG + (type >> 16)) &&
	       found == (type & 0xffff);
}

#define V8_PAGE 4096

/* The same from the start of `last`'s page on: the first code of a mapping has nothing before it that can be read. Zeroes the rest. */
static __always_inline long v8_scan_page(struct walk *w, __u64 from, __u64 last)
{
	__u64 skipped = (last & ~(__u64)(V8_PAGE - 1)) - from;
	char *to = (char *)w->emulation.seen[0];

	if (skipped >= V8_SCAN_BYTES)
		return -1;
	__builtin_memset(to, 0, V8_SCAN_BYTES);
	return read_user(w, to + (skipped & (V8_SCAN_BYTES - 1)), (last + 8 - (from + skipped)) & (V8_SCAN_BYTES - 1), from + skipped);
}

/* Searches from the place `last` backwards. Returns the object's address; 0: none there; 1: the memory cannot be read. */
WALK_FUNCTION __u64 v8_scan(WALK_REF ref, __u64 last, __u32 type)
{
	struct walk *w = walk_of(ref);
	__u64 from = last + V8_SCAN_STEP - V8_SCAN_BYTES;

	if (!w)
		return 1;
	w->nr_looks += 16;
	if (read_user(w, w->emulation.seen[0], V8_SCAN_BYTES - V8_SCAN_STEP + 8, from) && v8_scan_page(w, from, last))
		return 1;
	WALK_ROLLED
	for (__u32 i = 0; i < V8_SCAN_BYTES / V8_SCAN_STEP; i++) {
		__u32 off = V8_SCAN_BYTES - V8_SCAN_STEP - i * V8_SCAN_STEP;

		if (v8_is_map(ref_of(w), w->emulation.seen[0][off / 8 & (V8_SCAN_BYTES / 8 - 1)], type))
			return from + off;
	}
	return 0;
}

/* The address of the object that contains the code at pc; 0: none. `bytes`: from the object's start to its code. */
WALK_FUNCTION __u64 v8_search(WALK_REF ref, __u64 pc, __u32 type, __u32 bytes)
{
	__u64 last = (pc & ~(__u64)(V8_SCAN_STEP - 1)) - bytes, found;

	WALK_ROLLED
	for (int turn = 0; turn < V8_MAX_SCANS; turn++) {
		found = v8_scan(ref, last, type);
		if (found)
			return found == 1 ? 0 : found;
		last -= V8_SCAN_BYTES;
	}
	return 0;
}

/* Reads the code object of the object at `object`, and what it says. 0, or -1: it is none, or pc is not in it. */
static __always_inline int v8_read_code(struct walk *w, struct runtime_walk *r, const struct sonde_v8 *v, __u64 object, __u64 pc,
					__u64 *ret_map, struct v8_code *ret_code)
{
	__u32 bytes = v->has_code ? 16 : 64;

	if (read_user(w, r->buffer, bytes & 127, object))
		return -1;
	*ret_map = r->buffer[0];
	ret_code->start = object + v->code_bytes;
	ret_code->code = object + SONDE_V8_TAG;
	if (v->has_code) {
		ret_code->code = r->buffer[1];
		if (!v8_is_pointer(ret_code->code) || read_user(w, r->buffer, 72, ret_code->code - SONDE_V8_TAG) ||
		    v8_u64(r->buffer, v->code_start) != ret_code->start)
			return -1;
	}
	ret_code->kind = v8_u32(r->buffer, v->code_flags) & SONDE_V8_KIND_MASK;
	ret_code->size = v8_u32(r->buffer, v->code_size);
	ret_code->data = v8_u64(r->buffer, v->code_data);
	ret_code->compilation = 0;
	ret_code->shared = 0;
	ret_code->pc = pc;
	/* a return address may be behind the last instruction */
	return pc - ret_code->start <= ret_code->size ? 0 : -1;
}

/* Finds the code that pc is in. 0, or -1: none, or it cannot be read. */
static __always_inline int v8_find_code(struct walk *w, struct runtime_walk *r, const struct sonde_v8 *v, __u64 pc,
					struct v8_code *ret_code)
{
	struct v8_cached *cached = v8_cached(r, pc);
	__u64 object, map;

	if (!cached)
		return -1;
	if (cached->pc != pc || cached->serial != v->process.serial ||
	    v8_read_code(w, r, v, cached->object, pc, &map, ret_code) || map != cached->map) {
		object = v8_search(ref_of(w), pc, v->code_type | (__u32)v->map_type << 16, v->code_bytes);
		if (!object || v8_read_code(w, r, v, object, pc, &map, ret_code))
			return -1;
		cached->pc = pc;
		cached->object = object;
		cached->map = map;
		cached->serial = v->process.serial;
	}
	_Static_assert(__builtin_offsetof(struct v8_code, shared) == __builtin_offsetof(struct v8_code, compilation) + 8, "read at once");
	if (ret_code->kind > v->kind_baseline && ret_code->kind <= v->kind_last && v8_is_pointer(ret_code->data) &&
	    read_user(w, &ret_code->compilation, 16, ret_code->data - SONDE_V8_TAG + v->data_id))
		return -1;
	return 0;
}
