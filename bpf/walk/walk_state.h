/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* walk_state: what the walk knows about a thread while it goes up the thread's stack. Compiles for BPF and for the host. The includer
 * defines these accessors first:
 *
 *   const __u32 *chunk_at(const struct walk *w, __u32 pos)
 *       the words of the chunk that pos is in, or NULL
 *   const struct sonde_rule *rule_at(const struct walk *w, __u32 number)
 *       or NULL
 *   long read_user(struct walk *w, void *to, __u32 size, __u64 from)
 *       0, or not 0 if not all of it can be read; counts in nr_reads where the clock is used
 *   __u64 user_tls_base(const struct walk *w)
 *       the thread pointer (x86-64: fs base); 0: not known
 *
 * Where the kernel's uretprobes may have replaced return addresses, it also defines WALK_PUT_ASIDE and
 *
 *   __u64 user_return(const struct walk *w)
 *       the original return address of the frame whose caller the walk is at; 0: not replaced
 *
 * It also defines WALK_FUNCTION, the storage class of the larger steps. For BPF they are global functions: the verifier checks each once,
 * not once per path to it (6,000 verified instructions instead of 210,000). */
#pragma once
#include "../abi/record.h"
#include "../abi/unwind.h"

#define WALK_BLOCK_BYTES 2048 /* measured best of 1, 2 and 4 KiB; less than a page, see walk_fill */
#define WALK_PAGE_BYTES 4096
#define WALK_CACHE_SHIFT 11
#define WALK_CACHE_ENTRIES (1u << WALK_CACHE_SHIFT)
#define WALK_MAX_FP_FRAME_BYTES (16u << 20) /* anything farther up is no frame pointer */
#define WALK_MAX_SWITCHES 1024 /* between Go's stacks */
#define WALK_MAX_SIGNALS 16 /* nested signal handlers; more means a stack that leads to itself */
#define WALK_CLOCK_COST 1024 /* in looks: when a driver with a clock reads it first; then twice as often */
#define WALK_MAX_LOOKS 16384 /* in code without rows, see struct walk: about 0.07 us each; a frame takes at most 1,440 */

/* DWARF register numbers: psABI figure 3.36; "DWARF for the Arm 64-bit Architecture" section 4.1. */
#ifdef SONDE_ARM64
#define WALK_NR_REGS 32
#define WALK_REG_BX 19 /* no rule says where it is saved, see walk_needs_bx */
#define WALK_REG_BP 29
/* A frame record is at the low end of its frame: the caller's sp is somewhere above it. */
#define WALK_SP_KNOWN 0
#define WALK_RETURN_BYTES 0 /* stack bytes that a call takes */
#define WALK_REG_RA 30
#define WALK_REG_SP 31
#else
#define WALK_NR_REGS 16
#define WALK_REG_BX 3
#define WALK_SP_KNOWN 1 /* just above the saved rbp and the return address */
#define WALK_RETURN_BYTES 8
#define WALK_REG_BP 6
#define WALK_REG_SP 7
#endif

/* What to do at a frame, besides the rule numbers. */
#define WALK_NO_TABLE SONDE_MAX_RULES
#define WALK_NO_MAPPING (SONDE_MAX_RULES + 1)
#define WALK_NOT_LOADED (SONDE_MAX_RULES + 2)
#define WALK_COMPILED (2 * SONDE_MAX_RULES) /* plus the number of the loop's rule */
#define WALK_ROOT (SONDE_MAX_RULES + 3)    /* no call before this address: the start of a stack that was set up by hand */
#define WALK_NO_CALL (SONDE_MAX_RULES + 4) /* no call before this address, so it is not a return address */
#define WALK_OWNED (3 * SONDE_MAX_RULES) /* plus the enum sonde_runtime whose code it is */
#define WALK_UNPROVED (1u << 31)           /* a flag on a rule: the code could not be read, so the rule is not cached */

