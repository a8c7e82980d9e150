/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* java_leaf: where the return address is of a frame of HotSpot's code that was interrupted while it was being built or removed. That
 * follows from the instructions around the pc, which the VM's assembler always emits in the same order (MacroAssembler::verified_entry,
 * C1_MacroAssembler::build_frame, MachEpilogNode, InterpreterMacroAssembler::remove_activation). x86-64. */
#pragma once
#include "java_blob.h"

/* What is on the stack. */
enum java_leaf {
	JAVA_LEAF_WHOLE,    /* the frame is complete */
	JAVA_LEAF_NONE,     /* the return address is at sp, rbp is the caller's */
	JAVA_LEAF_PUSHED,   /* rbp is at sp, the return address above it */
	JAVA_LEAF_NO_BP,    /* the frame is complete, but rbp is still the caller's */
	JAVA_LEAF_IN_REG,   /* the return address is in a register */
	JAVA_LEAF_UNKNOWN,
};

#define JAVA_CODE_BYTES 64
#define JAVA_POP_BP 0x5d
#define JAVA_JMP 0xe9 /* with a 32-bit displacement */

/* These steps are functions of the walk alone, so that the verifier checks each once: code is read into the emulator's line. */
static __always_inline __u8 java_code(const struct walk *w, __u32 at)
{
	return ((const __u8 *)w->emulation.line)[at & (WALK_LINE_BYTES - 1)];
}

static __always_inline __u32 java_code_word(const struct walk *w, __u32 at)
{
	return java_code(w, at) | java_code(w, at + 1) << 8 | java_code(w, at + 2) << 16 | (__u32)java_code(w, at + 3) << 24;
}

/* Length of `sub rsp, ret_bytes` at `at`, or 0. */
static __always_inline __u32 java_sub_sp(const struct walk *w, __u32 at, __s32 *ret_bytes)
{
	__u32 op = java_code_word(w, at) & 0xffffff;

	if (op == 0xec8148) {
		*ret_bytes = (__s32)java_code_word(w, at + 3);
		return 7;
	}
	if (op == 0xec8348) {
		*ret_bytes = (__s8)java_code(w, at + 3);
		return 4;
	}
	return 0;
}

/* `push rbp` that ends before `at`, possibly with `mov rbp, rsp` between: its distance, or 0. */
static __always_inline __u32 java_push_bp(const struct walk *w, __u32 at)
{
	__u32 mov;

	if (at >= 1 && java_code(w, at - 1) == 0x55)
		return 1;
	if (at < 4 || java_code(w, at - 4) != 0x55)
		return 0;
	mov = java_code_word(w, at - 3) & 0xffffff;
	return mov == 0xec8b48 || mov == 0xe58948 ? 4 : 0;
}

/* Before the frame is complete. Looks for the instruction that makes room for it, whose operand follows from the frame's size. */
WALK_FUNCTION int java_in_prologue(WALK_REF ref, __u64 end, __s64 frame_bytes)
{
	struct walk *w = walk_of(ref);
	__u64 from = end - JAVA_CODE_BYTES;
	__u32 pc;

	if (!w || read_user(w, w->emulation.line, JAVA_CODE_BYTES + 8, from))
		return JAVA_LEAF_UNKNOWN;
	pc = w->pc - from; /* as an offset; may wrap: before what was read */
	WALK_ROLLED
	for (__u32 at = JAVA_CODE_BYTES; at-- > 0;) {
		__s32 bytes = 0;
		__u32 length = java_sub_sp(w, at, &bytes), push;

		if (!length || at + length > JAVA_CODE_BYTES)
			continue;
		push = java_push_bp(w, at);
		if (push && bytes == frame_bytes - 16)
			return w->pc < from || pc <= at - push ? JAVA_LEAF_NONE : pc <= at ? JAVA_LEAF_PUSHED : JAVA_LEAF_WHOLE;
		if (bytes == frame_bytes - 8)
			return w->pc < from || pc <= at ? JAVA_LEAF_NONE : pc == at + length ? JAVA_LEAF_NO_BP : JAVA_LEAF_WHOLE;
	}
	return JAVA_LEAF_UNKNOWN;
}

