/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Unwind tables and process mappings as the kernel side reads them.
 *
 * Everything of variable size lies in *chunks*: fixed-size inner arrays of the map `chunks` (array of maps), created as they are
 * needed. A *pos* names a word of four bytes in all chunks: chunk number in its high bits, word in its low bits. Nothing
 * that is read through one pos straddles a chunk. User space writes a thing, then publishes its pos; before it reuses words it
 * waits until no program can hold the old pos (an update of an array of maps waits for that).
 *
 * A file's rows stand sorted by address, in as many places as there was room in. Its addresses are cut into *blocks* of 1 << block_shift
 * bytes, 4 KiB for all but huge files, and its index has a struct sonde_block for each: where the row stands that holds at the block's
 * begin, and how many rows there are from it to the block's end. They lie together in one chunk; the row that ends one block may begin the
 * next, or stand twice. To look up `rel`: take its block, and of its rows after the first find the last whose low is not above rel's place
 * in the block; when there is none, the first holds, whatever its low. That is one look into the index and about six steps, where a search
 * of all rows takes twenty; cold caches feel the difference. A gap between functions is a row with rule SONDE_RULE_NONE. */
#pragma once
#include "types.h"

#define SONDE_CHUNK_SHIFT 16                             /* words of a chunk, as a power of two */
#define SONDE_CHUNK_WORDS (1u << SONDE_CHUNK_SHIFT)
#define SONDE_CHUNK_BYTES (SONDE_CHUNK_WORDS * 4)        /* 256 KiB */
#define SONDE_MAX_CHUNKS 4096                            /* 1 GiB: the address space, not the cap */
#define SONDE_MIN_BLOCK_SHIFT 12
#define SONDE_MAX_BLOCK_SHIFT 16                         /* lows have 16 bits */
#define SONDE_MAX_BLOCKS (SONDE_CHUNK_WORDS / 2)         /* of one file: its index fits in a chunk */
#define SONDE_MAX_MAPPINGS 8190                          /* executable ones of one process */
#define SONDE_MAX_RULES 65536

/* A row: the rule that holds from this address up to the next row's. One word. */
struct sonde_row {
	__u16 low;  /* address in its block */
	__u16 rule; /* into the map `rules` */
};
_Static_assert(sizeof(struct sonde_row) == 4, "rows are one word");

/* An entry of a file's index. nr_rows is 1 at least. */
struct sonde_block {
	__u32 pos;
	__u32 nr_rows;
};
_Static_assert(sizeof(struct sonde_block) == 8, "layout changed: bump SONDE_ABI_VERSION");

/* An executable mapping of a process. rel = pc - base_pc. nr_blocks 0: no table, walk by frame pointers; or, with block_shift
 * SONDE_NOT_LOADED, there is one that had to make room for others: user space loads it when a walk asks for it; or, with SONDE_COMPILED, it
 * is code that an interpreter made, which runs on the frame of its loop: index_pos is the number of the rule that holds in the loop. */
#define SONDE_NOT_LOADED 255
#define SONDE_COMPILED 254

struct sonde_mapping {
	__u64 start_pc, end_pc;
	__u64 base_pc;     /* pc of the file's first block; may wrap */
	__u32 index_pos;   /* of struct sonde_block[nr_blocks], even */
	__u16 nr_blocks;
	__u16 block_shift;
};
_Static_assert(sizeof(struct sonde_mapping) == 32, "layout changed: bump SONDE_ABI_VERSION");

/* What the map `processes` (tgid -> pos) points at; the mappings follow it, sorted by start_pc, not overlapping. */
struct sonde_process {
	__u32 tgid;        /* checked by the reader: the words could have been reused */
	__u32 nr_mappings;
	__u32 generation;  /* another one whenever a pc of this tgid may mean another file than before; no two processes have the same. 1 at
			      least */
	__u32 serial;      /* of this block: no other has had it. 1 at least */
	__u64 known_ns;    /* CLOCK_MONOTONIC: what the process did up to then is taken into account */
	__u32 runtimes;    /* a bit 1 << enum sonde_runtime for each that is known to run in it */
	__u32 pad;         /* zero */
};
_Static_assert(sizeof(struct sonde_process) == 32, "layout changed: bump SONDE_ABI_VERSION");

#define SONDE_WIDE_GAP_BYTES 65536

enum sonde_rule_kind {
	SONDE_RULE_KIND_NONE,	     /* no rule here, a gap: frame pointers, where it can be seen that they are kept */
	SONDE_RULE_KIND_END,	     /* the outermost frame: the stack is complete */
	SONDE_RULE_KIND_STEP,	     /* compute the CFA, then pc and bp from it */
	SONDE_RULE_KIND_SIGNAL,	     /* the kernel's rt_sigframe: all registers from the ucontext at sp */
	SONDE_RULE_KIND_UNSUPPORTED, /* there is a rule, but it is none that we can follow */
	SONDE_RULE_KIND_WIDE,	/* a gap of SONDE_WIDE_GAP_BYTES or more: code of another kind (an interpreter's builtins): frame pointers,
				   validated */
	SONDE_RULE_KIND_SWITCH, /* Go: the frame, or its caller, is on another stack than sp: enum sonde_switch_kind */
};

