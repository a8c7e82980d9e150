/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The native walk: from one frame of a user stack to its caller, by the rows of abi/unwind.h, else by validated frame pointers.
 * Compiles for BPF and for the host: whoever includes this gives, before, the three accessors
 *
 *   const __u32 *chunk_at(const struct walk *w, __u32 pos)                   the words of the chunk that pos lies in, or NULL
 *   const struct sonde_rule *rule_at(const struct walk *w, __u32 number)     or NULL
 *   long read_user(struct walk *w, void *to, __u32 size, __u64 from)         0, or not 0 when not all of it can be read; counted in nr_reads where somebody reads the clock
 *   __u64 user_tls_base(const struct walk *w)                                the thread pointer (x86-64: fs base); 0: not known
 *
 * and, where the kernel's uretprobes may have put return addresses aside, WALK_PUT_ASIDE and
 *   __u64 user_return(const struct walk *w)                                  that of the frame whose caller the walk stands at; 0: it was not
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
#define WALK_CLOCK_COST 1024 /* in looks: when the clock is read first, by who reads it; then twice as often */
#define WALK_MAX_LOOKS 16384 /* at code without rows, see struct walk: some 0.07 us each, and a frame takes 1,440 at most */

/* DWARF register numbers: psABI figure 3.36; "DWARF for the Arm 64-bit Architecture" section 4.1. */
#ifdef SONDE_ARM64
#define WALK_NR_REGS 32
#define WALK_REG_BX 19 /* no rule says where it is, see walk_needs_bx */
#define WALK_REG_BP 29
#define WALK_SP_KNOWN 0 /* by a frame record: it stands at the low end of its frame, the caller's sp is somewhere above */
#define WALK_RETURN_BYTES 0 /* of stack that a call takes */
#define WALK_REG_RA 30
#define WALK_REG_SP 31
#else
#define WALK_NR_REGS 16
#define WALK_REG_BX 3
#define WALK_SP_KNOWN 1 /* behind saved rbp and return address */
#define WALK_RETURN_BYTES 8
#define WALK_REG_BP 6
#define WALK_REG_SP 7
#endif

/* What the walk does at a frame, beside the numbers of rules. */
#define WALK_NO_TABLE SONDE_MAX_RULES
#define WALK_NO_MAPPING (SONDE_MAX_RULES + 1)
#define WALK_NOT_LOADED (SONDE_MAX_RULES + 2)
#define WALK_COMPILED (2 * SONDE_MAX_RULES) /* and the number of the loop's rule */
#define WALK_ROOT (SONDE_MAX_RULES + 3)    /* no call leads there: what a stack that was made by hand begins with */
#define WALK_NO_CALL (SONDE_MAX_RULES + 4) /* no call leads there, so it is no return address */
#define WALK_UNPROVED (1u << 31)           /* beside rules: the code could not be read, so it is not remembered */

/* Frames come again and again: what was found for one is remembered. */
struct walk_cached {
	__u64 frame;  /* as it stands in the stack, with SONDE_FRAME_RETURN */
	__u32 serial; /* of the struct sonde_process that it was found with */
	__u32 rule;   /* or WALK_NO_TABLE, WALK_NOT_LOADED, WALK_ROOT, WALK_NO_CALL, WALK_COMPILED; with WALK_LINK what walk_link_of says */
};

/* Code without rows may be written anew at any time, without a word to anybody: what it said of a frame holds as long as the lines of memory that were looked at are the same. */
#define WALK_CODE_SHIFT 10
#define WALK_CODES (1u << WALK_CODE_SHIFT)
#define WALK_LINE_BYTES 128
#define WALK_LINES_BEFORE 16 /* that of the frame's pc, of 64 */

