/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The native walk: from one frame of a user stack to its caller, by the rows of abi/unwind.h, else by validated frame pointers.
 * Compiles for BPF and for the host: whoever includes this gives, before, the three accessors
 *
 *   const __u32 *chunk_at(__u32 pos)                   the words of the chunk that pos lies in, or NULL
 *   const struct sonde_rule *rule_at(__u32 number)     or NULL
 *   long read_user(void *to, __u32 size, __u64 from)   0, or not 0 when not all of it can be read
 *
 * and WALK_FUNCTION, the storage class of the larger steps: for BPF they are global functions, which the verifier proves once each and not
 * once per way to them (210,000 instructions that were looked at became 6,000).
 *
 * Cost: the stack is read in blocks of WALK_BLOCK_BYTES, so that most frames cost no read at all; finding the row is two binary
 * searches of at most 15 and 8 steps; the mapping of the last frame is tried first. */
#pragma once
#include "../abi/record.h"
#include "../abi/unwind.h"

#define WALK_BLOCK_BYTES 2048 /* measured best of 1, 2 and 4 KiB; less than a page, see walk_fill */
#define WALK_PAGE_BYTES 4096
#define WALK_MAX_FP_FRAME_BYTES (16u << 20) /* a frame pointer farther up than this is no frame pointer */
#define WALK_NR_REGS 16

/* DWARF register numbers of x86-64 (psABI figure 3.36). */
#define WALK_REG_BP 6
#define WALK_REG_SP 7

struct walk {
	__u64 pc, sp, bp;
	__u64 hash;                        /* of the frames so far */
	__u64 regs[WALK_NR_REGS];          /* by DWARF number, as they were at the leaf or where a signal struck */
	struct sonde_mapping mapping;      /* that of the last frame; empty at first */
	__u64 block_start;                 /* user address of block[0] */
	__u32 block_limit;                 /* words that start below block_start + this lie in the block */
	__u32 process_pos, nr_mappings;    /* of the process's struct sonde_mapping[], 0: not known */
	__u32 nr_frames;
	__u8 stop;                         /* enum sonde_stop, once the walk has ended */
	__u8 exact;                        /* pc is an instruction that was interrupted, not a return address; regs hold */
	__u8 compat;                       /* 32-bit code: we do not know its stack */
	__u8 pad[5];
	__u64 block[WALK_BLOCK_BYTES / 8];
};

#define WALK_GOES_ON 0
#define WALK_ENDED 1

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

/* Reads a block from `from` on. Where it crosses into a page that is not there (the top of the stack), up to the page's end. */
WALK_FUNCTION int walk_fill(struct walk *w, __u64 from)
{
	__u32 size = WALK_BLOCK_BYTES;

	if (!w)
		return -1;
	w->block_limit = 0;
	if (read_user(w->block, WALK_BLOCK_BYTES, from)) {
		size = WALK_PAGE_BYTES - (from & (WALK_PAGE_BYTES - 1));
		if (size < 8 || size >= WALK_BLOCK_BYTES)
			return -1;
		size &= WALK_BLOCK_BYTES - 1; /* for the verifier */
		if (read_user(w->block, size, from))
			return -1;
	}
	w->block_start = from;
	w->block_limit = size - 7;
	return 0;
}

static __always_inline int walk_word(struct walk *w, __u64 at, __u64 *ret_word)
{
	__u64 off = at - w->block_start;

	if (off >= w->block_limit) {
		if (walk_fill(w, at))
			return -1;
		off = 0;
	}
	if (off & 7) { /* a stack that is not aligned: rare enough to read it by itself */
		return read_user(ret_word, sizeof(*ret_word), at) ? -1 : 0;
	}
	*ret_word = w->block[off / 8 & (WALK_BLOCK_BYTES / 8 - 1)];
	return 0;
}

#define CHUNK_WORD(words, pos) ((words)[(pos) & (SONDE_CHUNK_WORDS - 1)])
#define CHUNK_U64(words, pos) (*(const __u64 *)&(words)[(pos) & (SONDE_CHUNK_WORDS - 2)]) /* at even pos */

/* How many of `nr` sorted entries of `stride` words from `pos` on start at or before `key`. By field: u64 at even pos, u32, u16. */
#define WALK_SEARCH(name, steps, type, stride, field)                                                                                      \
	WALK_FUNCTION __u32 name(__u32 pos, __u32 nr, type key)                                                                            \
	{                                                                                                                                  \
		const __u32 *words = chunk_at(pos);                                                                                        \
		__u32 lo = 0, hi = nr;                                                                                                     \
                                                                                                                                           \
		if (!words)                                                                                                                \
			return 0;                                                                                                          \
		for (int step = 0; step < (steps) && lo < hi; step++) {                                                                    \
			__u32 mid = lo + (hi - lo) / 2;                                                                                    \
                                                                                                                                           \
			if (field(words, pos + mid * (stride)) <= key)                                                                     \
				lo = mid + 1;                                                                                              \
			else                                                                                                               \
				hi = mid;                                                                                                  \
		}                                                                                                                          \
		return lo;                                                                                                                 \
	}

