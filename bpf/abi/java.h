/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* java: what the kernel side knows about a HotSpot process. Offsets come from the VM's own tables (vmStructs, read from the process by
 * src/runtime/java/java_vm.c). What is in no table is the same in all versions from 8 on: the slots of an interpreter frame below
 * rbp (frame_x86.hpp), of which only bcp moved in 9, and the map of segments (heap.cpp).
 *
 * A frame's `code` and `where` depend on what it is (enum sonde_java_code, the top byte of `where`); the rest of `where`:
 *   METHOD    code: the Method* that the interpreter runs; bci, or SONDE_JAVA_NO_BCI
 *   COMPILED  code: the nmethod; the low half: offset of the pc from the start of its code, plus 1 at an interrupted instruction: debug
 *             information is looked up at the first entry not below it; SONDE_RUNTIME_CLAIM and what goes with it
 *   STUB      code: another blob of the code cache; offset of the pc in it; SONDE_RUNTIME_CLAIM
 *   PARKED    a mark: the rest of a virtual thread's frames is on the heap
 *   GAP       a mark: native frames are missing
 * `cookie`: METHOD: sonde_java_cookie of what describes the method; COMPILED: the compile id, which is never used twice; STUB: of its
 * name. */
#pragma once
#include "runtime.h"

enum sonde_java_code { SONDE_JAVA_METHOD = 1, SONDE_JAVA_COMPILED, SONDE_JAVA_STUB, SONDE_JAVA_PARKED, SONDE_JAVA_GAP };

#define SONDE_JAVA_CODE_SHIFT 56
/* With SONDE_RUNTIME_CLAIM, as the kernel side had no rows for this code: an nmethod's CFA was assumed to be that many words above sp, and
 * rbp to be the caller's (else at CFA - 16). No words: the code itself proved its caller. */
#define SONDE_JAVA_CLAIM_EXACT (1ULL << 54) /* at an interrupted instruction, not at a return address */
#define SONDE_JAVA_CLAIM_BP_KEPT (1ULL << 53)
#define SONDE_JAVA_CLAIM_SHIFT 32
#define SONDE_JAVA_CLAIM_WORDS 0xffff
#define SONDE_JAVA_NO_BCI 0xffff   /* a native method, or not known */
#define SONDE_JAVA_MAX_HEAPS 3     /* non-nmethods, profiled and other nmethods (CodeCache::initialize_heaps) */
#define SONDE_JAVA_MAX_ENTRIES 4   /* with a frame of their own: zerolocals and native, each also synchronized */
#define SONDE_JAVA_HEADER_BYTES 512 /* a blob's header and what is before it fit in this */
#define SONDE_JAVA_NONE 0xffff     /* instead of an offset: no such field */
#define SONDE_JAVA_IS_USED 1       /* HeapBlock::Header._used */

/* Part of the code cache, by reserved addresses; it grows within them. `segmap`: a byte for each segment of 1 << segment_shift bytes: 0: a
 * block starts here; 255: free; else so many segments back is the block's start, or another such byte. */
struct sonde_java_heap {
	__u64 start_pc, end_pc; /* both 0: none */
	__u64 segmap;
};

/* The prologue of the interpreter's entry for one kind of method: offsets from interpreter_start. */
struct sonde_java_entry {
	__u32 start;
	__u32 popped;   /* from here on the return address is in rax */
	__u32 pushed;   /* `push rbp`: it is on the stack again */
	__u32 end;
};

