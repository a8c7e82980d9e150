/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The native walk: from one frame of a user stack to its caller, by the rows of abi/unwind.h, else by validated frame pointers.
 * Compiles for BPF and for the host: whoever includes this gives, before, the three accessors
 *
 *   const __u32 *chunk_at(const struct walk *w, __u32 pos)                   the words of the chunk that pos lies in, or NULL
 *   const struct sonde_rule *rule_at(const struct walk *w, __u32 number)     or NULL
 *   long read_user(const struct walk *w, void *to, __u32 size, __u64 from)   0, or not 0 when not all of it can be read
 *   __u64 user_tls_base(const struct walk *w)                                the thread pointer (x86-64: fs base); 0: not known
 *
 * and WALK_FUNCTION, the storage class of the larger steps: for BPF they are global functions, which the verifier proves once each and not
 * once per way to them (210,000 instructions that were looked at became 6,000).
 *
 * Cost: the stack is read in blocks of WALK_BLOCK_BYTES, so that most frames cost no read at all; what to do at a frame is remembered in a cache by its
 * pc; where that misses, the mapping of the last frame is tried first, and finding the row is one look into an index and about six steps. */
#pragma once
#include "../abi/record.h"
#include "../abi/unwind.h"

#define WALK_BLOCK_BYTES 2048 /* measured best of 1, 2 and 4 KiB; less than a page, see walk_fill */
#define WALK_PAGE_BYTES 4096
#define WALK_CACHE_SHIFT 11
#define WALK_CACHE_ENTRIES (1u << WALK_CACHE_SHIFT)
#define WALK_MAX_FP_FRAME_BYTES (16u << 20) /* a frame pointer farther up than this is no frame pointer */
#define WALK_MAX_SWITCHES 1024 /* from stack to stack, of Go */
#define WALK_MAX_SIGNALS 16 /* handlers interrupted by handlers; more is a stack that leads to itself */

/* DWARF register numbers: psABI figure 3.36; "DWARF for the Arm 64-bit Architecture" section 4.1. */
#ifdef SONDE_ARM64
#define WALK_NR_REGS 32
#define WALK_REG_BX 19 /* no rule says where it is, see walk_needs_bx */
#define WALK_REG_BP 29
#define WALK_SP_KNOWN 0 /* by a frame record: it stands at the low end of its frame, the caller's sp is somewhere above */
#define WALK_REG_RA 30
#define WALK_REG_SP 31
#else
#define WALK_NR_REGS 16
#define WALK_REG_BX 3
#define WALK_SP_KNOWN 1 /* behind saved rbp and return address */
#define WALK_REG_BP 6
#define WALK_REG_SP 7
#endif

/* What the walk does at a frame, beside the numbers of rules. */
#define WALK_NO_TABLE SONDE_MAX_RULES
#define WALK_NO_MAPPING (SONDE_MAX_RULES + 1)
#define WALK_NOT_LOADED (SONDE_MAX_RULES + 2)

/* Frames come again and again: what was found for one is remembered. */
struct walk_cached {
	__u64 frame;  /* as it stands in the stack, with SONDE_FRAME_RETURN */
	__u32 serial; /* of the struct sonde_process that it was found with */
	__u32 rule;   /* or WALK_NO_TABLE, WALK_NOT_LOADED; with WALK_LINK what walk_link_of says */
};

/* Where a walk was when it last knew all registers: at the leaf, or where a signal struck. */
struct walk_start {
	__u64 pc, sp, bp, bx, hash;
	__u64 go_g0_sp;
	__u32 nr_frames, pad;
};

/* Is regs[WALK_REG_BX] kept as the frames restore it, from the start on? */
enum walk_bx {
	WALK_BX_LEFT,  /* no */
	WALK_BX_KNOWN,
	WALK_BX_LOST,  /* yes, but no frame on the way says where it is now: until one that saved it */
};

/* What pc is. */
enum walk_exact {
	WALK_RETURN,   /* a return address */
	WALK_EXACT,    /* an instruction that was interrupted, and regs hold */
	WALK_EXACT_PC, /* one that was interrupted, but of the registers only sp and bp are known */
};

/* What is known of the registers before an instruction that the function comes to, see lib/ahead_x86.h. */
struct walk_ahead_state {
	__u64 pc;
	__s64 sp;         /* bytes above sp at the begin, or above rbp: see is_from_bp */
	__s64 bp;         /* likewise, what it points to or was loaded from: see bp_is */
	__s64 saved_bp;   /* likewise, where this code itself has put rbp, or AHEAD_NOT_SAVED */
	__u8 is_sp_known;
	__u8 is_from_bp;
	__u8 bp_is;       /* enum walk_ahead_bp */
	__u8 has_raised;  /* the instruction before gave up a part of the stack */
	__u32 pad;
};

