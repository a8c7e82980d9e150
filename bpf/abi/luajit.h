/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* luajit: what the kernel side knows about a process with LuaJIT 2.1, x86-64 with 64-bit references (GC64). A frame's `code` is its
 * GCproto, and `where` the number of bytecode instructions up to its pc, or SONDE_LUAJIT_NO_POSITION. `cookie` is luajit_cookie below.
 * Or `code` is SONDE_LUAJIT_BUILTIN and the number of a function of the runtime's own, or SONDE_LUAJIT_TRACE: compiled code, with the
 * number of its trace in `where`.
 *
 * Layouts: lj_obj.h, lj_frame.h, vm_x64.dasc. */
#pragma once
#include "runtime.h"

#define SONDE_LUAJIT_NO_POSITION (~0ULL)
#define SONDE_LUAJIT_BUILTIN (1ULL << 62)
#define SONDE_LUAJIT_TRACE (1ULL << 63)
/* GCproto, which the bytecode follows: in words; the first line and the number of lines are a word. */
#define SONDE_LUAJIT_PROTO_BYTES 104
#define SONDE_LUAJIT_PROTO_SIZE 1 /* in its high half: number of instructions; in its second byte the type of the object */
#define SONDE_LUAJIT_PROTO_CHUNK 8
#define SONDE_LUAJIT_PROTO_LINES 9
#define SONDE_LUAJIT_PROTO_LINEINFO 10
#define SONDE_LUAJIT_IS_PROTO 7
#define SONDE_LUAJIT_ENTRIES 4

struct sonde_luajit {
	struct sonde_runtime_process process; /* root: none; each C frame of the interpreter leads to its lua_State */
	struct sonde_code_range vm; /* the interpreter, lj_vm_asm_begin and on */
	/* lj_vm_resume, _pcall, _call, _cpcall. The C frames of the first three, and of the last one, are in the state's chain from
	 * these pcs on. */
	__u64 entries[SONDE_LUAJIT_ENTRIES];
	__u64 chained[2];
	__u64 begun; /* up to here they look at the state alone */
	__u64 left[2]; /* in lj_vm_return, to C: rbx is the base of what called */
	/* in global_State; behind cur_L is jit_base */
	__u32 cur_l, vmstate;
};
_Static_assert(sizeof(struct sonde_luajit) == 48 + 16 + 32 + 16 + 8 + 16 + 8, "layout changed: bump SONDE_ABI_VERSION");

/* What tells the chunk's name from another one at its address (GCstr): its number, hash and length, and the first letters; before 2023
 * there was no number. */
#define SONDE_LUAJIT_CHUNK_OFF 12
#define SONDE_LUAJIT_CHUNK_BYTES 16

static inline __u32 luajit_cookie(const __u64 *proto, const __u64 *chunk)
{
	__u64 hash = (proto[SONDE_LUAJIT_PROTO_CHUNK] * 31 ^ proto[SONDE_LUAJIT_PROTO_LINES]) * 31;

	hash = ((hash ^ chunk[0]) * 31 ^ chunk[1]) * 31;
	hash = (hash ^ proto[SONDE_LUAJIT_PROTO_LINEINFO]) * 31;
	hash = (hash ^ proto[SONDE_LUAJIT_PROTO_SIZE] >> 32) * 0x9e3779b97f4a7c15ULL;
	return (__u32)(hash >> 32);
}
