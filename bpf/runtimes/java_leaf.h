/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* java_leaf: where the return address is of a frame of HotSpot's code that was interrupted while it was being built or removed. That follows
 * from the instructions around the pc, which the VM's assembler always emits in the same order (MacroAssembler::verified_entry,
 * C1_MacroAssembler::build_frame, MachEpilogNode, InterpreterMacroAssembler::remove_activation). x86-64. */
#pragma once
#include "java_blob.h"

/* What is on the stack. */
enum java_leaf {
	JAVA_LEAF_WHOLE,    /* the frame is complete */
	JAVA_LEAF_NONE,     /* the return address is at sp, rbp is the caller's */
	JAVA_LEAF_PUSHED,   /* rbp is at sp, the return address above it */
	JAVA_LEAF_NO_BP,    /* the frame is complete, but rbp is still the caller's */
	JAVA_LEAF_IN_REG,   /* interpreter: the return address is in a register */
	JAVA_LEAF_UNKNOWN,
};

#define JAVA_CODE_BYTES 64

static __always_inline __u8 java_code(const struct runtime_walk *r, __u32 at)
{
	return ((const __u8 *)r->block)[at & 511];
}

static __always_inline __u32 java_code_word(const struct runtime_walk *r, __u32 at)
{
	return java_code(r, at) | java_code(r, at + 1) << 8 | java_code(r, at + 2) << 16 | (__u32)java_code(r, at + 3) << 24;
}

/* Length of `sub rsp, ret_bytes` at `at`, or 0. */
static __always_inline __u32 java_sub_sp(const struct runtime_walk *r, __u32 at, __s32 *ret_bytes)
{
	__u32 op = java_code_word(r, at) & 0xffffff;

	if (op == 0xec8148) {
		*ret_bytes = (__s32)java_code_word(r, at + 3);
		return 7;
	}
	if (op == 0xec8348) {
		*ret_bytes = (__s8)java_code(r, at + 3);
		return 4;
	}
	return 0;
}

/* `push rbp` that ends before `at`, possibly with `mov rbp, rsp` between: its distance, or 0. */
static __always_inline __u32 java_push_bp(const struct runtime_walk *r, __u32 at)
{
	__u32 mov;

	if (at >= 1 && java_code(r, at - 1) == 0x55)
		return 1;
	if (at < 4 || java_code(r, at - 4) != 0x55)
		return 0;
	mov = java_code_word(r, at - 3) & 0xffffff;
	return mov == 0xec8b48 || mov == 0xe58948 ? 4 : 0;
}

/* Before the frame is complete. Looks for the instruction that makes room for it, whose operand follows from the frame's size. */
static __always_inline enum java_leaf java_in_prologue(struct walk *w, struct runtime_walk *r, const struct java_blob *blob)
{
	__u64 end = blob->code_start + blob->complete, from = end - JAVA_CODE_BYTES;
	__u32 pc = w->pc - from; /* as an offset; may wrap: before what was read */

	if (read_user(w, r->block, JAVA_CODE_BYTES + 8, from))
		return JAVA_LEAF_UNKNOWN;
	r->block_bytes = 0;
#pragma clang loop unroll(disable)
	for (__u32 at = JAVA_CODE_BYTES; at-- > 0;) {
		__s32 bytes = 0;
		__u32 length = java_sub_sp(r, at, &bytes), push;

		if (!length || at + length > JAVA_CODE_BYTES)
			continue;
		push = java_push_bp(r, at);
		if (push && bytes == blob->frame_bytes - 16)
			return w->pc < from || pc <= at - push ? JAVA_LEAF_NONE : pc <= at ? JAVA_LEAF_PUSHED : JAVA_LEAF_WHOLE;
		if (bytes == blob->frame_bytes - 8)
			return w->pc < from || pc <= at ? JAVA_LEAF_NONE : pc == at + length ? JAVA_LEAF_NO_BP : JAVA_LEAF_WHOLE;
	}
	return JAVA_LEAF_UNKNOWN;
}