enum walk_ahead_bp {
	AHEAD_BP_KEPT,  /* as at the begin */
	AHEAD_BP_FRAME, /* points into the stack */
	AHEAD_BP_SLOT,  /* was loaded from the stack */
	AHEAD_BP_ANY,
};

struct walk_ahead {
	struct walk_ahead_state now, exit; /* exit: where a conditional jump leads, pc 0: to nowhere */
	__u64 beyond_pc;                   /* the last one that was taken */
	__u64 loop_pc;                     /* of the jump back that was followed last */
	__u32 result;
	__u32 op;                          /* of the instruction; 0x100, 0x200, 0x300 and up: behind 0f, 0f 38, 0f 3a */
	__s32 disp, imm;
	__u8 code[16];
	__u32 at;                          /* of the next byte in it */
	__u8 rex, modrm, sib, has_modrm, is_vector, is_short;
	__u8 has_called, is_unsure;
};

/* What has decided a walk so far, see lib/walk_memo.h. */
#define WALK_TRAIL_WORDS 64 /* a power of two */
struct walk_trail {
	__u64 at[WALK_TRAIL_WORDS], words[WALK_TRAIL_WORDS]; /* of the stack */
	__u64 tls_base;  /* 0: it was not asked for */
	__u32 nr;
	__u32 used_regs; /* a bit for each that was looked at, beside pc, sp and bp */
	__u8 is_lost;    /* something else decided, too, or there were more words */
	__u8 pad[7];
};

struct walk {
	__u64 pc, sp, bp;
	__u64 hash;                        /* of the frames so far */
	__u64 known_ns;                    /* of the process's block; 0: not known */
	__u64 syscall;                     /* that the thread is in: its number, or all ones */
	__u64 hash_begin;                  /* what tells processes apart: what the hash of its stacks begins with */
	__u64 regs[WALK_NR_REGS];          /* by DWARF number, as they were at the leaf or where a signal struck */
	struct sonde_mapping mapping;      /* that of the last frame; empty at first */
	__u64 block_start;                 /* user address of block[0] */
	__u32 block_limit;                 /* words that start below block_start + this lie in the block */
	__u32 process_pos, nr_mappings;    /* of the process's struct sonde_mapping[], 0: not known */
	__u32 serial;                      /* of the process's block */
	__u32 generation, runtimes;        /* likewise, as struct sonde_process has them */
	__u32 nr_frames;
	__u8 stop;                         /* enum sonde_stop, once the walk has ended */
	__u8 exact;                        /* enum walk_exact */
	__u8 compat;                       /* 32-bit code: we do not know its stack */
	__u8 in_syscall;                   /* pc of the leaf is behind a system call's instruction, or where a fault struck */
	__u8 follows_bx;                   /* enum walk_bx */
	__u32 nr_signals;                  /* signal frames so far */
	__u32 nr_switches;                 /* likewise, of Go's stacks */
	__u32 linked_frame;                /* the number of the last frame that a frame pointer led to: only there a zero proves the root, elsewhere bp may be any register */
	__u32 lost_sp_frame;               /* arm64: likewise, of the last frame whose sp is not known */
	__u32 go_in_scheduler;             /* Go's scheduler is among the frames so far */
	__u32 pad;
	__u64 go_g0_sp;                    /* sp of the last runtime.cgocallback's frame on g0; 0: none so far */
	__u32 number;                      /* of this walk, see WALK_REF */
	struct walk_start start;
	struct walk_trail trail;
	struct walk_ahead ahead;
	__u64 block[WALK_BLOCK_BYTES / 8];
	struct walk_cached cache[WALK_CACHE_ENTRIES]; /* by frame; outlives the walk */
	__u64 sps[SONDE_MAX_USER_FRAMES];             /* of the frames, as sonde_frame_slot has them: where a runtime's frames belong is told by them */
};

#define WALK_GOES_ON 0
#define WALK_ENDED 1

/* How the larger steps are told which walk: by its number where WALK_BY_NUMBER is defined. Then whoever includes this gives walk_of, NULL: there is no such walk. */
#ifdef WALK_BY_NUMBER
#define WALK_REF __u32
static __always_inline struct walk *walk_of(__u32 number);

static __always_inline __u32 ref_of(const struct walk *w)
{
	return w->number;
}
#else
#define WALK_REF struct walk *

static __always_inline struct walk *walk_of(struct walk *w)
{
	return w;
}

