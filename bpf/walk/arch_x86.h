/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* arch_x86: the x86-64 part of the walk: calls, leaf functions without rows, signal frames. */
#pragma once
#include "walk_code.h"

static __always_inline __u64 code_pc(__u64 word)
{
	return word;
}

#define WALK_CHUNK_BYTES (512ULL << 20) /* MSTACK_CHUNK_SIZE */
#define WALK_CHUNK_STACKS (1u << 16)

/* Ruby's Ractors, from 3.3 on: their stacks are parts of a large mapping, and end with its address and the stack's number in it (struct
 * nt_machine_stack_footer in thread_pthread_mn.c). */
static __always_inline int is_chunk_stack_top(struct walk *w, __u64 cfa)
{
	__u64 footer[2];

	return !((cfa + sizeof(footer)) & (WALK_PAGE_BYTES - 1)) && !read_user(w, footer, sizeof(footer), cfa) &&
	       !(footer[0] & (WALK_PAGE_BYTES - 1)) && cfa - footer[0] < WALK_CHUNK_BYTES && footer[1] < WALK_CHUNK_STACKS;
}

/* Code that sets up a stack by hand and pushes 0 before its first function (Ruby's fibers) does so at the end of a page. A 0 elsewhere is
 * leftover data. */
static __always_inline int is_stack_top(struct walk *w, __u64 cfa)
{
	return !(cfa & (WALK_PAGE_BYTES - 1)) || is_chunk_stack_top(w, cfa);
}

/* Does a call instruction end at `pc`? E8 rel32, or FF /2 in its forms of 2, 3, 4, 6 and 7 bytes (Intel SDM volume 2, CALL). */
WALK_FUNCTION int walk_after_call(WALK_REF ref, __u64 pc)
{
	struct walk *w = walk_of(ref);
	__u8 code[8] = {};

	if (!w || read_user(w, code, sizeof(code), pc - sizeof(code)))
		return 0;
	return code[3] == 0xe8 || (code[6] == 0xff && (code[7] & 0x38) == 0x10) || (code[5] == 0xff && (code[6] & 0x38) == 0x10) ||
	       (code[4] == 0xff && (code[5] & 0x38) == 0x10) || (code[2] == 0xff && (code[3] & 0x38) == 0x10) ||
	       (code[1] == 0xff && (code[2] & 0x38) == 0x10);
}

#define WALK_MAX_LEAF_BYTES (1u << 20) /* a function is not longer */

static __always_inline int is_push_bp(const __u8 *code)
{
	return code[0] == 0x55;
}

static __always_inline int is_mov_bp_sp(const __u8 *code)
{
	return code[0] == 0x48 && ((code[1] == 0x89 && code[2] == 0xe5) || (code[1] == 0x8b && code[2] == 0xec));
}

static __always_inline int is_ret(const __u8 *code)
{
	return code[0] == 0xc3 || code[0] == 0xc2 || ((code[0] == 0xf2 || code[0] == 0xf3) && code[1] == 0xc3);
}

/* jmp *rel32(%rip): what stubs consist of */
static __always_inline int is_stub_jump(const __u8 *code)
{
	return code[0] == 0xff && code[1] == 0x25;
}

static __always_inline int is_endbr64(const __u8 *code)
{
	return code[0] == 0xf3 && code[1] == 0x0f && code[2] == 0x1e && code[3] == 0xfa;
}

/* The distance from the start of the called function to `pc`, by the direct call (E8 rel32) before `ret`. WALK_MAX_LEAF_BYTES: there is no
 * such call, or it does not lead to code before pc. */
WALK_FUNCTION __u32 walk_called_distance(WALK_REF ref, __u64 ret, __u64 pc)
{
	struct walk *w = walk_of(ref);
	__u8 call[8] = {};
	__u64 distance;

	if (!w || read_user(w, call, 5, ret - 5) || call[0] != 0xe8)
		return WALK_MAX_LEAF_BYTES;
	distance = pc - (ret + (__u64)(__s64)(__s32)(call[1] | call[2] << 8 | call[3] << 16 | (__u32)call[4] << 24));
	return distance < WALK_MAX_LEAF_BYTES ? distance : WALK_MAX_LEAF_BYTES;
}

