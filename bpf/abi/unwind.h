/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* unwind: unwind tables and process mappings as the kernel side reads them.
 *
 * Everything of variable size is in *chunks*: fixed-size inner arrays of the map `chunks` (array of maps), created as needed. A *pos*
 * identifies a word of four bytes in all chunks: the chunk number in its high bits, the word in its low bits. Nothing that is read through
 * one pos crosses a chunk's end. User space writes data, then publishes its pos. Before it reuses words it waits until no program can hold
 * the old pos (an update of an array of maps waits for that).
 *
 * A file's rows are sorted by address, in as many parts as free room requires. Its addresses are divided into *blocks* of 1 << block_shift
 * bytes, 4 KiB for all but huge files. Its index has a struct sonde_block for each: where the row is that holds at the block's start, and
 * how many rows there are from it to the block's end. They are contiguous in one chunk; the row that ends one block may begin the next, or
 * be stored twice. To look up `rel`: take its block. Of the block's rows after the first, take the last one whose low is not above rel's
 * offset in the block. If there is none, the first row holds, whatever its low. That is one index look-up and about six steps, where a
 * search of all rows takes twenty: it matters when caches are cold. A gap between functions is a row with rule SONDE_RULE_NONE. */
#pragma once
#include "types.h"

#define SONDE_CHUNK_SHIFT 16                             /* words of a chunk, as a power of two */
#define SONDE_CHUNK_WORDS (1u << SONDE_CHUNK_SHIFT)
#define SONDE_CHUNK_BYTES (SONDE_CHUNK_WORDS * 4)        /* 256 KiB */
#define SONDE_MAX_CHUNKS 4096                            /* 1 GiB: the address space, not the limit on memory */
#define SONDE_MIN_BLOCK_SHIFT 12
#define SONDE_MAX_BLOCK_SHIFT 16                         /* lows have 16 bits */
#define SONDE_MAX_BLOCKS (SONDE_CHUNK_WORDS / 2)         /* of one file: its index fits in a chunk */
#define SONDE_MAX_MAPPINGS 8190                          /* executable mappings of one process */
#define SONDE_MAX_RULES 65536

/* A row: the rule that holds from this address up to the next row. One word. */
struct sonde_row {
	__u16 low;  /* address in its block */
	__u16 rule; /* into the map `rules` */
};
_Static_assert(sizeof(struct sonde_row) == 4, "rows are one word");

/* An entry of a file's index. nr_rows is at least 1. */
struct sonde_block {
	__u32 pos;
	__u32 nr_rows;
};
_Static_assert(sizeof(struct sonde_block) == 8, "layout changed: bump SONDE_ABI_VERSION");

/* An executable mapping of a process. rel = pc - base_pc. nr_blocks 0: no table, walk by frame pointers. Exceptions, by block_shift:
 * SONDE_NOT_LOADED: the table was unloaded to make room, user space loads it when a walk needs it. SONDE_COMPILED: code from an
 * interpreter's JIT, which runs on the frame of the interpreter's loop; index_pos is the number of the loop's rule. SONDE_OWNED: code of a
 * runtime that has frames of its own there; index_pos is the enum sonde_runtime, whose program finds their callers; base_pc is 0,
 * or the start of what is its file's code. */
#define SONDE_NOT_LOADED 255
#define SONDE_COMPILED 254
#define SONDE_OWNED 253

struct sonde_mapping {
	__u64 start_pc, end_pc;
	__u64 base_pc;     /* pc of the file's first block; may wrap */
	__u32 index_pos;   /* of struct sonde_block[nr_blocks], even */
	__u16 nr_blocks;
	__u16 block_shift;
};
_Static_assert(sizeof(struct sonde_mapping) == 32, "layout changed: bump SONDE_ABI_VERSION");

/* What the map `processes` (tgid -> pos) points at. The mappings follow it, sorted by start_pc, not overlapping. */
struct sonde_process {
	__u32 tgid;        /* checked by the reader: the words may have been reused */
	__u32 nr_mappings;
	/* Changes whenever a pc of this tgid may mean another file than before; no two processes have the same. At least 1. */
	__u32 generation;
	__u32 serial;      /* of this block: unique, at least 1 */
	__u64 known_ns;    /* CLOCK_MONOTONIC: the block includes what the process did up to then */
	__u32 runtimes;    /* a bit 1 << enum sonde_runtime for each that is known to run in it */
	__u32 pad;         /* zero */
};
_Static_assert(sizeof(struct sonde_process) == 32, "layout changed: bump SONDE_ABI_VERSION");

#define SONDE_WIDE_GAP_BYTES 65536