static __always_inline struct walk *ref_of(struct walk *w)
{
	return w;
}
#endif

static __always_inline int walk_stop(struct walk *w, enum sonde_stop stop)
{
	w->stop = stop;
	return WALK_ENDED;
}

static __always_inline __u64 hash_step(__u64 hash, __u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
	return hash ^ hash >> 32;
}

#ifdef WALK_REMEMBERS
static __always_inline void walk_note_word(struct walk *w, __u64 at, __u64 word)
{
	__u32 nr = w->trail.nr;

	if (nr >= WALK_TRAIL_WORDS) {
		w->trail.is_lost = 1;
		return;
	}
	w->trail.at[nr & (WALK_TRAIL_WORDS - 1)] = at;
	w->trail.words[nr & (WALK_TRAIL_WORDS - 1)] = word;
	w->trail.nr = nr + 1;
}

static __always_inline void walk_note_reg(struct walk *w, __u32 reg)
{
	w->trail.used_regs |= 1u << (reg & 31);
}

static __always_inline void walk_note_tls(struct walk *w, __u64 base)
{
	w->trail.tls_base = base;
}

static __always_inline void walk_note_lost(struct walk *w)
{
	w->trail.is_lost = 1;
}

static __always_inline void walk_note_begin(struct walk *w)
{
	w->trail.nr = 0;
	w->trail.used_regs = 0;
	w->trail.tls_base = 0;
	w->trail.is_lost = 0;
}
#else
#define walk_note_word(w, at, word) (void)0
#define walk_note_reg(w, reg) (void)0
#define walk_note_tls(w, base) (void)0
#define walk_note_lost(w) (void)0
#define walk_note_begin(w) (void)0
#endif

/* Reads a block from `from` on. Where it crosses into a page that is not there (the top of the stack), up to the page's end. */
WALK_FUNCTION int walk_fill(WALK_REF ref, __u64 from)
{
	struct walk *w = walk_of(ref);
	__u32 size = WALK_BLOCK_BYTES;

	if (!w)
		return -1;
	w->block_limit = 0;
	if (read_user(w, w->block, WALK_BLOCK_BYTES, from)) {
		size = WALK_PAGE_BYTES - (from & (WALK_PAGE_BYTES - 1));
		if (size < 8 || size >= WALK_BLOCK_BYTES)
			return -1;
		size &= WALK_BLOCK_BYTES - 1; /* for the verifier */
		if (read_user(w, w->block, size, from))
			return -1;
	}
	w->block_start = from;
	w->block_limit = size - 7;
	return 0;
}

/* A word of the stack. 0 or -1. */
static __always_inline int walk_peek(struct walk *w, __u64 at, __u64 *ret_word)
{
	__u64 off = at - w->block_start;

	if (off >= w->block_limit) {
		if (walk_fill(ref_of(w), at))
			return -1;
		off = 0;
	}
	if (off & 7) { /* a stack that is not aligned: rare enough to read it by itself */
		walk_note_lost(w);
		return read_user(w, ret_word, sizeof(*ret_word), at) ? -1 : 0;
	}
	*ret_word = w->block[off / 8 & (WALK_BLOCK_BYTES / 8 - 1)];
	return 0;
}

/* The same for what decides where the caller is, so that the walk can be remembered. */
static __always_inline int walk_word(struct walk *w, __u64 at, __u64 *ret_word)
{
	if (walk_peek(w, at, ret_word))
		return -1;
	walk_note_word(w, at, *ret_word);
	return 0;
}

#define CHUNK_WORD(words, pos) ((words)[(pos) & (SONDE_CHUNK_WORDS - 1)])
#define CHUNK_U64(words, pos) (*(const __u64 *)&(words)[(pos) & (SONDE_CHUNK_WORDS - 2)]) /* at even pos */

/* Searches take a half of what is left at each step, by arithmetic instead of branches: the verifier sees one way through, and the CPU has
 * nothing to predict wrongly. All ones when a <= b, for a and b below 2^63. */
static __always_inline __u64 at_most(__u64 a, __u64 b)
{
	return (__u64)((__s64)(a - b - 1) >> 63);
}

/* How many of the process's mappings start at or before `pc`. */
WALK_FUNCTION __u32 walk_search_mappings(WALK_REF ref, __u64 pc)
{
	struct walk *w = walk_of(ref);
	__u32 base = 0, pos, nr;
	const __u32 *words;

	if (!w)
		return 0;
	pos = w->process_pos;
	nr = w->nr_mappings;
	words = chunk_at(w, pos);
	if (!words)
		return 0;
	for (int step = 0; step < 13 && nr > 1; step++) { /* 2^13 > SONDE_MAX_MAPPINGS */
		__u32 half = nr / 2;

		base += half & (__u32)at_most(CHUNK_U64(words, pos + (base + half - 1) * 8), pc);
		nr -= half;
	}
	return base + (nr & (__u32)at_most(CHUNK_U64(words, pos + base * 8), pc));
}