/* Does the function that begins `distance` before `pc` set up a frame pointer, and has it started to? */
static __always_inline int walk_has_frame(struct walk *w, __u64 pc, __u32 distance)
{
	__u8 code[8] = {};
	__u32 off;

	if (read_user(w, code, sizeof(code), pc - distance))
		return 1;
	off = is_endbr64(code) ? 4 : 0;
	return distance > off && is_push_bp(code + off);
}

/* Is the return address at sp, by this instruction: one before or behind which a function has no frame? */
static __always_inline int is_at_return_address(const __u8 *code)
{
	return is_ret(code) || is_stub_jump(code) || is_endbr64(code) || (is_push_bp(code) && is_mov_bp_sp(code + 1));
}

/* May the word at sp, or the one above it, be a return address? If the function has a frame, both are its locals. */
WALK_FUNCTION int walk_may_be_frameless(WALK_REF ref)
{
	struct walk *w = walk_of(ref);
	__u64 word;

	if (!w)
		return 0;
	for (__u32 off = 0; off <= 8; off += 8) {
		if (w->sp + off - w->bp < 16 || walk_peek(w, w->sp + off, &word))
			return 0;
		if (walk_after_call(ref_of(w), word) && !walk_find_mapping(w, word - 1))
			return 1;
	}
	return 0;
}

/* Does the function set up its frame only behind pc? Code that tests something first (V8's functions) reaches the prologue within a few
 * instructions. No instruction that ends or leaves the function may be in between. */
WALK_FUNCTION int walk_is_before_prologue(WALK_REF ref)
{
	struct walk *w = walk_of(ref);
	__u8 code[48] = {};

	if (!w || read_user(w, code, sizeof(code), w->pc))
		return 0;
	WALK_UNROLLED
	for (__u32 i = 0; i < sizeof(code) - 4; i++) {
		if (is_push_bp(code + i) && is_mov_bp_sp(code + i + 1))
			return 1;
		if (is_ret(code + i) || code[i] == 0xcc || code[i] == 0xe8 || code[i] == 0xe9)
			return 0;
	}
	return 0;
}

/* Has the function released its frame a few instructions before pc (mov rsp,rbp; pop rbp)? */
WALK_FUNCTION int walk_is_behind_epilogue(WALK_REF ref)
{
	struct walk *w = walk_of(ref);
	int is_behind = 0;
	__u8 code[16] = {};

	if (!w || read_user(w, code, sizeof(code), w->pc - sizeof(code)))
		return 0;
	WALK_UNROLLED
	for (__u32 i = 0; i < sizeof(code) - 3; i++) {
		if (code[i] == 0x48 && ((code[i + 1] == 0x8b && code[i + 2] == 0xe5) || (code[i + 1] == 0x89 && code[i + 2] == 0xec)) &&
		    code[i + 3] == 0x5d)
			is_behind = 1;
		else if (code[i + 3] == 0xc3 || code[i + 3] == 0xc2)
			is_behind = 0;
	}
	return is_behind;
}

#define WALK_MAX_FRAMELESS_BYTES 1024

/* In code without rows the innermost function may have no frame at this point. Then its return address is at sp, and the frame pointer
 * would skip its caller. The next instruction may tell (mov rbp,rsp; ret). Else compares the return address at sp with the one that the
 * frame pointer leads to, by the functions that their calls lead to: of two that begin before pc, pc is in the nearer one. 0: the function
 * has a frame. */