/* The length of the poll for a safepoint before a return that begins at `at`: 0: `ret` is there; -1: neither. */
static __always_inline __s32 java_poll(const struct walk *w, __u32 at)
{
	__u32 op = java_code_word(w, at);

	if ((op & 0xff) == 0xc3)
		return 0;
	if ((op & 0xffff) == 0x0585) /* test [rip + x], eax */
		return java_code(w, at + 6) == 0xc3 ? 6 : -1;
	if ((op & 0xffffff) == 0x028541) /* test [r10], eax */
		return java_code(w, at + 3) == 0xc3 ? 3 : -1;
	if ((op & 0xffffff) == 0x978b4d) /* mov r10, [r15 + x] */
		return (java_code_word(w, at + 7) & 0xffffff) == 0x028541 && java_code(w, at + 10) == 0xc3 ? 10 : -1;
	if ((op & 0xffffff) == 0x578b4d)
		return (java_code_word(w, at + 4) & 0xffffff) == 0x028541 && java_code(w, at + 7) == 0xc3 ? 7 : -1;
	if ((op & 0xffff) == 0x870f) /* ja */
		return java_code(w, at + 6) == 0xc3 ? 6 : -1;
	if ((op & 0xff) == 0x77)
		return java_code(w, at + 2) == 0xc3 ? 2 : -1;
	if ((op & 0xffffff) != 0xa73b49 && (op & 0xffffff) != 0x673b49) /* cmp rsp, [r15 + x] */
		return -1;
	at += (op & 0xffffff) == 0xa73b49 ? 7 : 4;
	if ((java_code_word(w, at) & 0xffff) == 0x870f)
		return java_code(w, at + 6) == 0xc3 ? 13 : -1;
	return java_code(w, at) == 0x77 && java_code(w, at + 2) == 0xc3 ? 9 : -1;
}

/* In a method's code of which user space has read nothing yet: a frame is complete unless a return is near. */
WALK_FUNCTION int java_in_epilogue(WALK_REF ref)
{
	struct walk *w = walk_of(ref);

	if (!w || read_user(w, w->emulation.line, 40, w->pc - 8))
		return JAVA_LEAF_UNKNOWN;
	if (java_code(w, 8) == JAVA_POP_BP) /* only where a frame is removed; before a jump, for exceptions */
		return java_poll(w, 9) >= 0 || java_code(w, 9) == JAVA_JMP ? JAVA_LEAF_PUSHED : JAVA_LEAF_UNKNOWN;
	if (java_poll(w, 8) >= 0)
		return JAVA_LEAF_NONE;
	if (java_code(w, 7) == JAVA_POP_BP && java_code(w, 8) == JAVA_JMP) /* that jump, or the byte is another instruction's */
		return JAVA_LEAF_UNKNOWN;
	return JAVA_LEAF_WHOLE;
}

static __always_inline enum java_leaf java_method_leaf(struct walk *w, const struct java_blob *blob)
{
	if (blob->complete >= 0 && w->pc - blob->code_start < (__u64)blob->complete)
		return java_in_prologue(ref_of(w), blob->code_start + blob->complete, blob->frame_bytes);
	return java_in_epilogue(ref_of(w));
}

#define JAVA_STUB_BYTES WALK_LINE_BYTES

/* Is `push rbp; mov rbp, rsp` at the begin of what was read? */
static __always_inline int java_is_linking(const struct walk *w)
{
	__u32 mov = java_code_word(w, 1) & 0xffffff;

	return java_code(w, 0) == 0x55 && (mov == 0xec8b48 || mov == 0xe58948);
}

/* In a stub that begins with `push rbp; mov rbp, rsp`: by what it has done since. WHOLE: rbp is its own. */
WALK_FUNCTION int java_stub_leaf(WALK_REF ref, __u64 start)
{
	struct walk *w = walk_of(ref);
	__u64 off;

	if (!w)
		return JAVA_LEAF_UNKNOWN;
	off = w->pc - start;
	if (off >= JAVA_STUB_BYTES || read_user(w, w->emulation.line, JAVA_STUB_BYTES, start) || !java_is_linking(w))
		return JAVA_LEAF_UNKNOWN;
	if (off < 4)
		return off ? JAVA_LEAF_PUSHED : JAVA_LEAF_NONE;
	WALK_ROLLED
	for (__u32 at = 4; at < JAVA_STUB_BYTES; at++) {
		if (at >= off)
			return JAVA_LEAF_WHOLE;
		if (java_code(w, at) == 0x5d || java_code(w, at) == 0xc9) /* perhaps `pop rbp` or `leave` */
			break;
	}
	return JAVA_LEAF_UNKNOWN;
}