/* Makes w->mapping the one that holds `pc`. 0, or -1 when there is none. */
static __always_inline int walk_find_mapping(struct walk *w, __u64 pc)
{
	const __u32 *words;
	__u32 nr_before, at;

	if (pc - w->mapping.start_pc < w->mapping.end_pc - w->mapping.start_pc)
		return 0;
	nr_before = walk_search_mappings(ref_of(w), pc);
	words = chunk_at(w, w->process_pos);
	at = w->process_pos + (nr_before - 1) * 8;
	if (!nr_before || !words || pc >= CHUNK_U64(words, at + 2))
		return -1;
	w->mapping.start_pc = CHUNK_U64(words, at);
	w->mapping.end_pc = CHUNK_U64(words, at + 2);
	w->mapping.base_pc = CHUNK_U64(words, at + 4);
	w->mapping.index_pos = CHUNK_WORD(words, at + 6);
	w->mapping.nr_blocks = CHUNK_WORD(words, at + 7);
	w->mapping.block_shift = CHUNK_WORD(words, at + 7) >> 16;
	return 0;
}

/* The number of the rule at `rel` of the current mapping: SONDE_RULE_NONE when no row covers it. */
static __always_inline __u32 walk_find_rule(struct walk *w, __u64 rel)
{
	__u64 block = rel >> (w->mapping.block_shift & 31), entry;
	__u32 low = rel & ((1u << (w->mapping.block_shift & 31)) - 1), first, nr;
	const __u32 *words = chunk_at(w, w->mapping.index_pos);

	if (!words || block >= w->mapping.nr_blocks)
		return SONDE_RULE_NONE;
	entry = CHUNK_U64(words, w->mapping.index_pos + block * 2); /* a struct sonde_block */
	first = entry;
	nr = entry >> 32;
	words = chunk_at(w, first);
	if (!words)
		return SONDE_RULE_NONE;
	for (int step = 0; step < 16 && nr > 1; step++) { /* a row for each address of the largest block */
		__u32 half = nr / 2;

		first += half & (__u32)at_most(CHUNK_WORD(words, first + half) & 0xffff, low);
		nr -= half;
	}
	return CHUNK_WORD(words, first) >> 16;
}

static __always_inline struct walk_cached *walk_cached(struct walk *w, __u64 frame)
{
	return &w->cache[(frame * 0x9e3779b97f4a7c15ULL) >> (64 - WALK_CACHE_SHIFT)];
}

/* Finds what to do at a frame that the cache does not know, and puts it there. */
WALK_FUNCTION __u32 walk_search(WALK_REF ref, __u64 frame)
{
	struct walk *w = walk_of(ref);
	__u64 pc = (frame & ~SONDE_FRAME_RETURN) - (frame >> 63); /* a return address may be the first byte of the next function */
	struct walk_cached *cached;
	__u32 rule;

	if (!w)
		return WALK_NO_MAPPING;
	if (walk_find_mapping(w, pc))
		return WALK_NO_MAPPING;
	if (w->mapping.nr_blocks)
		rule = walk_find_rule(w, pc - w->mapping.base_pc);
	else
		rule = w->mapping.block_shift == SONDE_NOT_LOADED ? WALK_NOT_LOADED : WALK_NO_TABLE;
	cached = walk_cached(w, frame);
	cached->frame = frame;
	cached->serial = w->serial;
	cached->rule = rule;
	return rule;
}

static __always_inline __u32 walk_lookup(struct walk *w, __u64 frame)
{
	struct walk_cached *cached = walk_cached(w, frame);

	return cached->frame == frame && cached->serial == w->serial ? cached->rule : walk_search(ref_of(w), frame);
}

/* All registers are known here. */
static __always_inline void walk_begin(struct walk *w)
{
	w->start.pc = w->pc;
	w->start.sp = w->sp;
	w->start.bp = w->bp;
	w->start.bx = w->regs[WALK_REG_BX];
	w->start.hash = w->hash;
	w->start.nr_frames = w->nr_frames;
	w->start.go_g0_sp = w->go_g0_sp;
	w->follows_bx = WALK_BX_LEFT;
}