WALK_FUNCTION int walk_frameless(WALK_REF ref)
{
	struct walk *w = walk_of(ref);
	__u64 ret, by_bp = 0, bp, sp;
	__u32 distance, other;
	__u8 code[8] = {};

	if (!w || read_user(w, code, sizeof(code), w->pc) || walk_peek(w, w->sp, &ret))
		return 0;
	bp = w->bp;
	sp = w->sp + 8;
	if (is_mov_bp_sp(code)) {
		bp = ret;
		sp += 8;
		if (walk_peek(w, w->sp + 8, &ret) || !walk_after_call(ref_of(w), ret))
			return 0;
	} else if (is_at_return_address(code) || walk_is_before_prologue(ref_of(w)) || walk_is_behind_epilogue(ref_of(w))) {
		if (!walk_after_call(ref_of(w), ret))
			return 0;
	} else {
		distance = walk_called_distance(ref_of(w), ret, w->pc);
		if (distance == WALK_MAX_LEAF_BYTES) /* called through a pointer, or entered by a jump, if at all */
			return walk_may_be_frameless(ref_of(w)) ? WALK_UNSURE : 0;
		other = WALK_MAX_LEAF_BYTES;
		if (!(bp & 7) && bp >= w->sp && bp - w->sp <= WALK_MAX_FP_FRAME_BYTES && !walk_peek(w, bp + 8, &by_bp))
			other = walk_called_distance(ref_of(w), by_bp, w->pc);
		if (walk_has_frame(w, w->pc, distance))
			return 0;
		if (other <= distance) /* the same function: it is recursive, and sets up its frame late */
			return other == distance ? WALK_UNSURE : 0;
		if (distance > WALK_MAX_FRAMELESS_BYTES) /* the function called there is unlikely to reach up to pc */
			return WALK_UNSURE;
	}
	if (walk_find_mapping(w, ret - 1))
		return 0;
	w->pc = ret;
	w->sp = sp;
	w->bp = bp;
	w->exact = 0;
	return WALK_FRAMELESS;
}

/* In memory without rows: a function without a frame pointer, after a call, shows its return address when it only has to return: add
 * $N,%rsp; ret (Python/asm_trampoline.S of CPython 3.12 and 3.13). 0: it does not, or there is none. */
WALK_FUNCTION int walk_returns_at_once(WALK_REF ref)
{
	struct walk *w = walk_of(ref);
	__u8 code[8] = {};
	__u64 ret;

	if (!w || read_user(w, code, 5, w->pc) || code[0] != 0x48 || code[1] != 0x83 || code[2] != 0xc4 || code[3] & 0x87 ||
	    code[4] != 0xc3)
		return 0;
	if (walk_peek(w, w->sp + code[3], &ret) || !walk_is_return(ref_of(w), ret))
		return 0;
	w->pc = ret;
	w->sp += code[3] + 8;
	return 1;
}

/* `_start` and the start of threads: the call is not expected to return, so hlt follows. No compiler emits that. */
WALK_FUNCTION int walk_is_outermost(WALK_REF ref)
{
	struct walk *w = walk_of(ref);
	__u8 code[1] = {};

	return w && !read_user(w, code, sizeof(code), w->pc) && code[0] == 0xf4;
}

/* At sp, behind the handler's return address, is struct rt_sigframe (arch/x86/include/asm/sigframe.h): struct ucontext, with uc_mcontext at
 * 40. The registers are in the order of struct sigcontext_64 (uapi/asm/sigcontext.h). */
#define SIGNAL_MCONTEXT_OFF 40
#define SIGNAL_NR_REGS 17

