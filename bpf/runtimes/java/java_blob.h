/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* java_blob: finds the blob of HotSpot's code cache that a pc is in (CodeCache::find_blob, CodeHeap::find_start) and reads its header. */
#pragma once
#include "../../abi/java.h"
#include "java_cache.h"
#include "java_rows.h"
#include "../runtime.h"

enum java_blob_kind {
	JAVA_BLOB_NMETHOD,
	JAVA_BLOB_NATIVE,       /* an nmethod that calls a native method */
	JAVA_BLOB_STUBS,        /* StubRoutines: several, without a common frame size */
	JAVA_BLOB_DEOPTIMIZE,   /* DeoptimizationBlob, UncommonTrapBlob: may be exchanging frames */
	JAVA_BLOB_ADAPTER,      /* between interpreted and compiled code */
	JAVA_BLOB_TABLE,        /* stubs that jump to a method, and never touch the stack (VtableStubs, InlineCacheBuffer) */
	JAVA_BLOB_EXCEPTION,    /* ExceptionBlob: compiled code jumps to it, with the address that it would have returned to in rdx */
	JAVA_BLOB_SAFEPOINT,    /* SafepointBlob: some are entered by a signal, and have no return address at first */
	JAVA_BLOB_FOREIGN,      /* Panama's calls: they come and go, and nothing tells one from a later one there: no rows */
	JAVA_BLOB_OTHER,        /* runtime stubs, which have a frame size, and others, which have none */
};

/* The blob whose header is in the walk's buffer. */
struct java_blob {
	__u64 start;
	__u64 code_start, code_end;
	__s32 frame_bytes;     /* 0 or less: none that is always the same */
	__s32 complete;        /* offset from code_start where the frame is complete; -1: not known */
	__u32 id;              /* compile id, or 0 */
	__u32 name_hash;       /* of the address of its name */
	__u8 kind;             /* enum java_blob_kind */
	__u64 row;             /* as java_row_at */
};

#define JAVA_MAX_HOPS 64       /* in the map of segments: 2 for every 32 KiB of a blob */
#define JAVA_SEGMAP_FREE 0xff

static __always_inline __u64 java_u64(const __u64 *words, __u32 off)
{
	return words[off / 8 & 63];
}

static __always_inline __u32 java_u32(const __u64 *words, __u32 off)
{
	return ((const __u32 *)words)[off / 4 & 127];
}

static __always_inline __u16 java_u16(const __u64 *words, __u32 off)
{
	return ((const __u16 *)words)[off / 2 & 255];
}

static __always_inline __u8 java_u8(const __u64 *words, __u32 off)
{
	return ((const __u8 *)words)[off & 511];
}

/* The number of the heap that pc is in, or SONDE_JAVA_MAX_HEAPS. */
static __always_inline __u32 java_heap_of(const struct sonde_java *j, __u64 pc)
{
	__u32 i = 0;

	for (; i < SONDE_JAVA_MAX_HEAPS; i++) {
		if (pc - j->heaps[i].start_pc < j->heaps[i].end_pc - j->heaps[i].start_pc)
			break;
	}
	return i;
}

static __always_inline int java_is_interpreter(const struct sonde_java *j, __u64 pc)
{
	return pc - j->interpreter_start < j->interpreter_end - j->interpreter_start;
}

/* The number of the block's first segment, by that of any; -1: none, or it cannot be read. */
WALK_FUNCTION __s64 java_first_segment(WALK_REF ref, __u64 segmap, __u64 index)
{
	struct walk *w = walk_of(ref);
	__u64 from = index + 1; /* nothing is read yet */

	if (!w)
		return -1;
	WALK_ROLLED
	for (int hop = 0; hop < JAVA_MAX_HOPS; hop++) {
		__u8 back;

		if (index - from >= WALK_LINE_BYTES) {
			from = index > WALK_LINE_BYTES - 1 ? index - (WALK_LINE_BYTES - 1) : 0;
			if (read_user(w, w->emulation.line, WALK_LINE_BYTES, segmap + from))
				return -1;
		}
		back = ((const __u8 *)w->emulation.line)[(index - from) & (WALK_LINE_BYTES - 1)];
		if (!back)
			return index;
		if (back == JAVA_SEGMAP_FREE || back > index)
			return -1;
		index -= back;
	}
	return -1;
}