/* A frame asks for rbx, which the way up to here did not keep: go it once more, and keep it. So rare that all others need not pay for it. */
WALK_FUNCTION int walk_again_with_bx(WALK_REF ref)
{
	struct walk *w = walk_of(ref);
	if (!w || w->follows_bx)
		return WALK_ENDED;
	walk_note_reg(w, WALK_REG_BX);
	w->pc = w->start.pc;
	w->sp = w->start.sp;
	w->bp = w->start.bp;
	w->regs[WALK_REG_BX] = w->start.bx;
	w->hash = w->start.hash;
	w->nr_frames = w->start.nr_frames;
	w->go_g0_sp = w->start.go_g0_sp;
	w->exact = 1;
	w->follows_bx = WALK_BX_KNOWN;
	return WALK_GOES_ON;
}

/* Did a frame pointer lead to the current frame? */
static __always_inline int is_linked(const struct walk *w)
{
	return w->linked_frame == w->nr_frames - 1;
}

/* Is of the current frame's sp only known that it is not below w->sp? */
static __always_inline int is_sp_lost(const struct walk *w)
{
	return !WALK_SP_KNOWN && w->lost_sp_frame == w->nr_frames - 1;
}

/* What the instructions, the signal frame and the registers of a machine have to tell:
 *
 *   walk_after_call(ref, pc)      does a call instruction end at pc?
 *   walk_frameless(ref)           in code without rows, at an interrupted instruction: 0: the function has its frame; WALK_FRAMELESS: it has none, moved to the
 *                                 caller; WALK_UNSURE
 *   walk_returns_at_once(ref)     has the function at pc, behind its call, no frame pointer, and nothing to do but to return? 1: moved to the caller
 *   walk_ahead(w)                 follows the code from pc on until the function returns: AHEAD_MOVED to the caller by what it does to the stack; AHEAD_LINKED: its frame
 *                                 pointer leads there; AHEAD_WRONG: it would go to what is no return address; AHEAD_UNKNOWN
 *   walk_signal(ref)              from the code behind a handler to what was interrupted
 *   walk_is_sigreturn(ref)        is pc that code? Told by its instructions, where no row tells
 *   walk_link_of(ref, ret)        what the call before `ret` leads to: the low word of the address of a function that keeps a frame pointer, in more than 32 bits;
 *                                 WALK_LINK_NONE: one that does not; WALK_LINK_ANY: not to be told
 *   code_pc(word)                 the address in what was saved as a return address
 */
#define WALK_LINK_ANY 0
#define WALK_LINK_NONE (-1ULL)
#define WALK_FRAMELESS 1
#define WALK_UNSURE 2
#define AHEAD_UNKNOWN 0
#define AHEAD_MOVED 1
#define AHEAD_LINKED 2
#define AHEAD_WRONG 3
#define WALK_AHEAD (1ULL << 61) /* in the cache, beside a frame: what the code ahead says, AHEAD_FOUND or 0 */
#define AHEAD_FOUND (1u << 0)
#define AHEAD_BY_BP (1u << 1)    /* counted from rbp, else from sp */
#define AHEAD_RET_SHIFT 2        /* where the return address is, in words */
#define AHEAD_SLOT_SHIFT 16      /* how many words below it the caller's rbp is; 0: in rbp */
#define AHEAD_OFF_MASK 0x3fffu
#ifdef SONDE_ARM64
#include "arch_arm64.h"
#else
#include "arch_x86.h"
#include "ahead_x86.h"
#endif

#define WALK_MAX_ARGUMENTS 4096
#define WALK_MAX_ARGUMENT_BYTES (4u << 20)
#define WALK_MAX_AUXV_TYPE 63

/* Is sp what a process begins with (psABI section 3.4.1: argc, the arguments, 0, the environment)? Then nothing has called. The kernel puts the strings above it in
 * order, so that the environment begins behind the NUL of the last argument. */
WALK_FUNCTION int walk_is_entry(WALK_REF ref)
{
	struct walk *w = walk_of(ref);
	__u64 argc, next[3], first; /* the last argument, 0, and the environment's first string */
	__u8 end = 1;

	if (!w || walk_peek(w, w->sp, &argc) || !argc || argc > WALK_MAX_ARGUMENTS)
		return 0;
	if (walk_peek(w, w->sp + 8, &first) || read_user(w, next, sizeof(next), w->sp + 8 * argc) || next[1])
		return 0;
	if (first - w->sp > WALK_MAX_ARGUMENT_BYTES || next[0] < first || next[0] - w->sp > WALK_MAX_ARGUMENT_BYTES)
		return 0;
	if (!next[2]) /* no environment: the auxiliary vector's first type follows */
		return !walk_peek(w, w->sp + 8 * argc + 24, &first) && first && first <= WALK_MAX_AUXV_TYPE;
	if (next[2] <= next[0] || next[2] - w->sp > WALK_MAX_ARGUMENT_BYTES)
		return 0;
	return read_user(w, &end, 1, next[2] - 1) || !end; /* that memory may be gone, of a stack that is walked late */
}