/* The same frames occur again and again: a cache of what was found for a frame. */
struct walk_cached {
	__u64 frame;  /* as on the stack, with SONDE_FRAME_RETURN */
	__u32 serial; /* of the struct sonde_process that was used */
	/* Or WALK_NO_TABLE, WALK_NOT_LOADED, WALK_ROOT, WALK_NO_CALL, WALK_COMPILED, WALK_OWNED; with WALK_LINK the result of
	 * walk_link_of. */
	__u32 rule;
};

/* Code without rows may be rewritten at any time without notice. What it says about a frame holds as long as the lines of memory that were
 * read are unchanged. */
#define WALK_CODE_SHIFT 10
#define WALK_CODES (1u << WALK_CODE_SHIFT)
#define WALK_LINE_BYTES 128
#define WALK_LINES_BEFORE 16 /* the line of the frame's pc, of 64 */

struct walk_code {
	__u64 frame, hash;
	__u64 lines[2]; /* one bit per line: around the frame's pc, and around far_pc; none where code does not change */
	__u64 far_pc;
	__u64 walk;  /* the last walk that found the lines unchanged: its thread stands still, so they stay so in that walk */
	__u32 serial;
	__u32 found; /* EMULATE_FOUND or 0 */
	__u64 uses_bp; /* see walk_uses_bp */
};

/* The state when the walk last knew all registers: at the leaf, or where a signal interrupted. */
struct walk_start {
	__u64 pc, sp, bp, bx, hash;
	__u64 go_g0_sp;
	__u32 nr_frames, pad;
};

/* Is regs[WALK_REG_BX] followed through the frames, from the start on? */
enum walk_bx {
	WALK_BX_LEFT,  /* no */
	WALK_BX_KNOWN,
	WALK_BX_LOST,  /* yes, but no frame so far says where it is now; until a frame that saved it */
};

/* The kind of address in pc. */
enum walk_exact {
	WALK_RETURN,   /* a return address */
	WALK_EXACT,    /* an interrupted instruction; regs are valid */
	WALK_EXACT_PC, /* an interrupted instruction; only sp and bp of the registers are known */
};

/* What is known of the registers before an instruction of the function, see walk/emulate_x86.h. */
struct walk_emulate_state {
	__u64 pc;
	__s64 sp;         /* bytes above the initial sp, or above rbp: see is_from_bp */
	__s64 bp;         /* likewise, what rbp points to or was loaded from: see bp_is */
	__s64 saved_bp;   /* likewise, where this code saved rbp, or EMULATE_NOT_SAVED */
	__s64 held_ret;   /* likewise, where the value of the register `held` was popped from */
	__u64 lines[2];   /* as in struct walk_code, of the path so far */
	__u8 is_sp_known;
	__u8 is_from_bp;
	__u8 bp_is;       /* enum walk_emulate_bp */
	__u8 has_raised;  /* the previous instruction released stack */
	__u8 is_unsure;   /* something was pushed after a call */
	__u8 has_left;    /* jumped after it had released its frame and restored rbp */
	__u8 is_behind_call; /* and no stack was released since */
	__u8 has_jumped;  /* after a call that may not return */
	/* The register that was popped last, if only rsp was written since. EMULATE_HELD_AGAIN: it was pushed again. EMULATE_HELD_NONE. */
	__u8 held;
	__u8 has_dx;      /* the last change of sp that was a push or pop was one that popped rdx, from held_ret */
};

enum walk_emulate_bp {
	EMULATE_BP_KEPT,  /* as at the start */
	EMULATE_BP_FRAME, /* points into the stack */
	EMULATE_BP_SLOT,  /* was loaded from the stack */
	EMULATE_BP_LINK,  /* was loaded from where it pointed to at the start */
	EMULATE_BP_ANY,
};

#define EMULATE_EXITS 16 /* a power of two */
#define EMULATE_SEEN_BITS 8192