struct walk_code {
	__u64 frame, hash;
	__u64 lines[2]; /* a bit for each: around the frame's pc, and around far_pc; none where code does not change */
	__u64 far_pc;
	__u64 walk;  /* the last one that saw the lines to be the same: for its thread, which stands still, they are */
	__u32 serial;
	__u32 found; /* AHEAD_FOUND or 0 */
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
	__s64 held_ret;   /* likewise, where what is in the register `held` was popped from */
	__u64 lines[2];   /* as in struct walk_code, of the way up to here */
	__u8 is_sp_known;
	__u8 is_from_bp;
	__u8 bp_is;       /* enum walk_ahead_bp */
	__u8 has_raised;  /* the instruction before gave up a part of the stack */
	__u8 is_unsure;   /* something was pushed behind a call */
	__u8 has_left;    /* jumped when it had given up its frame and restored rbp */
	__u8 is_behind_call; /* and nothing of the stack was given up since */
	__u8 has_jumped;  /* behind a call, which perhaps does not return */
	__u8 held;        /* number of the register that was popped last, and since then only rsp was written; AHEAD_HELD_AGAIN: then it was pushed again; AHEAD_HELD_NONE */
};

enum walk_ahead_bp {
	AHEAD_BP_KEPT,  /* as at the begin */
	AHEAD_BP_FRAME, /* points into the stack */
	AHEAD_BP_SLOT,  /* was loaded from the stack */
	AHEAD_BP_LINK,  /* was loaded from where it pointed to at the begin */
	AHEAD_BP_ANY,
};

#define AHEAD_EXITS 16 /* a power of two */
#define AHEAD_SEEN_BITS 8192