#define ROW_LOW(words, pos) (CHUNK_WORD(words, pos) & 0xffff)

WALK_SEARCH(walk_search_mappings, 13, __u64, 8, CHUNK_U64) /* 2^12 = SONDE_MAX_MAPPINGS */
WALK_SEARCH(walk_search_buckets, 16, __u32, 3, CHUNK_WORD) /* 2^15 > SONDE_MAX_BUCKETS */
WALK_SEARCH(walk_search_rows, 9, __u32, 1, ROW_LOW)        /* 2^8 = SONDE_BUCKET_ROWS */

/* Makes w->mapping the one that holds `pc`. 0, or -1 when there is none. */
static __always_inline int walk_find_mapping(struct walk *w, __u64 pc)
{
	const __u32 *words;
	__u32 nr_before, at;

	if (pc - w->mapping.start_pc < w->mapping.end_pc - w->mapping.start_pc)
		return 0;
	nr_before = walk_search_mappings(w->process_pos, w->nr_mappings, pc);
	words = chunk_at(w->process_pos);
	at = w->process_pos + (nr_before - 1) * 8;
	if (!nr_before || !words || pc >= CHUNK_U64(words, at + 2))
		return -1;
	w->mapping.start_pc = CHUNK_U64(words, at);
	w->mapping.end_pc = CHUNK_U64(words, at + 2);
	w->mapping.base_pc = CHUNK_U64(words, at + 4);
	w->mapping.index_pos = CHUNK_WORD(words, at + 6);
	w->mapping.nr_buckets = CHUNK_WORD(words, at + 7);
	return 0;
}

/* The number of the rule at `rel` of the current mapping: SONDE_RULE_NONE when no row covers it. */
static __always_inline __u32 walk_find_rule(struct walk *w, __u64 rel)
{
	__u32 nr_before, low, rows_pos, at;
	const __u32 *words;

	if (rel > 0xffffffff)
		return SONDE_RULE_NONE;
	nr_before = walk_search_buckets(w->mapping.index_pos, w->mapping.nr_buckets + 1, rel); /* with the closing entry, which has no rows */
	words = chunk_at(w->mapping.index_pos);
	if (!nr_before || !words)
		return SONDE_RULE_NONE;
	at = w->mapping.index_pos + (nr_before - 1) * 3;
	low = rel - CHUNK_WORD(words, at);
	if (low > 0xffff) /* the last row reaches farther than lows do */
		low = 0xffff;
	rows_pos = CHUNK_WORD(words, at + 1);
	nr_before = walk_search_rows(rows_pos, CHUNK_WORD(words, at + 2), low);
	words = chunk_at(rows_pos);
	return nr_before && words ? CHUNK_WORD(words, rows_pos + nr_before - 1) >> 16 : SONDE_RULE_NONE;
}

/* Does a call instruction end at `pc`? E8 rel32, or FF /2 in its forms of 2, 3, 4, 6 and 7 bytes (Intel SDM volume 2, CALL). */
WALK_FUNCTION int walk_after_call(__u64 pc)
{
	__u8 code[8] = {};

	if (read_user(code, sizeof(code), pc - sizeof(code)))
		return 0;
	return code[3] == 0xe8 || (code[6] == 0xff && (code[7] & 0x38) == 0x10) || (code[5] == 0xff && (code[6] & 0x38) == 0x10) ||
	       (code[4] == 0xff && (code[5] & 0x38) == 0x10) || (code[2] == 0xff && (code[3] & 0x38) == 0x10) ||
	       (code[1] == 0xff && (code[2] & 0x38) == 0x10);
}

/* Where no row stands: the chain of saved frame pointers, each link checked. `stop` is what it means when it breaks. */
WALK_FUNCTION int walk_frame_pointer(struct walk *w, enum sonde_stop stop)
{
	__u64 bp, pc;

	if (!w)
		return WALK_ENDED;
	if (!w->bp && !w->exact) /* the ABI's mark of the outermost frame */
		return walk_stop(w, SONDE_STOP_COMPLETE);
	if (w->bp & 7 || w->bp < w->sp || w->bp - w->sp > WALK_MAX_FP_FRAME_BYTES)
		return walk_stop(w, stop);
	if (walk_word(w, w->bp, &bp) || walk_word(w, w->bp + 8, &pc))
		return walk_stop(w, SONDE_STOP_READ_FAULT);
	if (!pc)
		return walk_stop(w, SONDE_STOP_COMPLETE);
	if (walk_find_mapping(w, pc - 1) || !walk_after_call(pc))
		return walk_stop(w, stop);
	w->sp = w->bp + 16;
	w->bp = bp;
	w->pc = pc;
	w->exact = 0;
	return WALK_GOES_ON;
}