struct walk_emulate {
	struct walk_emulate_state now;
	struct walk_emulate_state exits[EMULATE_EXITS]; /* targets of conditional jumps that were not taken; pc 0: none */
	__u64 exit_bits;                            /* a bit for the low address bits of each target that was ever in exits */
	__u64 looked[2];                            /* as in struct walk_code, of all code that was read */
	__u64 far_pc;                               /* likewise; 0: no far code was read */
	__u64 line[WALK_LINE_BYTES / 8];
	__u64 seen[2][EMULATE_SEEN_BITS / 64];        /* one bit per instruction, by the low bits of its address; [1]: with is_unsure */
	__u32 result;
	__s64 deepest;                     /* lowest sp, see emulate_fits */
	__u32 op;                          /* of the instruction; 0x100, 0x200, 0x300 and up: behind 0f, 0f 38, 0f 3a */
	__s32 disp, imm;
	__u8 code[16];
	__u32 at;                          /* index of the next byte in code */
	__u64 farthest;                    /* distance of the farthest exit */
	__u32 picked;                      /* index of an exit; EMULATE_EXITS: none */
	__u8 rex, modrm, sib, has_modrm, is_vector, is_short;
	__u8 vvvv;                         /* the other register of a vector instruction */
	__u8 returns_in_dx;                /* the code may also return by `pop %rdx; ...; jmp *reg`, as HotSpot's does to handlers */
	__u8 has_called;
	__u8 uses_bp;                      /* memory was addressed by rbp as it was at the start; of what emulate_find looked at last */
};

/* What decided the walk so far, see walk/stack_cache.h. */
#define WALK_TRAIL_WORDS 64 /* a power of two */
struct walk_trail {
	__u64 at[WALK_TRAIL_WORDS], words[WALK_TRAIL_WORDS]; /* addresses and words of the stack */
	__u64 tls_base;  /* 0: not used */
	__u32 nr;
	__u32 used_regs; /* a bit for each register that was used, besides pc, sp and bp */
	__u8 is_lost;    /* something else decided too, or there were more words */
	__u8 pad[7];
};

struct walk {
	__u64 pc, sp, bp;
	__u64 hash;                        /* of the frames so far */
	__u64 known_ns;                    /* of the process's block; 0: not known */
	__u64 syscall;                     /* the system call that the thread is in: its number, or all ones */
	__u64 hash_begin;                  /* what tells processes apart: the start of the hash of its stacks */
	__u64 regs[WALK_NR_REGS];          /* by DWARF number, as at the leaf or where a signal interrupted */
	struct sonde_mapping mapping;      /* of the last frame; empty at first */
	__u64 block_start;                 /* user address of block[0] */
	__u32 block_limit;                 /* words that start below block_start + this are in the block */
	__u32 process_pos, nr_mappings;    /* of the process's struct sonde_mapping[]; 0: not known */
	__u32 serial;                      /* of the process's block */
	__u32 generation, runtimes;        /* likewise, as in struct sonde_process */
	__u32 nr_frames;
	__u8 stop;                         /* enum sonde_stop, valid once the walk has ended */
	__u8 exact;                        /* enum walk_exact */
	__u8 compat;                       /* 32-bit code: its stack cannot be walked */
	__u8 in_syscall;                   /* pc of the leaf is behind a system call instruction, or at a fault */
	__u8 follows_bx;                   /* enum walk_bx */
	__u8 at_gap;                       /* owner: not the current frame, but its caller, which is not found, may be in its code */
	__u8 has_gap;                      /* frames are missing somewhere, and a mark is there */
	__u32 nr_signals;                  /* signal frames so far */
	__u32 nr_switches;                 /* switches between Go's stacks so far */
	/* The number of the last frame that a frame pointer led to. Only there a zero proves the root; elsewhere bp may be any register. */
	__u32 linked_frame;
	__u32 lost_sp_frame;               /* arm64: number of the last frame whose sp is not known */
	__u32 go_in_scheduler;             /* Go's scheduler is one of the frames so far */
	__u32 owner;                       /* enum sonde_runtime: the current frame, which is stored, is in its code; 0: in no runtime's */
	__u64 go_g0_sp;                    /* sp of the last runtime.cgocallback's frame on g0; 0: none so far */
	__u64 nr_walks;                    /* including this one */
	__u32 nr_looks;                    /* instructions emulated, lines hashed and words checked between sp and rbp */
	__u32 number;                      /* of this walk, see WALK_REF */
	__u64 event_ns; /* time of the event that the walk is for; for a driver that reads the clock, see walk/walk_clock.h */
	__u32 clock_cost;                  /* likewise: the clock is read once the walk has cost this much */
	__u32 nr_reads;                    /* likewise: reads of user memory */
	struct walk_start start;
	struct walk_trail trail;
	struct walk_emulate emulation;
	__u64 block[WALK_BLOCK_BYTES / 8];
	struct walk_cached cache[WALK_CACHE_ENTRIES]; /* by frame; outlives the walk */
	struct walk_code codes[WALK_CODES];           /* likewise */
	__u64 sps[SONDE_MAX_USER_FRAMES]; /* sp of each frame, as sonde_frame_slot orders them: these place a runtime's frames */
};