/* The length of the poll for a safepoint before a return that begins at `at`: 0: `ret` is there; -1: neither. */
static __always_inline __s32 java_poll(const struct runtime_walk *r, __u32 at)
{
	__u32 op = java_code_word(r, at);

	if ((op & 0xff) == 0xc3)
		return 0;
	if ((op & 0xffff) == 0x0585) /* test [rip + x], eax */
		return java_code(r, at + 6) == 0xc3 ? 6 : -1;
	if ((op & 0xffffff) == 0x028541) /* test [r10], eax */
		return java_code(r, at + 3) == 0xc3 ? 3 : -1;
	if ((op & 0xffffff) == 0x978b4d) /* mov r10, [r15 + x] */
		return (java_code_word(r, at + 7) & 0xffffff) == 0x028541 && java_code(r, at + 10) == 0xc3 ? 10 : -1;
	if ((op & 0xffffff) == 0x578b4d)
		return (java_code_word(r, at + 4) & 0xffffff) == 0x028541 && java_code(r, at + 7) == 0xc3 ? 7 : -1;
	if ((op & 0xffff) == 0x870f) /* ja */
		return java_code(r, at + 6) == 0xc3 ? 6 : -1;
	if ((op & 0xff) == 0x77)
		return java_code(r, at + 2) == 0xc3 ? 2 : -1;
	if ((op & 0xffffff) != 0xa73b49 && (op & 0xffffff) != 0x673b49) /* cmp rsp, [r15 + x] */
		return -1;
	at += (op & 0xffffff) == 0xa73b49 ? 7 : 4;
	if ((java_code_word(r, at) & 0xffff) == 0x870f)
		return java_code(r, at + 6) == 0xc3 ? 13 : -1;
	return java_code(r, at) == 0x77 && java_code(r, at + 2) == 0xc3 ? 9 : -1;
}

/* The slow path of that poll, behind the method's code: lea r10, [rip + x]; mov [r15 + x], r10; jmp. */
static __always_inline int java_is_slow_poll(const struct runtime_walk *r)
{
	if ((java_code_word(r, 0) & 0xffffff) == 0x158d4c && (java_code_word(r, 7) & 0xffffff) == 0x97894d && java_code(r, 14) == 0xe9)
		return 1;
	return (java_code_word(r, 0) & 0xffffff) == 0x97894d && java_code(r, 7) == 0xe9;
}

/* In a method's code, where a frame is complete unless a return is near. */
static __always_inline enum java_leaf java_in_epilogue(struct walk *w, struct runtime_walk *r)
{
	r->block_bytes = 0;
	if (read_user(w, r->block, 32, w->pc))
		return JAVA_LEAF_UNKNOWN;
	if (java_code(r, 0) == 0x5d && java_poll(r, 1) >= 0)
		return JAVA_LEAF_PUSHED;
	if (java_poll(r, 0) >= 0 || java_is_slow_poll(r))
		return JAVA_LEAF_NONE;
	return JAVA_LEAF_WHOLE;
}

static __always_inline enum java_leaf java_method_leaf(struct walk *w, struct runtime_walk *r, const struct java_blob *blob)
{
	if (blob->complete >= 0 && w->pc - blob->code_start < (__u64)blob->complete)
		return java_in_prologue(w, r, blob);
	return java_in_epilogue(w, r);
}

/* --- interpreter ---------------------------------------------------------------------------------------------------------------------- */