/* Address of the block that pc is in; 0: none, or it cannot be read. */
static __always_inline __u64 java_find_block(struct walk *w, const struct sonde_java *j, __u64 pc)
{
	__u32 number = java_heap_of(j, pc);
	const struct sonde_java_heap *heap = &j->heaps[number < SONDE_JAVA_MAX_HEAPS ? number : 0];
	__s64 first;

	if (number >= SONDE_JAVA_MAX_HEAPS)
		return 0;
	first = java_first_segment(ref_of(w), heap->segmap, (pc - heap->start_pc) >> (j->segment_shift & 31));
	return first < 0 ? 0 : heap->start_pc + ((__u64)first << (j->segment_shift & 31));
}

static __always_inline __u32 java_block_length(const struct runtime_walk *r, const struct sonde_java *j)
{
	return java_u32(r->buffer, 0); /* HeapBlock::Header._length: a size_t since 9 */
}

/* The header of a block and its blob, into the buffer: 0, or -1. A blob at the end of what is committed may be shorter than it. */
static __always_inline int java_read_header(struct walk *w, struct runtime_walk *r, const struct sonde_java *j, __u64 block)
{
	__u32 bytes = j->header_bytes & (SONDE_JAVA_HEADER_BYTES - 1);

	if (read_user(w, r->buffer, bytes, block) && read_user(w, r->buffer, 128, block))
		return -1;
	return java_u8(r->buffer, j->block_used) & SONDE_JAVA_IS_USED ? 0 : -1;
}

#define JAVA_TEXT(a, b, c, d, e, f, g, h) \
	((__u64)(a) | (__u64)(b) << 8 | (__u64)(c) << 16 | (__u64)(d) << 24 | (__u64)(e) << 32 | (__u64)(f) << 40 | (__u64)(g) << 48 | \
	 (__u64)(h) << 56)

/* By the first letters of its name (CodeBlob::_name), as other fields that tell it came later. */
static __always_inline int java_kind_of(struct walk *w, __u64 name, __u8 *ret_kind)
{
	__u64 text = 0;

	if (read_user(w, &text, sizeof(text), name))
		return -1;
	*ret_kind = text == JAVA_TEXT('n', 'm', 'e', 't', 'h', 'o', 'd', 0)     ? JAVA_BLOB_NMETHOD
		    : text == JAVA_TEXT('n', 'a', 't', 'i', 'v', 'e', ' ', 'n') ? JAVA_BLOB_NATIVE
		    : text == JAVA_TEXT('S', 't', 'u', 'b', 'R', 'o', 'u', 't') ? JAVA_BLOB_STUBS
		    : text == JAVA_TEXT('D', 'e', 'o', 'p', 't', 'i', 'm', 'i') ? JAVA_BLOB_DEOPTIMIZE
		    : text == JAVA_TEXT('U', 'n', 'c', 'o', 'm', 'm', 'o', 'n') ? JAVA_BLOB_DEOPTIMIZE
		    : text == JAVA_TEXT('I', '2', 'C', '/', 'C', '2', 'I', ' ') ? JAVA_BLOB_ADAPTER
		    : text == JAVA_TEXT('v', 't', 'a', 'b', 'l', 'e', ' ', 'c') ? JAVA_BLOB_TABLE
		    : text == JAVA_TEXT('I', 'n', 'l', 'i', 'n', 'e', 'C', 'a') ? JAVA_BLOB_TABLE
		    : text == JAVA_TEXT('E', 'x', 'c', 'e', 'p', 't', 'i', 'o') ? JAVA_BLOB_EXCEPTION
		    : text == JAVA_TEXT('S', 'a', 'f', 'e', 'p', 'o', 'i', 'n') ? JAVA_BLOB_SAFEPOINT
		    : text == JAVA_TEXT('n', 'e', 'p', '_', 'i', 'n', 'v', 'o') ? JAVA_BLOB_FOREIGN
		    : text == JAVA_TEXT('u', 'p', 'c', 'a', 'l', 'l', '_', 's') ? JAVA_BLOB_FOREIGN
										: JAVA_BLOB_OTHER;
	return 0;
}

static __always_inline int java_is_nmethod(__u8 kind)
{
	return kind == JAVA_BLOB_NMETHOD || kind == JAVA_BLOB_NATIVE;
}