struct walk_ahead {
	struct walk_ahead_state now;
	struct walk_ahead_state exits[AHEAD_EXITS]; /* where conditional jumps lead that were not taken; pc 0: none */
	__u64 exit_bits;                            /* a bit for the low bits of each that was ever there */
	__u64 looked[2];                            /* as in struct walk_code, of all that was read */
	__u64 far_pc;                               /* likewise; 0: nothing far away was */
	__u64 line[WALK_LINE_BYTES / 8];
	__u64 seen[2][AHEAD_SEEN_BITS / 64];        /* a bit for each instruction, by the low bits of its address: by is_unsure */
	__u32 result;
	__s64 deepest;                     /* what sp was, see ahead_fits */
	__u32 op;                          /* of the instruction; 0x100, 0x200, 0x300 and up: behind 0f, 0f 38, 0f 3a */
	__s32 disp, imm;
	__u8 code[16];
	__u32 at;                          /* of the next byte in it */
	__u64 farthest;                    /* of the exits, how far it leads */
	__u32 picked;                      /* of the exits; AHEAD_EXITS: none */
	__u8 rex, modrm, sib, has_modrm, is_vector, is_short;
	__u8 has_called;
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
	__u64 nr_walks;                    /* with this one */
	__u32 nr_looks;                    /* instructions that were followed, lines hashed and words between sp and rbp asked */
	__u32 number;                      /* of this walk, see WALK_REF */
	__u64 event_ns;                    /* when the event was that the walk is of; for whoever drives it and reads the clock, see lib/walk_clock.h */
	__u32 clock_cost;                  /* likewise: as soon as the walk has cost so much it is read */
	__u32 nr_reads;                    /* likewise: of user memory */
	struct walk_start start;
	struct walk_trail trail;
	struct walk_ahead ahead;
	__u64 block[WALK_BLOCK_BYTES / 8];
	struct walk_cached cache[WALK_CACHE_ENTRIES]; /* by frame; outlives the walk */
	struct walk_code codes[WALK_CODES];           /* likewise */
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

/* What the hashes of a process's stacks begin with. `life`: of one whose generation is not known, 0: something that no other that has had its tgid has; else 0. Of known ones no two begin alike: each step is
 * one to one in its word. */
static __always_inline __u64 hash_process(__u64 seed, __u32 tgid, __u32 generation, __u64 life)
{
	return hash_step(hash_step(hash_step(seed, (__u64)generation << 32 | tgid), life), seed);
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

/* Where a word of the stack lies in the block, into which it is read where it is not. 0 or -1. */
static __always_inline int walk_locate(struct walk *w, __u64 at, __u64 *ret_off)
{
	*ret_off = at - w->block_start;
	if (*ret_off < w->block_limit)
		return 0;
	*ret_off = 0;
	return walk_fill(ref_of(w), at);
}

static __always_inline __u64 walk_located(const struct walk *w, __u64 off)
{
	return w->block[off / 8 & (WALK_BLOCK_BYTES / 8 - 1)];
}

/* A word of the stack. 0 or -1. */
static __always_inline int walk_peek(struct walk *w, __u64 at, __u64 *ret_word)
{
	__u64 off;

	if (walk_locate(w, at, &off))
		return -1;
	if (off & 7) { /* a stack that is not aligned: rare enough to read it by itself */
		walk_note_lost(w);
		return read_user(w, ret_word, sizeof(*ret_word), at) ? -1 : 0;
	}
	*ret_word = walk_located(w, off);
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

/* The number of the rule at pc, or what there is instead. */
WALK_FUNCTION __u32 walk_find(WALK_REF ref, __u64 pc)
{
	struct walk *w = walk_of(ref);

	if (!w || walk_find_mapping(w, pc))
		return WALK_NO_MAPPING;
	if (w->mapping.nr_blocks)
		return walk_find_rule(w, pc - w->mapping.base_pc);
	if (w->mapping.block_shift == SONDE_COMPILED)
		return WALK_COMPILED + (w->mapping.index_pos & (SONDE_MAX_RULES - 1));
	return w->mapping.block_shift == SONDE_NOT_LOADED ? WALK_NOT_LOADED : WALK_NO_TABLE;
}

WALK_FUNCTION int walk_after_call(WALK_REF ref, __u64 pc);
WALK_FUNCTION int walk_is_sigreturn(WALK_REF ref);
WALK_FUNCTION int walk_ends_process(WALK_REF ref);

/* What is at w->pc, a return address that stands behind no call, where `found` is the rule before it: rules end stacks and lead out of handlers without a call. A stack that was made by hand begins with the
 * address of code that ends the process (makecontext's __start_context). Else it is a word that somebody else has left there. */
static __always_inline __u32 walk_uncalled(struct walk *w, __u32 found)
{
	const struct sonde_rule *rule = found < SONDE_MAX_RULES ? rule_at(w, found) : 0;
	__u64 code;

	if (rule && (rule->kind == SONDE_RULE_KIND_END || rule->kind == SONDE_RULE_KIND_SIGNAL))
		return found;
	if (read_user(w, &code, sizeof(code), w->pc - sizeof(code))) /* then it proves nothing */
		return WALK_UNPROVED | found;
	if (walk_is_sigreturn(ref_of(w)))
		return found;
	return walk_ends_process(ref_of(w)) ? WALK_ROOT : WALK_NO_CALL;
}

/* Finds what to do at a frame that the cache does not know, and puts it there. */
WALK_FUNCTION __u32 walk_search(WALK_REF ref, __u64 frame)
{
	struct walk *w = walk_of(ref);
	__u64 pc = frame & ~SONDE_FRAME_RETURN;
	__u32 is_return = frame >> 63, rule; /* which may be the first byte of the next function */
	struct walk_cached *cached;

	if (!w)
		return WALK_NO_MAPPING;
	rule = walk_find(ref_of(w), pc - is_return);
	if (rule == WALK_NO_MAPPING)
		return rule;
	if (is_return && !walk_after_call(ref_of(w), pc))
		rule = walk_uncalled(w, rule);
	if (rule & WALK_UNPROVED)
		return rule & ~WALK_UNPROVED;
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

/* A frame in a file that has rows: its code is not written to. */
static __always_inline int is_fixed(struct walk *w, __u64 frame)
{
	struct walk_cached *cached = walk_cached(w, frame);
	__u32 rule = cached->rule;

	if (cached->frame != frame || cached->serial != w->serial)
		rule = walk_find(ref_of(w), (frame & ~SONDE_FRAME_RETURN) - (frame >> 63));
	return rule < SONDE_MAX_RULES;
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
 *                                 pointer leads there; AHEAD_WRONG: it would go to what is no return address, or cannot be read; AHEAD_UNKNOWN
 *   walk_is_outermost(ref)        may a function in code without rows, behind its call, be the outermost one, which says so by a zero for its frame pointer?
 *   walk_signal(ref)              from the code behind a handler to what was interrupted
 *   walk_is_sigreturn(ref)        is pc that code? Told by its instructions, where no row tells
 *   walk_ends_process(ref)        is the last thing that the code at pc does a call that does not return?
 *   walk_link_of(ref, ret)        what the call before `ret` leads to: the low word of the address of a function that keeps a frame pointer, in more than 32 bits;
 *                                 WALK_LINK_NONE: one that does not; WALK_LINK_ANY: not to be told
 *   is_stack_top(cfa)             may a return address of 0 stand below?
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
#define AHEAD_FOUND (1u << 0)
#define AHEAD_BY_BP (1u << 1)    /* counted from rbp, else from sp */
#define AHEAD_RET_SHIFT 2        /* where the return address is, in words */
#define AHEAD_SLOT_SHIFT 16      /* how many words below it the caller's rbp is; 0: in rbp */
#define AHEAD_OFF_MASK 0x3fffu
#define AHEAD_JUMPED (1u << 30)  /* by a way that jumps behind a call */
#define AHEAD_NO_CODE (1u << 31) /* without AHEAD_FOUND: the code at pc could not be read */
#define AHEAD_IF_LINKED (1u << 31) /* with AHEAD_FOUND: so it is if rbp points to where the caller's is found, else that is not known */

WALK_FUNCTION int walk_after_call(WALK_REF ref, __u64 pc);

/* Does a call lead there? */
WALK_FUNCTION int walk_is_return(WALK_REF ref, __u64 pc)
{
	struct walk *w = walk_of(ref);

	return w && walk_find(ref_of(w), pc - 1) != WALK_NO_MAPPING && walk_after_call(ref_of(w), pc);
}

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
		if (is_fixed(w, ret | SONDE_FRAME_RETURN)) {
			cached->frame = key;
			cached->serial = w->serial;
			cached->rule = (__u32)link;
		}
	} else {
		link = cached->rule;
	}
	return link == WALK_LINK_ANY || (__u32)w->pc - (__u32)link < WALK_MAX_LEAF_BYTES;
}

#define WALK_FEW_WORDS 16
#define WALK_MAX_SKIPPED_BYTES (8 * WALK_FEW_WORDS * 8)

/* May the word of the stack be the return address of the function at pc, which then has not set its frame pointer? `linked` bytes before pc begins the function that the frame
 * pointer says pc to be in: one that begins nearer, or nobody knows where, may be it as well. */
WALK_FUNCTION int walk_may_return(WALK_REF ref, __u64 at, __u32 linked)
{
	struct walk *w = walk_of(ref);
	__u64 word, link;
	__u32 distance;

	if (w)
		w->nr_looks++;
	if (!w || walk_peek(w, at, &word) || walk_find_mapping(w, word - 1) || !walk_after_call(ref_of(w), word)) /* not walk_is_return: 5.10 to 6.18 allow 8 frames */
		return 0;
	distance = walk_called_distance(ref_of(w), word, w->pc);
	if (distance == WALK_MAX_LEAF_BYTES)
		return linked == WALK_MAX_LEAF_BYTES;
	link = walk_link_of(ref_of(w), word);
	return distance <= linked && (link == WALK_LINK_ANY || link == WALK_LINK_NONE); /* else it has set it, and this is what an earlier call left there */
}

/* The same of the words from `at` on, below the frame pointer. */
WALK_FUNCTION int walk_few_may_return(WALK_REF ref, __u64 at, __u32 linked)
{
	struct walk *w = walk_of(ref);

	for (__u32 i = 0; w && i < WALK_FEW_WORDS; i++) {
		if (at + i * 8 < w->bp && walk_may_return(ref_of(w), at + i * 8, linked))
			return 1;
	}
	return 0;
}

/* A frame pointer that the current function has not set is an older function's, and what was called since would be left out. Its own return address then stands below it. */
WALK_FUNCTION int walk_skips(WALK_REF ref)
{
	struct walk *w = walk_of(ref);
	__u64 ret;
	__u32 linked;

	if (!w || walk_peek(w, w->bp + 8, &ret))
		return 0;
	linked = walk_called_distance(ref_of(w), ret, w->pc);
	for (__u32 off = 0; off < WALK_MAX_SKIPPED_BYTES && w->sp + off < w->bp; off += WALK_FEW_WORDS * 8) {
		if (walk_few_may_return(ref_of(w), w->sp + off, linked))
			return 1;
	}
	return 0;
}

#include "walk_frame_pointer.h"

static __always_inline int walk_cfa(struct walk *w, const struct sonde_rule *rule, __u64 *ret_cfa)
{
	__u64 off = (__u64)(__s64)rule->cfa_off, word;

	if (is_sp_lost(w) && (rule->cfa_kind == SONDE_CFA_SP || rule->cfa_kind == SONDE_CFA_DEREF_SP || rule->cfa_kind == SONDE_CFA_DEREF_TWICE))
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
	case SONDE_CFA_DEREF_TWICE:
		if (walk_word(w, w->sp + off, &word) || walk_word(w, word + rule->cfa_reg, &word))
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

/* OCaml's functions call C on another stack, which may lie above theirs: what runs there says so by calling its frame a signal's; they, by keeping their stack in rbx. */
static __always_inline int walk_may_leave_stack(const struct sonde_rule *rule)
{
	return rule->is_signal || rule->cfa_kind == SONDE_CFA_REG;
}

static __always_inline int walk_rule(struct walk *w, const struct sonde_rule *rule)
{
	__u64 cfa, pc, bp = w->bp;

	if (walk_needs_bx(w, rule) && !walk_again_with_bx(ref_of(w)))
		return WALK_GOES_ON;
	if (walk_cfa(w, rule, &cfa))
		return WALK_ENDED;
	if (cfa <= w->sp && !walk_may_leave_stack(rule) && !(cfa == w->sp && rule->ra_kind == SONDE_RA_REG)) /* a leaf may have no frame at all */
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
		return walk_stop(w, is_stack_top(cfa) ? SONDE_STOP_COMPLETE : SONDE_STOP_NO_CALL);
	w->pc = pc;
	w->sp = cfa;
	w->bp = bp;
	w->exact = rule->is_signal && !walk_after_call(ref_of(w), pc) ? WALK_EXACT_PC : WALK_RETURN;
	return WALK_GOES_ON;
}

#include "walk_go.h"

/* From code that an interpreter made, which runs on its loop's frame, to the loop's caller. Pieces of it that move sp for themselves find something else there, which is hardly ever a return address. */
WALK_FUNCTION int walk_compiled(WALK_REF ref, __u32 number)
{
	struct walk *w = walk_of(ref);
	const struct sonde_rule *rule;

	if (!w)
		return WALK_ENDED;
	rule = rule_at(w, number);
	if (!rule || rule->kind != SONDE_RULE_KIND_STEP)
		return walk_stop(w, SONDE_STOP_TABLE);
	return walk_rule(w, rule); /* a return address or not: see walk_uncalled */
}

#include "walk_no_caller.h"

/* Moves from `frame`, the current one, to its caller. */
static __always_inline int walk_caller(struct walk *w, __u64 frame)
{
	const struct sonde_rule *rule;
	int is_trusted = 1;
	__u32 number;

	if (w->compat)
		return walk_stop(w, SONDE_STOP_COMPAT);
	number = walk_lookup(w, frame);
	if (number >= SONDE_MAX_RULES) {
		if (number == WALK_NOT_LOADED)
			return walk_stop(w, SONDE_STOP_NOT_LOADED);
		if (number >= WALK_COMPILED)
			return walk_compiled(ref_of(w), number - WALK_COMPILED);
		if (number > WALK_NOT_LOADED || number == WALK_NO_MAPPING)
			return walk_no_caller(ref_of(w), number);
	} else {
		rule = rule_at(w, number);
		if (!rule)
			return walk_stop(w, SONDE_STOP_TABLE);
		if (rule->kind == SONDE_RULE_KIND_STEP)
			return walk_rule(w, rule);
		if (rule->kind == SONDE_RULE_KIND_END)
			return walk_stop(w, SONDE_STOP_COMPLETE);
		if (rule->kind == SONDE_RULE_KIND_SIGNAL)
			return walk_signal(ref_of(w));
		if (rule->kind == SONDE_RULE_KIND_SWITCH)
			return walk_switch(ref_of(w), number);
		if (rule->kind != SONDE_RULE_KIND_NONE && rule->kind != SONDE_RULE_KIND_WIDE)
			return walk_stop(w, SONDE_STOP_BAD_RULE);
		is_trusted = rule->kind == SONDE_RULE_KIND_WIDE;
	}
	return walk_frame_pointer(w, is_trusted);
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
	w->nr_walks++;
	w->nr_looks = 0;
	w->nr_reads = 0;
	w->clock_cost = WALK_CLOCK_COST;
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

	if (!w->process_pos)
		return walk_stop(w, SONDE_STOP_NO_PROCESS); /* and no frame: nobody knows here when its pc comes to mean another file */
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