/* In the code of the entries for methods: sets *ret_entry to the entry, with a frame of its own, or to NULL. */
static __always_inline enum java_leaf java_entry_leaf(const struct sonde_java *j, __u32 off, const struct sonde_java_entry **ret_entry)
{
#pragma clang loop unroll(full)
	for (int i = 0; i < SONDE_JAVA_MAX_ENTRIES; i++) {
		const struct sonde_java_entry *entry = &j->entries[i];

		if (off - entry->start >= entry->end - entry->start)
			continue;
		*ret_entry = entry;
		if (off < entry->popped || off == entry->pushed)
			return JAVA_LEAF_NONE;
		if (off < entry->pushed)
			return JAVA_LEAF_IN_REG;
		return off == entry->pushed + 1 ? JAVA_LEAF_PUSHED : JAVA_LEAF_WHOLE;
	}
	return JAVA_LEAF_UNKNOWN;
}

/* A register that holds the caller's sp or the return address. */
#define JAVA_RBX 3
#define JAVA_RDI 7
#define JAVA_R11 11
#define JAVA_R13 13

struct java_removal {
	__u8 where;   /* enum java_leaf: WHOLE: the frame is not being removed */
	__u8 ret_reg; /* IN_REG */
	__u8 sp_reg;  /* the caller's sp */
	__u8 has_sp;  /* sp is the caller's already */
};

/* Is `jmp reg` at `at`? Of a native method's entry rdi, else r13. */
static __always_inline int java_jump(const struct runtime_walk *r, __u32 at, struct java_removal *removal)
{
	if ((java_code_word(r, at) & 0xffffff) == 0xe5ff41)
		removal->ret_reg = JAVA_R13;
	else if ((java_code_word(r, at) & 0xffff) == 0xe7ff)
		removal->ret_reg = JAVA_RDI;
	else
		return 0;
	return 1;
}

/* Behind `mov rsp, reg`: up to the jump; newer versions clear a mark for JFR in between. */
static __always_inline int java_after_mov(const struct runtime_walk *r, __u32 at, struct java_removal *removal)
{
	if (java_jump(r, at, removal))
		return 1;
	if ((java_code_word(r, at) & 0xffffff) == 0xa73b49) /* cmp rsp, [r15 + x] */
		at += 7;
	if ((java_code_word(r, at) & 0xffff) == 0x0b72) /* jb */
		at += 2;
	if ((java_code_word(r, at) & 0xffffff) == 0x87c749) /* mov qword [r15 + x], 0 */
		at += 11;
	return java_jump(r, at, removal);
}

static __always_inline int java_at_mov(const struct runtime_walk *r, __u32 at, struct java_removal *removal)
{
	__u32 op = java_code_word(r, at) & 0xffffff;

	if (op != 0xe38b48 && op != 0xe38b49) /* mov rsp, rbx; mov rsp, r11 */
		return 0;
	removal->sp_reg = op == 0xe38b48 ? JAVA_RBX : JAVA_R11;
	return java_after_mov(r, at + 3, removal);
}

/* Is the interpreter removing its frame? leave; [mov byte [r15 + x], 0]; pop reg; mov rsp, reg; ...; jmp reg */
static __always_inline void java_interpreter_leaf(struct walk *w, struct runtime_walk *r, struct java_removal *removal)
{
	__u32 at = 0;

	*removal = (struct java_removal){ .where = JAVA_LEAF_UNKNOWN };
	r->block_bytes = 0;
	if (read_user(w, r->block, JAVA_CODE_BYTES, w->pc))
		return;
	removal->where = JAVA_LEAF_IN_REG;
	if (java_at_mov(r, 0, removal))
		return;
	removal->has_sp = 1;
	if (java_after_mov(r, 0, removal))
		return;
	removal->has_sp = 0;
	removal->where = JAVA_LEAF_NONE;
	if ((java_code_word(r, 0) & 0xffffff) == 0x87c641) /* mov byte [r15 + x], 0 */
		at = 8;
	if ((java_code_word(r, at) & 0xffff) == 0x5d41 && java_at_mov(r, at + 2, removal))
		return;
	if (java_code(r, at) == 0x5f && java_at_mov(r, at + 1, removal))
		return;
	removal->where = JAVA_LEAF_WHOLE;
}