enum sonde_cfa_kind {
	SONDE_CFA_SP,  /* sp + cfa_off */
	SONDE_CFA_BP,  /* bp + cfa_off */
	SONDE_CFA_REG, /* register cfa_reg + cfa_off: where it is known: in the leaf and in code a signal interrupted; rbx also farther up
			*/
	SONDE_CFA_DEREF_SP,    /* *(sp + cfa_off) + cfa_add */
	SONDE_CFA_DEREF_BP,    /* *(bp + cfa_off) + cfa_add: realigned stacks (DRAP) */
	SONDE_CFA_PLT,	       /* sp + cfa_off + ((pc & 15) >= cfa_reg ? 8 : 0) */
	SONDE_CFA_DEREF_TWICE, /* *(*(sp + cfa_off) + cfa_reg) + cfa_add: OCaml's fibers, by way of the one that started this one */
};

enum sonde_bp_kind {
	SONDE_BP_SAME,      /* the caller's bp is still in bp */
	SONDE_BP_CFA,       /* at CFA + bp_off */
	SONDE_BP_BP,        /* at bp + bp_off (DRAP) */
	SONDE_BP_UNDEFINED, /* not to be had: 0 */
};

enum sonde_ra_kind {
	SONDE_RA_CFA, /* at CFA + ra_off */
	SONDE_RA_REG, /* in register ra_off, in the leaf and in code a signal interrupted only: arm64's x30; x86-64: glibc's vfork, whose
			 child would overwrite it */
};

/* How a Go function that changes stacks is left (src/runtime/asm_amd64.s): in place of enum sonde_cfa_kind. Where bp_kind is SONDE_BP_CFA,
 * bp is at CFA - 16. The return address is at CFA - 8. */
enum sonde_switch_kind {
	SONDE_SWITCH_BY_BP,	  /* CFA = bp + cfa_off: the function's frame is where its frame pointer says */
	SONDE_SWITCH_TO_CURG,	  /* CFA = m.curg.sched.sp + cfa_off: runtime.systemstack before Go 1.21 */
	SONDE_SWITCH_MORESTACK,	  /* the caller's pc, sp and bp stand in m.curg.sched. Without a goroutine, or above the scheduler: its own
				     stack, complete */
	SONDE_SWITCH_ASMCGOCALL,  /* g at sp + g_slot, the goroutine's stack pointer at *(sp + depth_slot) below g.stack.hi; without g,
				     itself at sp + depth_slot */
	SONDE_SWITCH_CGOCALLBACK, /* CFA = g0.sched.sp + cfa_off, where C called from; farther out, the one that this one put away at its
				     own sp */
	SONDE_SWITCH_INJECTED,	  /* CFA = sp + cfa_off; the caller did not call: it was interrupted */
	SONDE_SWITCH_MCALL,	  /* as MORESTACK, when m.curg is the goroutine at sp + g_slot, which called */
	SONDE_SWITCH_SCHEDULER,	  /* CFA = sp + cfa_off; from here on there is no goroutine that would be gone back to */
};

#define SONDE_RBX_LOST (-32768) /* elsewhere: a frame farther up that needs it ends the walk */

/* x86-64: sp = rsp, bp = rbp; arm64: bp = x29. The caller's sp is the CFA; cfa_reg is a DWARF register number (psABI figure 3.36). */
struct sonde_rule {
	__s32 cfa_off;
	union {
		__s32 bp_off;
		__s32 tls_off;    /* KIND_SWITCH: the goroutine, g, is at the thread's fs base + tls_off */
	};
	union {
		__s16 ra_off; /* the return address is at CFA + ra_off: -8 but for hand-written code. RA_REG: the register's DWARF number */
		__s16 curg_off;   /* KIND_SWITCH: of curg in Go's struct m */
	};
	union {
		__s16 cfa_add;
		__s16 depth_slot; /* SWITCH_ASMCGOCALL */
		__s16 sched_bp;   /* SWITCH_MORESTACK and _MCALL: offset of sched.bp in Go's struct g */
	};
	union {
		__s16 rbx_off;    /* the caller's rbx is at CFA + rbx_off; 0: still in rbx; or SONDE_RBX_LOST. x86-64 only */
		__s16 g_slot;     /* SWITCH_ASMCGOCALL and _MCALL */
	};
	__u8 kind;                /* enum sonde_rule_kind */
	__u8 cfa_kind, cfa_reg;   /* enum sonde_cfa_kind */
	__u8 bp_kind;             /* enum sonde_bp_kind */
	__u8 ra_kind;             /* enum sonde_ra_kind */
	__u8 is_signal; /* KIND_STEP, of a frame that CFI says is a signal's: the caller may stand on another stack, and may not have called
			 */
	__u8 pad[4];              /* zero: rules are compared whole */
};
_Static_assert(sizeof(struct sonde_rule) == 24, "layout changed: bump SONDE_ABI_VERSION");

/* Rules that every table may use without having defined them. */
#define SONDE_RULE_NONE 0
#define SONDE_RULE_END 1
#define SONDE_RULE_SIGNAL 2
#define SONDE_RULE_UNSUPPORTED 3
#define SONDE_RULE_WIDE 4
#define SONDE_RULE_FIRST_FREE 5