#define WALK_LINK (1ULL << 62) /* in the cache, beside a return address: what walk_link_of says */

/* Can the frame at w->pc, in a gap of a file that has rows, be the one that `ret` called, and be linked by its frame pointer? Else that is what a caller left there, and
 * frames between them would be left out. */
static __always_inline int walk_is_link(struct walk *w, __u64 ret)
{
	__u64 key = ret | SONDE_FRAME_RETURN | WALK_LINK, link;
	struct walk_cached *cached = walk_cached(w, key);

	if (cached->frame != key || cached->serial != w->serial) {
		link = walk_link_of(ref_of(w), ret);
		if (link == WALK_LINK_NONE)
			return 0;
		cached->frame = key;
		cached->serial = w->serial;
		cached->rule = (__u32)link;
	}
	return cached->rule == WALK_LINK_ANY || (__u32)w->pc - cached->rule < WALK_MAX_LEAF_BYTES;
}

/* Where no row stands: the chain of saved frame pointers, each link checked. `is_trusted`: all of the code there is without rows, so it has another way to find its
 * callers, which can only be the frame pointer. In a gap of a file with rows it is but a guess, unless the call says that the function keeps it. */
WALK_FUNCTION int walk_frame_pointer(WALK_REF ref, int is_trusted)
{
	struct walk *w = walk_of(ref);
	struct walk_cached *cached;
	__u64 bp, pc, frame;
	int frameless = 0, ahead = AHEAD_UNKNOWN;

	if (!w)
		return WALK_ENDED;
	walk_note_lost(w); /* code decides */
	if (walk_is_sigreturn(ref_of(w)))
		return walk_signal(ref_of(w));
	if (w->follows_bx) /* frames without rules do not say where they keep it */
		w->follows_bx = WALK_BX_LOST;
	if (!w->bp && walk_is_entry(ref_of(w)))
		return walk_stop(w, SONDE_STOP_COMPLETE);
	ahead = walk_ahead(w);
	if (ahead == AHEAD_MOVED)
		return WALK_GOES_ON;
	if (ahead == AHEAD_WRONG)
		return walk_stop(w, SONDE_STOP_NO_ROW);
	if (w->exact && ahead != AHEAD_LINKED)
		frameless = walk_frameless(ref_of(w));
	if (frameless)
		return frameless == WALK_FRAMELESS ? WALK_GOES_ON : walk_stop(w, SONDE_STOP_NO_ROW);
	if (is_trusted && !w->exact && !is_linked(w) && walk_returns_at_once(ref_of(w)))
		return WALK_GOES_ON;
	if (!w->bp && is_linked(w)) /* the ABI's mark of the outermost frame */
		return walk_stop(w, SONDE_STOP_COMPLETE);
	if (w->bp & 7 || w->bp < w->sp || w->bp - w->sp > WALK_MAX_FP_FRAME_BYTES)
		return walk_stop(w, SONDE_STOP_NO_ROW);
	if (walk_peek(w, w->bp, &bp) || walk_peek(w, w->bp + 8, &pc))
		return walk_stop(w, SONDE_STOP_READ_FAULT);
	pc = code_pc(pc);
	if (!pc)
		return walk_stop(w, is_linked(w) ? SONDE_STOP_COMPLETE : SONDE_STOP_NO_ROW);
	frame = pc | SONDE_FRAME_RETURN;
	cached = walk_cached(w, frame);
	if (cached->frame != frame || cached->serial != w->serial) { /* else it was a return address before */
		if (walk_find_mapping(w, pc - 1) || !walk_after_call(ref_of(w), pc))
			return walk_stop(w, SONDE_STOP_NO_ROW);
	}
	if (!is_trusted && !walk_is_link(w, pc))
		return walk_stop(w, SONDE_STOP_NO_ROW);
	w->sp = w->bp + 16;
	w->bp = bp;
	w->pc = pc;
	w->exact = 0;
	w->linked_frame = w->nr_frames;
	if (!WALK_SP_KNOWN)
		w->lost_sp_frame = w->nr_frames;
	return WALK_GOES_ON;
}