/* Does a stub link rbp, at its begin? */
WALK_FUNCTION int java_links(WALK_REF ref, __u64 start)
{
	struct walk *w = walk_of(ref);

	return w && !read_user(w, w->emulation.line, 8, start) && java_is_linking(w);
}

#define JAVA_EXCEPTION_BEGIN 9   /* bytes of its first three instructions */
#define JAVA_EXCEPTION_BEFORE 40 /* bytes before the pc that are looked at, for the last ones */

/* In ExceptionBlob: push rdx; sub rsp, 8; mov [rsp], rbp; ...; mov rbp, [rsp]; add rsp, 8; pop rdx; ...; jmp r8. Before and behind that
 * the return address is in rdx (OptoRuntime::generate_exception_blob). */
WALK_FUNCTION int java_exception_leaf(WALK_REF ref, __u64 start)
{
	struct walk *w = walk_of(ref);
	__u64 off;

	if (!w)
		return JAVA_LEAF_UNKNOWN;
	off = w->pc - start;
	if (off < JAVA_EXCEPTION_BEGIN) {
		if (read_user(w, w->emulation.line, 16, start) || java_code_word(w, 0) != 0xec834852 ||
		    java_code_word(w, 4) != 0x2c894808 || java_code(w, 8) != 0x24)
			return JAVA_LEAF_UNKNOWN;
		return !off ? JAVA_LEAF_IN_REG : off == 1 ? JAVA_LEAF_NONE : JAVA_LEAF_NO_BP;
	}
	if (read_user(w, w->emulation.line, JAVA_EXCEPTION_BEFORE + 8, w->pc - JAVA_EXCEPTION_BEFORE))
		return JAVA_LEAF_UNKNOWN;
	WALK_ROLLED
	for (__u32 at = 0; at <= JAVA_EXCEPTION_BEFORE - 4; at++) {
		if (java_code_word(w, at) == 0x08c48348 && java_code(w, at + 4) == 0x5a)
			return at == JAVA_EXCEPTION_BEFORE - 4 ? JAVA_LEAF_NONE : JAVA_LEAF_IN_REG;
	}
	return JAVA_LEAF_WHOLE;
}

#define JAVA_POPPED_BEFORE 16

/* Where `jmp reg` is that an instruction at `at` leads to: mov rax, [r15 + x]; mov qword [r15 + x], 0; jmp reg. */
static __always_inline int java_is_jump_behind(const struct walk *w, __u32 at)
{
	if ((java_code_word(w, at) & 0xffffff) == 0x478b49)
		at += 4;
	if ((java_code_word(w, at) & 0xffffff) == 0x47c749)
		at += 8;
	return (java_code_word(w, at) & 0xf8ff) == 0xe0ff || (java_code_word(w, at) & 0xf8ffff) == 0xe0ff41;
}

/* Between `pop rdx` and `jmp reg`, in stubs that go to the handler of an exception? Of StubRoutines::forward_exception_entry with what is
 * between (the exception is fetched from the thread). */
WALK_FUNCTION int java_is_popped(WALK_REF ref)
{
	struct walk *w = walk_of(ref);

	if (!w || read_user(w, w->emulation.line, 40, w->pc - JAVA_POPPED_BEFORE) || !java_is_jump_behind(w, JAVA_POPPED_BEFORE))
		return 0;
	return java_code(w, JAVA_POPPED_BEFORE - 1) == 0x5a ||
	       ((java_code_word(w, JAVA_POPPED_BEFORE - 4) & 0xffffff) == 0x478b49 && java_code(w, JAVA_POPPED_BEFORE - 5) == 0x5a) ||
	       ((java_code_word(w, JAVA_POPPED_BEFORE - 8) & 0xffffff) == 0x47c749 && java_code(w, JAVA_POPPED_BEFORE - 13) == 0x5a);
}

/* --- interpreter ---------------------------------------------------------------------------------------------------------------------- */