/* Reads the fields of the blob from the buffer. */
static __always_inline void java_take_header(const struct runtime_walk *r, const struct sonde_java *j, __u64 block, struct java_blob *blob)
{
	__u32 at = j->block_bytes;

	blob->start = block + at;
	if (j->has_addresses) {
		blob->code_start = java_u64(r->buffer, at + j->blob_code_start);
		blob->code_end = java_u64(r->buffer, at + j->blob_code_end);
	} else {
		blob->code_start = blob->start + java_u32(r->buffer, at + j->blob_code_start);
		blob->code_end = blob->start + java_u32(r->buffer, at + j->blob_code_end);
	}
	blob->frame_bytes = (__s32)java_u32(r->buffer, at + j->blob_frame_size) * 8;
	blob->complete = j->is_complete_short ? (__s16)java_u16(r->buffer, at + j->blob_complete)
					      : (__s32)java_u32(r->buffer, at + j->blob_complete);
}

static __always_inline __u64 java_header_name(const struct runtime_walk *r, const struct sonde_java *j)
{
	return java_u64(r->buffer, j->block_bytes + j->blob_name);
}

static __always_inline __u32 java_header_id(const struct runtime_walk *r, const struct sonde_java *j)
{
	return java_u32(r->buffer, j->block_bytes + j->nmethod_id);
}

/* Is the blob of the cache's entry still there, by the buffer's header? */
static __always_inline int java_is_cached(const struct runtime_walk *r, const struct sonde_java *j, const struct java_cached *cached)
{
	return cached->name == java_header_name(r, j) && cached->length == java_block_length(r, j) &&
	       (cached->id == java_header_id(r, j) || !java_is_nmethod(cached->kind));
}

/* Fills the cache's entry with the blob that pc is in; its header is in the buffer. 0, or -1: none, or it cannot be read. */
static __always_inline int java_cache_blob(struct walk *w, struct runtime_walk *r, const struct sonde_java *j, __u64 pc,
					   struct java_cached *cached)
{
	cached->serial = 0;
	cached->row = 0;
	cached->block = java_find_block(w, j, pc);
	if (!cached->block || java_read_header(w, r, j, cached->block))
		return -1;
	cached->length = java_block_length(r, j);
	cached->name = java_header_name(r, j);
	cached->id = java_header_id(r, j);
	return java_kind_of(w, cached->name, &cached->kind);
}

/* The row at pc, or at the call before a return address: what follows may be other code, as the call need not return. A return address
 * behind no call was put in its place: a handler. What is kept for the pc is kept with it. */
static __always_inline __u64 java_find_row(struct walk *w, const struct sonde_java *j, __u64 pc, int is_return,
					   const struct java_blob *blob, struct java_cached *cached)
{
	__u64 row = cached->row, there;

	if (!row) {
		row = there = java_row_at(blob->start, j->process.serial, blob->id, pc - blob->code_start);
		if (is_return)
			row = java_row_at(blob->start, j->process.serial, blob->id, pc - blob->code_start - 1);
		if (row != there && !walk_after_call(ref_of(w), pc))
			row = there;
	}
	cached->row = row;
	return row;
}

/* Finds the blob that pc is in; its header is in the buffer. 0, or -1: none, or it cannot be read. */
static __always_inline int java_find_blob(struct walk *w, struct runtime_walk *r, const struct sonde_java *j, __u64 pc,
					  struct java_blob *blob)
{
	struct java_cached *cached = java_cached(r, pc);
	int is_return = w->exact == WALK_RETURN;
	__u64 key = pc | (__u64)is_return << 63;

	if (!cached)
		return -1; /* cannot happen: there is an entry for each pc */
	if (cached->pc != key || cached->serial != j->process.serial || java_read_header(w, r, j, cached->block) ||
	    !java_is_cached(r, j, cached)) {
		if (java_cache_blob(w, r, j, pc, cached))
			return -1;
		cached->pc = key;
		cached->serial = j->process.serial;
	}
	java_take_header(r, j, cached->block, blob);
	blob->kind = *(volatile __u8 *)&cached->kind; /* else the verifier follows each kind by itself */
	blob->id = java_is_nmethod(blob->kind) ? cached->id : 0;
	blob->name_hash = (__u32)(cached->name ^ cached->name >> 32);
	blob->row = blob->kind == JAVA_BLOB_FOREIGN ? 0 : java_find_row(w, j, pc, is_return, blob, cached);
	return pc - blob->code_start < blob->code_end - blob->code_start &&
		       blob->code_end - cached->block <= (__u64)cached->length << (j->segment_shift & 31)
		   ? 0
		   : -1;
}
