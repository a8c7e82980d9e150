/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the walk knows of a thread while it goes up its stack. Compiles for BPF and for the host: whoever includes the walk gives, before,
 * the three accessors
 *
 *   const __u32 *chunk_at(const struct walk *w, __u32 pos)                   the words of the chunk that pos lies in, or NULL
 *   const struct sonde_rule *rule_at(const struct walk *w, __u32 number)     or NULL
 *   long read_user(struct walk *w, void *to, __u32 size, __u64 from)         0, or not 0 when not all of it can be read; counted in
 *   nr_reads where somebody reads the clock
 *   __u64 user_tls_base(const struct walk *w)                                the thread pointer (x86-64: fs base); 0: not known
 *
 * and, where the kernel's uretprobes may have put return addresses aside, WALK_PUT_ASIDE and
 *   __u64 user_return(const struct walk *w)                                  that of the frame whose caller the walk stands at; 0: it was
 *   not
 *
 * and WALK_FUNCTION, the storage class of the larger steps: for BPF they are global functions, which the verifier proves once each and not
 * once per way to them (210,000 instructions that were looked at became 6,000). */
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

/* Code without rows may be written anew at any time, without a word to anybody: what it said of a frame holds as long as the lines of
 * memory that were looked at are the same. */
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
	__u32 found; /* EMULATE_FOUND or 0 */
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

/* What is known of the registers before an instruction that the function comes to, see walk/emulate_x86.h. */
struct walk_emulate_state {
	__u64 pc;
	__s64 sp;         /* bytes above sp at the begin, or above rbp: see is_from_bp */
	__s64 bp;         /* likewise, what it points to or was loaded from: see bp_is */
	__s64 saved_bp;   /* likewise, where this code itself has put rbp, or EMULATE_NOT_SAVED */
	__s64 held_ret;   /* likewise, where what is in the register `held` was popped from */
	__u64 lines[2];   /* as in struct walk_code, of the way up to here */
	__u8 is_sp_known;
	__u8 is_from_bp;
	__u8 bp_is;       /* enum walk_emulate_bp */
	__u8 has_raised;  /* the instruction before gave up a part of the stack */
	__u8 is_unsure;   /* something was pushed behind a call */
	__u8 has_left;    /* jumped when it had given up its frame and restored rbp */
	__u8 is_behind_call; /* and nothing of the stack was given up since */
	__u8 has_jumped;  /* behind a call, which perhaps does not return */
	__u8 held; /* number of the register that was popped last, and since then only rsp was written; EMULATE_HELD_AGAIN: then it was
		      pushed again; EMULATE_HELD_NONE */
};

enum walk_emulate_bp {
	EMULATE_BP_KEPT,  /* as at the begin */
	EMULATE_BP_FRAME, /* points into the stack */
	EMULATE_BP_SLOT,  /* was loaded from the stack */
	EMULATE_BP_LINK,  /* was loaded from where it pointed to at the begin */
	EMULATE_BP_ANY,
};

#define EMULATE_EXITS 16 /* a power of two */
#define EMULATE_SEEN_BITS 8192

struct walk_emulate {
	struct walk_emulate_state now;
	struct walk_emulate_state exits[EMULATE_EXITS]; /* where conditional jumps lead that were not taken; pc 0: none */
	__u64 exit_bits;                            /* a bit for the low bits of each that was ever there */
	__u64 looked[2];                            /* as in struct walk_code, of all that was read */
	__u64 far_pc;                               /* likewise; 0: nothing far away was */
	__u64 line[WALK_LINE_BYTES / 8];
	__u64 seen[2][EMULATE_SEEN_BITS / 64];        /* a bit for each instruction, by the low bits of its address: by is_unsure */
	__u32 result;
	__s64 deepest;                     /* what sp was, see emulate_fits */
	__u32 op;                          /* of the instruction; 0x100, 0x200, 0x300 and up: behind 0f, 0f 38, 0f 3a */
	__s32 disp, imm;
	__u8 code[16];
	__u32 at;                          /* of the next byte in it */
	__u64 farthest;                    /* of the exits, how far it leads */
	__u32 picked;                      /* of the exits; EMULATE_EXITS: none */
	__u8 rex, modrm, sib, has_modrm, is_vector, is_short;
	__u8 has_called;
};

/* What has decided a walk so far, see walk/stack_cache.h. */
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
	__u32 linked_frame; /* the number of the last frame that a frame pointer led to: only there a zero proves the root, elsewhere bp may
			       be any register */
	__u32 lost_sp_frame;               /* arm64: likewise, of the last frame whose sp is not known */
	__u32 go_in_scheduler;             /* Go's scheduler is among the frames so far */
	__u32 pad;
	__u64 go_g0_sp;                    /* sp of the last runtime.cgocallback's frame on g0; 0: none so far */
	__u64 nr_walks;                    /* with this one */
	__u32 nr_looks;                    /* instructions that were followed, lines hashed and words between sp and rbp asked */
	__u32 number;                      /* of this walk, see WALK_REF */
	__u64 event_ns; /* when the event was that the walk is of; for whoever drives it and reads the clock, see walk/walk_clock.h */
	__u32 clock_cost;                  /* likewise: as soon as the walk has cost so much it is read */
	__u32 nr_reads;                    /* likewise: of user memory */
	struct walk_start start;
	struct walk_trail trail;
	struct walk_emulate emulation;
	__u64 block[WALK_BLOCK_BYTES / 8];
	struct walk_cached cache[WALK_CACHE_ENTRIES]; /* by frame; outlives the walk */
	struct walk_code codes[WALK_CODES];           /* likewise */
	__u64 sps[SONDE_MAX_USER_FRAMES]; /* of the frames, as sonde_frame_slot has them: where a runtime's frames belong is told by them */
};

#define WALK_GOES_ON 0
#define WALK_ENDED 1

/* How the larger steps are told which walk: by its number where WALK_BY_NUMBER is defined. Then whoever includes this gives walk_of, NULL:
 * there is no such walk. */
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

/* What the hashes of a process's stacks begin with. `life`: of one whose generation is not known, 0: something that no other that has had
 * its tgid has; else 0. Of known ones no two begin alike: each step is one to one in its word. */
static __always_inline __u64 hash_process(__u64 initial_stack, __u32 tgid, __u32 generation, __u64 life)
{
	return hash_step(hash_step(hash_step(initial_stack, (__u64)generation << 32 | tgid), life), initial_stack);
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

/* A frame asks for rbx, which the way up to here did not keep: go it once more, and keep it. So rare that all others need not pay for it.
 */
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