/* Before a loop. Loops over code are unrolled: clang's layout of them continues backwards without a jump, which 5.10 refuses as a
 * back-edge. Only clang compiles for BPF. */
#ifdef __clang__
#define WALK_ROLLED _Pragma("clang loop unroll(disable)")
#define WALK_UNROLLED _Pragma("unroll")
#else
#define WALK_ROLLED
#define WALK_UNROLLED
#endif

#define WALK_GOES_ON 0
#define WALK_ENDED 1
#define WALK_AT_OWNER 2 /* the program of the runtime in `owner` goes on from the current frame */

/* Moves to the caller, from a frame that does not say where it saved rbx. */
static __always_inline void walk_return_to(struct walk *w, __u64 pc, __u64 sp, __u64 bp)
{
	w->pc = pc;
	w->sp = sp;
	w->bp = bp;
	w->exact = WALK_RETURN;
	if (w->follows_bx)
		w->follows_bx = WALK_BX_LOST;
}

/* How the larger steps get their walk: by its number where WALK_BY_NUMBER is defined. Then the includer defines walk_of, which gives NULL
 * if there is no such walk. */
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

/* Has the walk ended at a frame whose caller is not found, whatever user space knows? */
static __always_inline int walk_is_broken(const struct walk *w)
{
	return w->stop == SONDE_STOP_NO_ROW || w->stop == SONDE_STOP_BAD_RULE || w->stop == SONDE_STOP_NO_CALL;
}

static __always_inline __u64 hash_step(__u64 hash, __u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
	return hash ^ hash >> 32;
}

/* The start of the hash of a process's stacks. `life`: 0 if the generation is known; else a value that no other process with this tgid has.
 * With known generations no two starts are equal: each step is one to one in its word. */
static __always_inline __u64 hash_process(__u64 seed, __u32 tgid, __u32 generation, __u64 life)
{
	return hash_step(hash_step(hash_step(seed, (__u64)generation << 32 | tgid), life), seed);
}

/* True where what decides a walk is recorded for the stack cache: a program with the cache defines it as true. */
static const int walk_is_recorded;

static __always_inline void walk_note_word(struct walk *w, __u64 at, __u64 word)
{
	__u32 nr = w->trail.nr;

	if (!walk_is_recorded)
		return;
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
	if (walk_is_recorded)
		w->trail.used_regs |= 1u << (reg & 31);
}

static __always_inline void walk_note_tls(struct walk *w, __u64 base)
{
	if (walk_is_recorded)
		w->trail.tls_base = base;
}

static __always_inline void walk_note_lost(struct walk *w)
{
	if (walk_is_recorded)
		w->trail.is_lost = 1;
}

static __always_inline void walk_note_begin(struct walk *w)
{
	if (!walk_is_recorded)
		return;
	w->trail.nr = 0;
	w->trail.used_regs = 0;
	w->trail.tls_base = 0;
	w->trail.is_lost = 0;
}

/* To be called where all registers are known. */
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

/* A frame needs rbx, which the walk has not followed: starts again and follows it. This is so rare that other walks need not pay for it. */
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

/* Is the current frame's sp known only as a lower bound, w->sp? */
static __always_inline int is_sp_lost(const struct walk *w)
{
	return !WALK_SP_KNOWN && w->lost_sp_frame == w->nr_frames - 1;
}