struct sonde_java {
	struct sonde_runtime_process process;
	struct sonde_java_heap heaps[SONDE_JAVA_MAX_HEAPS];
	__u64 interpreter_start, interpreter_end;
	__u64 call_stub_return;    /* the return address of Java code that C++ called */
	__u64 symbol_mask;         /* of a symbol's first 8 bytes: without the reference count */
	__u64 continuation_return; /* the variable with that of a virtual thread's first frame (ContinuationEntry::_return_pc), or 0 */
	struct sonde_java_entry entries[SONDE_JAVA_MAX_ENTRIES]; /* unused ones are zero */
	__u32 entries_start, entries_end; /* all entries for methods, also those without a frame */
	/* CodeBlob, with NONE where a version has the other form: an address or an offset */
	__u16 blob_name, blob_frame_size, blob_complete, blob_size;
	__u16 blob_code_start, blob_code_end;
	__u16 nmethod_id, nmethod_deopt, nmethod_deopt_mh, nmethod_orig_pc, nmethod_state;
	__u16 method_const;        /* Method._constMethod */
	__u16 const_constants, const_code_size, const_name, const_signature; /* ConstMethod */
	__u16 const_bytes;         /* its size: bytecodes follow */
	__u16 pool_holder, klass_name; /* ConstantPool._pool_holder, Klass._name */
	__u16 pool_bytes;          /* size of a ConstantPool: its entries of 8 bytes follow */
	__u16 header_bytes;        /* what is read of a blob, from the block's header on */
	/* JavaThread: _osthread, _anchor, _stack_base, _stack_size; OSThread._pthread_id. Not used unless process.root says where a thread
	 * has its JavaThread. */
	__u16 thread_os, thread_anchor, thread_stack_base, thread_stack_size, os_pthread;
	__u16 wrapper_anchor;      /* JavaCallWrapper._anchor, or NONE */
	__u16 anchor_sp, anchor_pc, anchor_fp; /* JavaFrameAnchor */
	__u16 thread_exception_pc; /* JavaThread._saved_exception_pc: what a signal has interrupted; or NONE */
	__u8 segment_shift;
	__u8 block_bytes;          /* of a block's header; the blob follows */
	__u8 block_used;           /* offset of the header's _used */
	__u8 bcp_slot;             /* words below rbp */
	__u8 has_addresses;        /* code_start, code_end and deopt are addresses, not offsets */
	__u8 is_complete_short;    /* blob_complete is a __s16, not a __s32 */
};
_Static_assert(sizeof(struct sonde_java) == 48 + 72 + 40 + 64 + 8 + 40 + 18 + 6 + 2 + 6, "layout changed: bump SONDE_ABI_VERSION");

/* --- where a frame's CFA is at each instruction of a blob (src/runtime/java/java_code.h) ---------------------------------------------- */

enum sonde_java_cfa {
	SONDE_JAVA_CFA_NONE,     /* only instead of a row: the code was not read yet */
	SONDE_JAVA_CFA_UNKNOWN,  /* the code does not say it */
	SONDE_JAVA_CFA_SP,       /* sp + 8 * words */
	SONDE_JAVA_CFA_BP,       /* rbp + 8 * words */
	SONDE_JAVA_CFA_REG,      /* register `at` (DWARF number) + 8 * words; at an interrupted instruction */
	SONDE_JAVA_CFA_SLOT,     /* the word at sp + 8 * at, + 8 * words */
};

/* Bit of `cfa`: the code before is a call that does not return, and the row holds only of control that comes here another way. Where this
 * is the call's return address, the row at off - 1 holds. */
#define SONDE_JAVA_CFA_BEHIND_CALL 0x80

/* Holds from this instruction up to the next row. */
struct sonde_java_row {
	__u16 off;    /* in its part */
	__u8 cfa, at; /* enum sonde_java_cfa; of a register or a slot, its number */
	__s16 words;
	__s16 bp;     /* the caller's rbp is so many words below the CFA; 0: in rbp */
};
_Static_assert(sizeof(struct sonde_java_row) == 8, "rows are words");

/* The rows of a blob, in the map sonde_java_rows. The part 0 has all of them, or says how the code is divided: then those of its bytes from
 * (N << shift) on are in part N + 1. The first row of a part holds at its start. */
#define SONDE_JAVA_MAX_ROWS 32 /* a power of two */
#define SONDE_JAVA_MAX_CODES 4096 /* in the map; the ones that were not used for longest make room */

struct sonde_java_rows_key {
	__u64 start;  /* the blob */
	__u32 serial; /* of the process's struct sonde_java */
	__u32 id;     /* compile id, or 0 */
	__u32 part;
	__u32 pad;    /* zero */
};

struct sonde_java_rows {
	__u32 nr;     /* 0: the code is divided */
	__u32 shift;
	struct sonde_java_row rows[SONDE_JAVA_MAX_ROWS];
};
_Static_assert(sizeof(struct sonde_java_rows) == 264, "layout changed: bump SONDE_ABI_VERSION");

/* What tells a method from a later one at the same address. Symbols are in no other way unique than by their random hash. */
struct sonde_java_method {
	__u64 const_method, constants, holder;
	__u64 class_name; /* the symbol's first 8 bytes without its reference count: hash, length, text */
	__u64 method_name; /* likewise: a class of the same name, loaded again, may have another method there */
	__u64 method_symbol; /* its address */
	__u16 code_size, name, signature, pad;
};

static inline __u32 sonde_java_cookie(const struct sonde_java_method *method)
{
	__u64 words[] = { method->const_method, method->constants, method->holder, method->class_name, method->method_name,
			  method->method_symbol, (__u64)method->code_size << 32 | (__u64)method->name << 16 | method->signature };
	__u64 hash = 0;

	for (int i = 0; i < 7; i++) {
		hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15ULL;
		hash ^= hash >> 32;
	}
	return (__u32)hash;
}