enum sonde_rule_kind {
	SONDE_RULE_KIND_NONE,	     /* no rule here, a gap: frame pointers, if the code shows that it keeps them */
	SONDE_RULE_KIND_END,	     /* the outermost frame: the stack is complete */
	SONDE_RULE_KIND_STEP,	     /* compute the CFA, then pc and bp from it */
	SONDE_RULE_KIND_SIGNAL,	     /* the kernel's rt_sigframe: all registers from the ucontext at sp */
	SONDE_RULE_KIND_UNSUPPORTED, /* there is a rule, but not one that we can follow */
	/* a gap of at least SONDE_WIDE_GAP_BYTES: other code (an interpreter's builtins): validated frame pointers */
	SONDE_RULE_KIND_WIDE,
	SONDE_RULE_KIND_SWITCH, /* Go: the frame, or its caller, is on another stack than sp: enum sonde_switch_kind */
};

enum sonde_cfa_kind {
	SONDE_CFA_SP,  /* sp + cfa_off */
	SONDE_CFA_BP,  /* bp + cfa_off */
	/* register cfa_reg + cfa_off: only where it is known: in the leaf, in code interrupted by a signal; rbx also farther up */
	SONDE_CFA_REG,
	SONDE_CFA_DEREF_SP,    /* *(sp + cfa_off) + cfa_add */
	SONDE_CFA_DEREF_BP,    /* *(bp + cfa_off) + cfa_add: realigned stacks (DRAP) */
	SONDE_CFA_PLT,	       /* sp + cfa_off + ((pc & 15) >= cfa_reg ? 8 : 0) */
	SONDE_CFA_DEREF_TWICE, /* *(*(sp + cfa_off) + cfa_reg) + cfa_add: OCaml's fibers, through the one that started this one */
};

enum sonde_bp_kind {
	SONDE_BP_SAME,      /* the caller's bp is still in bp */
	SONDE_BP_CFA,       /* at CFA + bp_off */
	SONDE_BP_BP,        /* at bp + bp_off (DRAP) */
	SONDE_BP_UNDEFINED, /* not available: 0 */
};

enum sonde_ra_kind {
	SONDE_RA_CFA, /* at CFA + ra_off */
	/* in register ra_off, only in the leaf and in code interrupted by a signal: arm64's x30; x86-64: glibc's vfork, where the child
	 * would overwrite it on the stack */
	SONDE_RA_REG,
};

/* How to leave a Go function that changes stacks (src/runtime/asm_amd64.s), used in place of enum sonde_cfa_kind. If bp_kind is
 * SONDE_BP_CFA, bp is at CFA - 16. The return address is at CFA - 8. */
enum sonde_switch_kind {
	SONDE_SWITCH_BY_BP,	  /* CFA = bp + cfa_off: the frame is at the function's frame pointer */
	SONDE_SWITCH_TO_CURG,	  /* CFA = m.curg.sched.sp + cfa_off: runtime.systemstack before Go 1.21 */
	/* the caller's pc, sp and bp are in m.curg.sched. Without a goroutine, or above the scheduler: the stack is complete */
	SONDE_SWITCH_MORESTACK,
	/* g at sp + g_slot; the goroutine's stack pointer at *(sp + depth_slot) below g.stack.hi; without g, itself at sp + depth_slot */
	SONDE_SWITCH_ASMCGOCALL,
	/* CFA = g0.sched.sp + cfa_off, where C called from; farther out, the sp that the inner one saved at its own sp */
	SONDE_SWITCH_CGOCALLBACK,
	SONDE_SWITCH_INJECTED,	  /* CFA = sp + cfa_off; the caller did not call: it was interrupted */
	SONDE_SWITCH_MCALL,	  /* as MORESTACK, if m.curg is the goroutine at sp + g_slot, which called */
	SONDE_SWITCH_SCHEDULER,	  /* CFA = sp + cfa_off; from here on there is no goroutine to return to */
};

#define SONDE_RBX_LOST (-32768) /* not saved where it can be found: a frame farther up that needs it ends the walk */

/* x86-64: sp = rsp, bp = rbp; arm64: bp = x29. The caller's sp is the CFA; cfa_reg is a DWARF register number (psABI figure 3.36). */
struct sonde_rule {
	__s32 cfa_off;
	union {
		__s32 bp_off;
		__s32 tls_off;    /* KIND_SWITCH: the goroutine, g, is at the thread's fs base + tls_off */
	};
	union {
		/* The return address is at CFA + ra_off: -8 except in hand-written code. RA_REG: the register's DWARF number. */
		__s16 ra_off;
		__s16 curg_off;   /* KIND_SWITCH: offset of curg in Go's struct m */
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
	/* KIND_STEP, of a frame that CFI marks as a signal's: the caller may be on another stack, and may not have called */
	__u8 is_signal;
	__u8 pad[4];              /* zero: rules are compared as bytes */
};
_Static_assert(sizeof(struct sonde_rule) == 24, "layout changed: bump SONDE_ABI_VERSION");

/* Rules that every table may use without defining them. */
#define SONDE_RULE_NONE 0
#define SONDE_RULE_END 1
#define SONDE_RULE_SIGNAL 2
#define SONDE_RULE_UNSUPPORTED 3
#define SONDE_RULE_WIDE 4
#define SONDE_RULE_FIRST_FREE 5
