/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* runtime: the frames of an interpreter, as the kernel side finds them and user space resolves them.
 *
 * A runtime stack is sent beside the native one, as a payload of its own, once. It consists of *runs*, leaf first: the frames of one
 * activation of the interpreter's loop (a native frame), then an element with SONDE_RUNTIME_ENTRY that says which native frame that is.
 * User space replaces that native frame with the run. A frame of a runtime that owns code is a run by itself (SONDE_RUNTIME_PLACED). */
#pragma once
#include "runtime_list.h"
#include "types.h"

#define X(id, ...) SONDE_RUNTIME_##id,
enum sonde_runtime { SONDE_RUNTIME_NONE, SONDE_RUNTIME_LIST(X, X, X) SONDE_RUNTIME_COUNT };
#undef X
_Static_assert(SONDE_RUNTIME_COUNT <= 32, "a process's runtimes are bits of a __u32");

#define X(id, ...) | 1u << SONDE_RUNTIME_##id
enum { SONDE_RUNTIMES_WITH_LABELS = 0 SONDE_RUNTIME_LIST(SONDE_NO_RUNTIME, SONDE_NO_RUNTIME, X) }; /* bits 1 << enum sonde_runtime */
enum { SONDE_RUNTIMES_THAT_OWN_CODE = 0 SONDE_RUNTIME_LIST(SONDE_NO_RUNTIME, X, SONDE_NO_RUNTIME) }; /* likewise */
#undef X

#define SONDE_RUNTIMES_THAT_BRIDGE (1u << SONDE_RUNTIME_BRIDGE) /* likewise */

#define SONDE_MAX_RUNTIME_FRAMES 2048 /* including the entries; a power of two; of a deeper stack the leaf end is kept */

/* Flag: the frame is itself a native frame, whose number is `native`: that one is replaced by this one. */
#define SONDE_RUNTIME_PLACED 2
#define SONDE_RUNTIME_ENTRY 1             /* flag: not a frame but the end of a run; `where` is the number of its native frame, leaf 0 */
#define SONDE_RUNTIME_UNPLACED (~0ULL)    /* instead: the native frame was not found */
#define SONDE_RUNTIME_AT_LEAF (~0ULL - 1) /* instead: none yet, the interpreter is about to enter its loop, or has just left it */

/* Bit of a frame's `where`, of runtimes whose walk needs what user space reads of their code: the walk went on by an assumption, which the
 * rest of `where` states and user space proves (struct runtime's `prove`). */
#define SONDE_RUNTIME_CLAIM (1ULL << 55)

struct sonde_runtime_frame {
	__u64 code;    /* user address of the code: a code object, a function, a CV */
	__u64 where;   /* the position in it, in the runtime's own unit (abi/NAME.h) */
	__u32 cookie;  /* tells the code from later code at the same address, in the runtime's own way */
	__u8 runtime;  /* enum sonde_runtime */
	__u8 flags;
	__u16 native;  /* with SONDE_RUNTIME_PLACED; else zero */
};
_Static_assert(sizeof(struct sonde_runtime_frame) == 24, "layout changed: bump SONDE_ABI_VERSION");

/* Why a runtime stack ends where it does. COMPLETE: no frame is missing. The texts are the marks for what is missing; %s is the runtime's
 * name. */
#define SONDE_RUNTIME_STOP_LIST(X) \
	X(COMPLETE, "complete", "") \
	X(DEPTH, "truncated", "[%s: frames left out]") \
	X(READ_FAULT, "read_fault", "[%s: stack not readable]") \
	X(TORN, "torn", "[%s: stack makes no sense]")

#define X(id, name, text) SONDE_RUNTIME_STOP_##id,
enum sonde_runtime_stop { SONDE_RUNTIME_STOP_LIST(X) SONDE_RUNTIME_STOP_COUNT };
#undef X

/* Where a thread keeps the pointer to its interpreter's state. All pcs are absolute, including the load bias. */
enum sonde_tls_kind {
	SONDE_TLS_NONE,
	SONDE_TLS_GLOBAL, /* not per thread: the word at `pc` */
	SONDE_TLS_STATIC, /* the word at thread pointer + off (local exec) */
	/* at thread pointer + *(s64 *)pc + off (initial exec: pc is a GOT entry; TLSDESC resolved to it: its second word) */
	SONDE_TLS_OFFSET,
	SONDE_TLS_MODULE, /* pc is a GOT pair {module, offset} (general and local dynamic): at dtv[module] + offset + off */
	SONDE_TLS_KEY,	  /* pc holds a u32 key of pthread_key_create: the key's value */
};

struct sonde_tls {
	__u64 pc;
	__s64 off;
	/* MODULE: offset of the dtv pointer from the thread pointer. Entries are 16 bytes with glibc, 8 with musl: dtv_stride. */
	__u32 dtv_off;
	/* KEY: likewise, of the table of values (glibc: of pointers to tables of key_block entries; musl: of the pointer to the
	 * table). */
	__u32 keys_off;
	/* KEY: entries per table, each of 16 bytes with its value at 8 (glibc); 0: a single table of 8-byte values (musl). */
	__u16 key_block;
	__u8 dtv_stride;
	__u8 kind;           /* enum sonde_tls_kind */
	__u32 pad;           /* zero */
};
_Static_assert(sizeof(struct sonde_tls) == 32, "layout changed: bump SONDE_ABI_VERSION");

/* Code of an interpreter's loop: absolute pcs. */
#define SONDE_MAX_LOOPS 4
struct sonde_code_range {
	__u64 start_pc, end_pc; /* both 0: none */
};

/* First member of every runtime's struct for a process (struct sonde_NAME in abi/NAME.h): the values of the runtime's map, keyed by
 * tgid. */
struct sonde_runtime_process {
	__u32 generation; /* as in the process's struct sonde_process; if not, it is of another program */
	__u32 serial;     /* of this value, unique: its memory may be reused while it is read */
	/* Of the file that contains the runtime: for user space, which resolves frames with its data. Filled in by `place`. */
	__u64 load_bias;
	struct sonde_tls root;
};

/* A process's value: room for any runtime's struct. */
union sonde_runtime_known {
	struct sonde_runtime_process process;
	__u64 words[56];
};