static __always_inline int walk_cfa(struct walk *w, const struct sonde_rule *rule, __u64 *ret_cfa)
{
	__u64 off = (__u64)(__s64)rule->cfa_off, word;

	if (is_sp_lost(w) && (rule->cfa_kind == SONDE_CFA_SP || rule->cfa_kind == SONDE_CFA_DEREF_SP))
		return walk_stop(w, SONDE_STOP_BAD_RULE);
	switch (rule->cfa_kind) {
	case SONDE_CFA_SP:
		*ret_cfa = w->sp + off;
		return WALK_GOES_ON;
	case SONDE_CFA_BP:
		*ret_cfa = w->bp + off;
		return WALK_GOES_ON;
	case SONDE_CFA_PLT:
		*ret_cfa = w->sp + off + ((w->pc & 15) >= rule->cfa_reg ? 8 : 0);
		return WALK_GOES_ON;
	case SONDE_CFA_REG:
		if (w->exact != WALK_EXACT && !(w->follows_bx == WALK_BX_KNOWN && rule->cfa_reg == WALK_REG_BX))
			return walk_stop(w, SONDE_STOP_BAD_RULE);
		walk_note_reg(w, rule->cfa_reg);
		*ret_cfa = w->regs[rule->cfa_reg & (WALK_NR_REGS - 1)] + off;
		return WALK_GOES_ON;
	case SONDE_CFA_DEREF_SP:
	case SONDE_CFA_DEREF_BP:
		if (walk_word(w, (rule->cfa_kind == SONDE_CFA_DEREF_SP ? w->sp : w->bp) + off, &word))
			return walk_stop(w, SONDE_STOP_READ_FAULT);
		*ret_cfa = word + (__u64)(__s64)rule->cfa_add;
		return WALK_GOES_ON;
	}
	return walk_stop(w, SONDE_STOP_TABLE);
}

/* 0, or -1: could not be read. */
static __always_inline int walk_restore_bx(struct walk *w, __u64 cfa, const struct sonde_rule *rule)
{
	w->follows_bx = WALK_BX_LOST;
	if (rule->rbx_off == SONDE_RBX_LOST)
		return 0;
	if (walk_word(w, cfa + (__u64)(__s64)rule->rbx_off, &w->regs[WALK_REG_BX]))
		return -1;
	w->follows_bx = WALK_BX_KNOWN;
	return 0;
}

static __always_inline int walk_needs_bx(const struct walk *w, const struct sonde_rule *rule)
{
#ifdef SONDE_ARM64
	return 0;
#else
	return rule->cfa_kind == SONDE_CFA_REG && rule->cfa_reg == WALK_REG_BX && w->exact != WALK_EXACT;
#endif
}

/* The return address of a frame. */
static __always_inline int walk_return_address(struct walk *w, const struct sonde_rule *rule, __u64 cfa, __u64 *ret_pc)
{
	if (rule->ra_kind == SONDE_RA_REG) {
		if (w->exact != WALK_EXACT)
			return walk_stop(w, SONDE_STOP_BAD_RULE);
		walk_note_reg(w, rule->ra_off);
		*ret_pc = w->regs[rule->ra_off & (WALK_NR_REGS - 1)];
	} else if (walk_word(w, cfa + (__u64)(__s64)rule->ra_off, ret_pc)) {
		return walk_stop(w, SONDE_STOP_READ_FAULT);
	}
	*ret_pc = code_pc(*ret_pc);
	return WALK_GOES_ON;
}

static __always_inline int walk_rule(struct walk *w, const struct sonde_rule *rule)
{
	__u64 cfa, pc, bp = w->bp;

	if (walk_needs_bx(w, rule) && !walk_again_with_bx(ref_of(w)))
		return WALK_GOES_ON;
	if (walk_cfa(w, rule, &cfa))
		return WALK_ENDED;
	if (cfa <= w->sp && !(cfa == w->sp && rule->ra_kind == SONDE_RA_REG)) /* a leaf may have no frame at all */
		return walk_stop(w, SONDE_STOP_NO_PROGRESS);
	if (rule->bp_kind == SONDE_BP_CFA || rule->bp_kind == SONDE_BP_BP) {
		if (walk_word(w, (rule->bp_kind == SONDE_BP_CFA ? cfa : w->bp) + (__u64)(__s64)rule->bp_off, &bp))
			return walk_stop(w, SONDE_STOP_READ_FAULT);
	} else if (rule->bp_kind == SONDE_BP_UNDEFINED) {
		bp = 0;
	}
	if (walk_return_address(w, rule, cfa, &pc))
		return WALK_ENDED;
	if (w->follows_bx && rule->rbx_off && walk_restore_bx(w, cfa, rule))
		return walk_stop(w, SONDE_STOP_READ_FAULT);
	if (!pc)
		return walk_stop(w, SONDE_STOP_COMPLETE);
	w->pc = pc;
	w->sp = cfa;
	w->bp = bp;
	w->exact = 0;
	return WALK_GOES_ON;
}