/* struct rt_sigframe behind the handler's return address, arch/x86/include/asm/sigframe.h: struct ucontext at sp, in it
 * uc_mcontext at 40, whose registers are in the order of struct sigcontext_64 (uapi/asm/sigcontext.h). */
#define SIGNAL_MCONTEXT_OFF 40
#define SIGNAL_NR_REGS 17

WALK_FUNCTION int walk_signal(struct walk *w)
{
	/* r8 r9 r10 r11 r12 r13 r14 r15 rdi rsi rbp rbx rdx rax rcx rsp rip, as they stand there */
	__u64 saved[SIGNAL_NR_REGS];

	if (!w)
		return WALK_ENDED;
	if (read_user(saved, sizeof(saved), w->sp + SIGNAL_MCONTEXT_OFF))
		return walk_stop(w, SONDE_STOP_READ_FAULT);
	for (int i = 0; i < 8; i++)
		w->regs[8 + i] = saved[i];
	w->regs[0] = saved[13]; /* rax */
	w->regs[1] = saved[12]; /* rdx */
	w->regs[2] = saved[14]; /* rcx */
	w->regs[3] = saved[11]; /* rbx */
	w->regs[4] = saved[9];  /* rsi */
	w->regs[5] = saved[8];  /* rdi */
	w->bp = saved[10];
	w->sp = saved[15];
	w->pc = saved[16];
	w->exact = 1;
	return WALK_GOES_ON;
}

static __always_inline int walk_cfa(struct walk *w, const struct sonde_rule *rule, __u64 *ret_cfa)
{
	__u64 off = (__u64)(__s64)rule->cfa_off, word;

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
		if (!w->exact)
			return walk_stop(w, SONDE_STOP_BAD_RULE);
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

static __always_inline int walk_rule(struct walk *w, const struct sonde_rule *rule)
{
	__u64 cfa, pc, bp = w->bp;

	if (walk_cfa(w, rule, &cfa))
		return WALK_ENDED;
	if (cfa <= w->sp)
		return walk_stop(w, SONDE_STOP_NO_PROGRESS);
	if (rule->bp_kind == SONDE_BP_CFA || rule->bp_kind == SONDE_BP_BP) {
		if (walk_word(w, (rule->bp_kind == SONDE_BP_CFA ? cfa : w->bp) + (__u64)(__s64)rule->bp_off, &bp))
			return walk_stop(w, SONDE_STOP_READ_FAULT);
	} else if (rule->bp_kind == SONDE_BP_UNDEFINED) {
		bp = 0;
	}
	if (walk_word(w, cfa + (__u64)(__s64)rule->ra_off, &pc))
		return walk_stop(w, SONDE_STOP_READ_FAULT);
	if (!pc)
		return walk_stop(w, SONDE_STOP_COMPLETE);
	w->pc = pc;
	w->sp = cfa;
	w->bp = bp;
	w->exact = 0;
	return WALK_GOES_ON;
}

/* Moves to the caller of the current frame. */
static __always_inline int walk_caller(struct walk *w)
{
	__u64 pc = w->pc - !w->exact; /* a return address may be the first byte of the next function */
	const struct sonde_rule *rule;

	if (w->compat)
		return walk_stop(w, SONDE_STOP_COMPAT);
	if (!w->process_pos)
		return walk_stop(w, SONDE_STOP_NO_PROCESS);
	if (walk_find_mapping(w, pc))
		return walk_frame_pointer(w, SONDE_STOP_NO_MAPPING);
	if (!w->mapping.nr_buckets)
		return walk_frame_pointer(w, SONDE_STOP_NO_ROW);
	rule = rule_at(walk_find_rule(w, pc - w->mapping.base_pc));
	if (!rule)
		return walk_stop(w, SONDE_STOP_TABLE);
	switch (rule->kind) {
	case SONDE_RULE_KIND_STEP:
		return walk_rule(w, rule);
	case SONDE_RULE_KIND_NONE:
		return walk_frame_pointer(w, SONDE_STOP_NO_ROW);
	case SONDE_RULE_KIND_END:
		return walk_stop(w, SONDE_STOP_COMPLETE);
	case SONDE_RULE_KIND_SIGNAL:
		return walk_signal(w);
	}
	return walk_stop(w, SONDE_STOP_BAD_RULE);
}

/* One turn of the walk: takes the current frame down into frames[SONDE_MAX_USER_FRAMES], then moves to its caller. */
static __always_inline int walk_step(struct walk *w, __u64 *frames)
{
	__u64 frame = w->pc | (w->exact ? 0 : SONDE_FRAME_RETURN);
	__u32 i = w->nr_frames;

	if (i >= SONDE_MAX_USER_FRAMES)
		return walk_stop(w, SONDE_STOP_DEPTH);
	frames[i] = frame;
	w->nr_frames = i + 1;
	w->hash = hash_step(w->hash, frame);
	return walk_caller(w);
}