WALK_FUNCTION int walk_signal(WALK_REF ref)
{
	struct walk *w = walk_of(ref);
	/* in the order of struct sigcontext_64: r8 r9 r10 r11 r12 r13 r14 r15 rdi rsi rbp rbx rdx rax rcx rsp rip */
	__u64 saved[SIGNAL_NR_REGS];

	if (!w)
		return WALK_ENDED;
	walk_note_lost(w);
	if (++w->nr_signals > WALK_MAX_SIGNALS)
		return walk_stop(w, SONDE_STOP_DEPTH);
	if (read_user(w, saved, sizeof(saved), w->sp + SIGNAL_MCONTEXT_OFF))
		return walk_stop(w, SONDE_STOP_READ_FAULT);
	for (int i = 0; i < 8; i++)
		w->regs[8 + i] = saved[i];
	w->regs[0] = saved[13]; /* rax */
	w->regs[1] = saved[12]; /* rdx */
	w->regs[2] = saved[14]; /* rcx */
	w->regs[WALK_REG_BX] = saved[11];
	w->regs[4] = saved[9];  /* rsi */
	w->regs[5] = saved[8];  /* rdi */
	w->bp = saved[10];
	w->sp = saved[15];
	w->pc = saved[16];
	w->exact = 1;
	walk_begin(w);
	return WALK_GOES_ON;
}

/* mov $15,%rax (or mov $15,%eax); syscall. 15 is rt_sigreturn. Returns its length; 0: other code. */
static __always_inline int sigreturn_bytes(const __u8 *code)
{
	if (code[0] == 0x48 && code[1] == 0xc7 && code[2] == 0xc0)
		return code[3] == 15 && !code[4] && !code[5] && !code[6] && code[7] == 0x0f && code[8] == 0x05 ? 9 : 0;
	return code[0] == 0xb8 && code[1] == 15 && !code[2] && !code[3] && !code[4] && code[5] == 0x0f && code[6] == 0x05 ? 7 : 0;
}

/* During the system call itself pc is behind the function. */
WALK_FUNCTION int walk_is_sigreturn(WALK_REF ref)
{
	struct walk *w = walk_of(ref);
	__u8 code[16] = {};

	if (!w)
		return 0;
	if (!read_user(w, code, 9, w->pc) && sigreturn_bytes(code))
		return 1;
	if (w->exact != WALK_EXACT || read_user(w, code, sizeof(code), w->pc - 9))
		return 0;
	if (w->in_syscall)
		return sigreturn_bytes(code) == 9 || sigreturn_bytes(code + 2) == 7;
	return sigreturn_bytes(code + 2) == 9 || sigreturn_bytes(code + 4) == 7; /* about to call */
}

/* call exit; hlt. */
static __always_inline int is_last_call(const __u8 *code)
{
	return code[0] == 0xe8 && code[5] == 0xf4;
}

/* Does the code end with a call that does not return? The contexts of boost and PHP return to code that begins with it, behind xor
 * %rdi,%rdi. glibc's __start_context has it behind 20 bytes. Looking for it everywhere would take the verifier too long. */
WALK_FUNCTION int walk_ends_process(WALK_REF ref)
{
	struct walk *w = walk_of(ref);
	__u8 code[32] = {};

	return w && !read_user(w, code, sizeof(code), w->pc) && (is_last_call(code + 3) || is_last_call(code + 20));
}

/* Functions that keep a frame pointer show it in their first instructions. */
WALK_FUNCTION __u64 walk_link_of(WALK_REF ref, __u64 ret)
{
	struct walk *w = walk_of(ref);
	__u8 code[48] = {};
	__u64 target;

	if (!w || read_user(w, code, 5, ret - 5) || code[0] != 0xe8)
		return WALK_LINK_ANY;
	target = ret + (__u64)(__s64)(__s32)(code[1] | code[2] << 8 | code[3] << 16 | (__u32)code[4] << 24);
	if (read_user(w, code, sizeof(code), target))
		return WALK_LINK_ANY;
	if (is_stub_jump(code) || code[0] == 0xe9 || (is_endbr64(code) && (is_stub_jump(code + 4) || is_stub_jump(code + 5))))
		return WALK_LINK_ANY; /* a stub that continues elsewhere */
	WALK_UNROLLED
	for (__u32 i = 0; i < sizeof(code) - 2; i++) { /* compilers put other instructions between the push and this */
		if (is_mov_bp_sp(code + i))
			return (__u32)target | 1ULL << 32;
	}
	return WALK_LINK_NONE;
}