#include "walk_go.h"

/* Moves from `frame`, the current one, to its caller. */
static __always_inline int walk_caller(struct walk *w, __u64 frame)
{
	const struct sonde_rule *rule;
	__u32 number;

	if (w->compat)
		return walk_stop(w, SONDE_STOP_COMPAT);
	if (!w->process_pos)
		return walk_stop(w, SONDE_STOP_NO_PROCESS);
	number = walk_lookup(w, frame);
	if (number >= SONDE_MAX_RULES) {
		if (number == WALK_NOT_LOADED)
			return walk_stop(w, SONDE_STOP_NOT_LOADED);
		if (number == WALK_NO_MAPPING) {
			w->nr_frames -= !w->exact; /* what leads to no code was no return address */
			return walk_stop(w, SONDE_STOP_NO_MAPPING);
		}
		return walk_frame_pointer(ref_of(w), 1);
	}
	rule = rule_at(w, number);
	if (!rule)
		return walk_stop(w, SONDE_STOP_TABLE);
	if (rule->kind == SONDE_RULE_KIND_STEP)
		return walk_rule(w, rule);
	if (rule->kind == SONDE_RULE_KIND_NONE)
		return walk_frame_pointer(ref_of(w), 0);
	if (rule->kind == SONDE_RULE_KIND_WIDE)
		return walk_frame_pointer(ref_of(w), 1);
	if (rule->kind == SONDE_RULE_KIND_END)
		return walk_stop(w, SONDE_STOP_COMPLETE);
	if (rule->kind == SONDE_RULE_KIND_SIGNAL)
		return walk_signal(ref_of(w));
	if (rule->kind == SONDE_RULE_KIND_SWITCH)
		return walk_switch(ref_of(w), number);
	return walk_stop(w, SONDE_STOP_BAD_RULE);
}

/* To be called when the registers and the process stand in the walk, before its first turn. */
static __always_inline void walk_enter(struct walk *w)
{
	w->mapping.start_pc = w->mapping.end_pc = 0;
	w->block_limit = 0;
	w->nr_frames = 0;
	w->linked_frame = w->lost_sp_frame = ~0u;
	w->nr_signals = 0;
	w->nr_switches = 0;
	w->go_in_scheduler = 0;
	w->go_g0_sp = 0;
	w->exact = 1;
	w->stop = SONDE_STOP_DEPTH; /* unless the walk says otherwise */
	walk_note_begin(w);
	walk_begin(w);
}

/* One turn of the walk: takes the current frame down into frames[SONDE_MAX_USER_FRAMES], then moves to its caller. */
static __always_inline int walk_step(struct walk *w, __u64 *frames)
{
	__u64 frame = w->exact ? w->pc : w->pc | SONDE_FRAME_RETURN;
	__u32 i = w->nr_frames, slot = sonde_frame_slot(i) & (SONDE_MAX_USER_FRAMES - 1);

	if (i >= SONDE_MAX_WALKED_FRAMES)
		return walk_stop(w, SONDE_STOP_DEPTH);
	frames[slot] = frame;
	w->sps[slot] = w->sp;
	w->nr_frames = i + 1;
	if (i < SONDE_LEAF_FRAMES)
		w->hash = hash_step(w->hash, frame);
	return walk_caller(w, frame);
}

/* The turns that a walk takes at most: twice, when it has to begin again. */
#define WALK_MAX_TURNS (2 * SONDE_MAX_WALKED_FRAMES)

/* To be called after its last turn: the hash of the frames that are kept and of what the walk ended with. Recursions of different depth that are cut are one stack. */
static __always_inline __u64 walk_hash(const struct walk *w, const __u64 *frames)
{
	__u32 nr = w->nr_frames > SONDE_LEAF_FRAMES ? w->nr_frames - SONDE_LEAF_FRAMES : 0;
	__u64 hash = w->hash;

	for (__u32 i = 0; i < SONDE_ROOT_FRAMES && i < nr; i++)
		hash = hash_step(hash, frames[SONDE_LEAF_FRAMES + ((w->nr_frames - 1 - i) & (SONDE_ROOT_FRAMES - 1))]);
	return hash_step(hash, w->stop);
}

/* May user space come farther than the kernel did? */
static __always_inline int is_early(enum sonde_stop stop)
{
	return stop == SONDE_STOP_NO_PROCESS || stop == SONDE_STOP_NO_MAPPING || stop == SONDE_STOP_NOT_LOADED;
}