/* In the code of the entries for methods: sets *ret_entry to the entry, with a frame of its own, or to NULL. */
static __always_inline enum java_leaf java_entry_leaf(const struct sonde_java *j, __u32 off, const struct sonde_java_entry **ret_entry)
{
	WALK_UNROLLED
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
#define JAVA_RDX 1
#define JAVA_RBX 3
#define JAVA_RDI 5
#define JAVA_R11 11
#define JAVA_R13 13
#define JAVA_R15 15

struct java_removal { /* of four bytes */
	__u8 where;   /* enum java_leaf: WHOLE: the frame is not being removed */
	__u8 ret_reg; /* IN_REG */
	__u8 sp_reg;  /* the caller's sp */
	__u8 has_sp;  /* sp is the caller's already */
};

/* Is `jmp reg` at `at`? Of a native method's entry rdi, else r13. */
static __always_inline int java_jump(const struct walk *w, __u32 at, struct java_removal *removal)
{
	if ((java_code_word(w, at) & 0xffffff) == 0xe5ff41)
		removal->ret_reg = JAVA_R13;
	else if ((java_code_word(w, at) & 0xffff) == 0xe7ff)
		removal->ret_reg = JAVA_RDI;
	else
		return 0;
	return 1;
}

/* Behind `mov rsp, reg`: up to the jump; newer versions clear a mark for JFR in between. */
static __always_inline int java_after_mov(const struct walk *w, __u32 at, struct java_removal *removal)
{
	if (java_jump(w, at, removal))
		return 1;
	if ((java_code_word(w, at) & 0xffffff) == 0xa73b49) /* cmp rsp, [r15 + x] */
		at += 7;
	if ((java_code_word(w, at) & 0xffff) == 0x0b72) /* jb */
		at += 2;
	if ((java_code_word(w, at) & 0xffffff) == 0x87c749) /* mov qword [r15 + x], 0 */
		at += 11;
	return java_jump(w, at, removal);
}

static __always_inline int java_at_mov(const struct walk *w, __u32 at, struct java_removal *removal)
{
	__u32 op = java_code_word(w, at) & 0xffffff;

	if (op != 0xe38b48 && op != 0xe38b49) /* mov rsp, rbx; mov rsp, r11 */
		return 0;
	removal->sp_reg = op == 0xe38b48 ? JAVA_RBX : JAVA_R11;
	return java_after_mov(w, at + 3, removal);
}

static __always_inline void java_find_removal(struct walk *w, struct java_removal *removal)
{
	__u32 at = 0;

	removal->where = JAVA_LEAF_IN_REG;
	if (java_at_mov(w, 0, removal))
		return;
	removal->has_sp = 1;
	if (java_after_mov(w, 0, removal))
		return;
	removal->has_sp = 0;
	removal->where = JAVA_LEAF_NONE;
	if ((java_code_word(w, 0) & 0xffffff) == 0x87c641) /* mov byte [r15 + x], 0 */
		at = 8;
	if ((java_code_word(w, at) & 0xffff) == 0x5d41 && java_at_mov(w, at + 2, removal))
		return;
	if (java_code(w, at) == 0x5f && java_at_mov(w, at + 1, removal))
		return;
	removal->where = JAVA_LEAF_WHOLE;
}

/* Is the interpreter removing its frame? leave; [mov byte [r15 + x], 0]; pop reg; mov rsp, reg; ...; jmp reg. Returns a struct
 * java_removal. */
WALK_FUNCTION __u32 java_interpreter_leaf(WALK_REF ref)
{
	struct walk *w = walk_of(ref);
	union {
		struct java_removal removal;
		__u32 word;
	} packed = { .removal = { .where = JAVA_LEAF_UNKNOWN } };

	if (w && !read_user(w, w->emulation.line, JAVA_CODE_BYTES, w->pc))
		java_find_removal(w, &packed.removal);
	return packed.word;
}

/* --- adapters between interpreted and compiled code ----------------------------------------------------------------------------------- */

#define JAVA_RAX 0
#define JAVA_ADAPTER_BYTES 72 /* that are looked at */
#define JAVA_ADAPTER_BEFORE 8 /* of them before the pc */

/* To compiled code: and rsp, -16; push rax; ...; jmp r11. The return address stays where it is, too; rax has it, r13 is the caller's sp. */
static __always_inline void java_to_compiled(const struct walk *w, __u32 at, struct java_removal *removal)
{
	removal->where = java_code_word(w, at) == 0xf0e48348 || java_code_word(w, at - 4) == 0xf0e48348 ? JAVA_LEAF_IN_REG : JAVA_LEAF_NONE;
}

/* To interpreted code, behind `pop rax`: [mov r13, rsp]; [sub rsp, x]; mov [rsp], rax; ...; jmp rcx. */
static __always_inline void java_to_interpreted(const struct walk *w, __u32 at, struct java_removal *removal)
{
	removal->has_sp = java_code(w, at - 1) == 0x58 || java_code_word(w, at - 4) == 0xec8b4c58;
	removal->where = removal->has_sp || java_code_word(w, at) == 0x24048948 ? JAVA_LEAF_IN_REG : JAVA_LEAF_NONE;
}

enum java_adapter {
	JAVA_ADAPTER_OTHER,
	JAVA_ADAPTER_RESTORES,
	JAVA_ADAPTER_BEFORE_POP,
	JAVA_ADAPTER_TO_COMPILED,
	JAVA_ADAPTER_TO_INTERPRETED,
};

/* What an instruction of an adapter tells of those before it. Before `pop rax` nothing is on the stack, unless registers were saved for a
 * call. */
static __always_inline enum java_adapter java_adapter_at(const struct walk *w, __u32 at)
{
	__u32 op = java_code_word(w, at), first = op & 0xffffff;

	/* add rsp, x; mov rsp, r13; pop r8 to r11; pop rcx; pop rax */
	if (first == 0xc48148 || first == 0xc48348 || first == 0xe58b49 || (op & 0xfcff) == 0x5841 || (op & 0xffff) == 0x5859)
		return JAVA_ADAPTER_RESTORES;
	/* lea r13, [rsp + 8]; pop rax; cmp qword [rbx + x], 0; cmp rbx, 0; cmp r15, [r10 + x]; cmp byte [r15 + x], 0; mov r11, [r15 + x] */
	if (op == 0x246c8d4c || op == 0xec8b4c58 || op == 0x00fb8348 || first == 0x7b8148 || first == 0x7b8348 || first == 0xba3b4d ||
	    first == 0x7f8041 || first == 0x5f8b4d)
		return JAVA_ADAPTER_BEFORE_POP;
	if (first == 0xe3ff41) /* jmp r11 */
		return JAVA_ADAPTER_TO_COMPILED;
	return (op & 0xffff) == 0xe1ff ? JAVA_ADAPTER_TO_INTERPRETED : JAVA_ADAPTER_OTHER; /* jmp rcx */
}

static __always_inline void java_find_adapter(struct walk *w, struct java_removal *removal)
{
	enum java_adapter next = JAVA_ADAPTER_OTHER;

	removal->ret_reg = JAVA_RAX;
	removal->sp_reg = JAVA_R13;
	WALK_ROLLED
	for (__u32 at = JAVA_ADAPTER_BEFORE; at < JAVA_ADAPTER_BYTES; at++) {
		next = java_adapter_at(w, at);
		if (next != JAVA_ADAPTER_OTHER)
			break;
	}
	if (next == JAVA_ADAPTER_BEFORE_POP) {
		removal->where = JAVA_LEAF_NONE;
		removal->has_sp = 1;
	} else if (next == JAVA_ADAPTER_TO_COMPILED) {
		java_to_compiled(w, JAVA_ADAPTER_BEFORE, removal);
	} else if (next == JAVA_ADAPTER_TO_INTERPRETED) {
		java_to_interpreted(w, JAVA_ADAPTER_BEFORE, removal);
	}
}

/* Returns a struct java_removal; has_sp: sp is the caller's, but for the return address if that is on the stack. */
WALK_FUNCTION __u32 java_adapter_leaf(WALK_REF ref)
{
	struct walk *w = walk_of(ref);
	union {
		struct java_removal removal;
		__u32 word;
	} packed = { .removal = { .where = JAVA_LEAF_UNKNOWN } };

	if (w && !read_user(w, w->emulation.line, JAVA_ADAPTER_BYTES + 8, w->pc - JAVA_ADAPTER_BEFORE))
		java_find_adapter(w, &packed.removal);
	return packed.word;
}
