/* SPDX-License-Identifier: Apache-2.0 */
/* runtime: user space's part of a language runtime: finds it in a file with its data layout, tells the kernel side how to walk its stacks,
 * and resolves its frames. One folder and one struct runtime per runtime of SONDE_RUNTIME_LIST. See docs/internals/adding-a-runtime.md. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "abi/runtime.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "elf/elf_file.h"
#include "runtime/libc_facts.h"

#define RUNTIME_NAMING_WORDS 6

/* What a file says about its runtime. The worker that reads the file fills it, so it is plain bytes, and untrusted until
 * runtime_image_is_sound. All addresses are as linked. */
struct runtime_image {
	uint8_t runtime;        /* enum sonde_runtime */
	uint8_t is_supported;   /* 0: not supported, see `reason` */
	uint8_t version[3];     /* 3.11.2; unknown parts are 0 */
	uint8_t pad[3];
	char reason[120];       /* ends with a NUL; "" when is_supported */
	uint32_t nr_loops;
	/* Code of the interpreter's loop, if its frames are paired by counting or get a mark beside them. */
	struct sonde_code_range loops[SONDE_MAX_LOOPS];
	/* The kernel's data for a process, still with addresses as linked and without what the process or its libc adds. */
	union sonde_runtime_known known;
	uint64_t naming[RUNTIME_NAMING_WORDS]; /* the runtime's own data for resolving frames */
};

/* `known` or `naming` as the runtime's own struct. */
#define RUNTIME_OWN(type, member) ({ \
	_Static_assert(sizeof(type) <= sizeof(member), "no room"); \
	(type *)&(member); \
})

/* Reads `size` bytes of a process's memory: 0, or a negative errno: -EFAULT: not all of it is mapped; -ESRCH: the process has ended;
 * -ENODATA: the bytes are not in a copy. */
typedef int (*runtime_memory_fn)(void *arg, uint64_t from, void *to, size_t size);

struct runtime_memory {
	runtime_memory_fn read;
	void *arg;
};

#define RUNTIME_NAME_BYTES 512
#define RUNTIME_FILE_BYTES 1024

/* A resolved frame. UTF-8; invalid text in the program's memory is replaced. */
struct runtime_function {
	char name[RUNTIME_NAME_BYTES]; /* qualified, as the language writes it: "Class.method"; never empty */
	char file[RUNTIME_FILE_BYTES]; /* "": not known */
	uint32_t start_line;           /* 0: not known */
	uint32_t line;                 /* current line, or line of the call; 0: not known */
	/* Set by the caller of `describe`: which of the functions of one frame that were inlined into each other; 0: the innermost. */
	uint32_t level;
	bool has_caller;               /* this function is inlined: the next level is its caller */
	bool is_mark;                  /* the name is a mark, not a function */
	bool is_refuted;               /* set by the caller of `prove`: the stack from the caller of this frame on is not true */
	/* While the process lives, no other function at this address has its cookie. False: memory that is used again may give another one
	 * the same cookie, so the name is true for a short time only. */
	bool is_lasting;
};

/* Result of resolving a frame. */
enum runtime_answer {
	RUNTIME_NAMED,
	RUNTIME_MARK,     /* no function */
	RUNTIME_NOT_YET,  /* something else, or nothing, is at the address now: that may change */
	RUNTIME_NEVER,    /* the process has ended, or has called execve(2) */
};

/* Where the kernel side keeps what user space has read of a runtime's code; the runtime's own structs. Both may fail. */
struct runtime_rows {
	int (*get)(void *arg, const void *key, void *ret_rows);
	void (*set)(void *arg, const void *key, const void *rows);
	void *arg;
};

struct runtime {
	/* Finds this runtime in the file. Runs in the worker and reads only the file. 0: *ret_image is filled, supported or not; -ENOENT:
	 * the file has no such runtime; -ENOMEM. */
	int (*examine)(const struct elf_file *elf, struct runtime_image *ret_image);
	/* True: `examine` could have made this supported image. An image from the worker is checked once (runtime_image_is_sound), and
	 * trusted from then on. So each number that becomes an offset in our own memory, or a choice, must be one that this build knows.
	 * What becomes an address in the process's memory may have any value. */
	bool (*is_sound)(const struct runtime_image *image);
	/* Fills *ret_process, the kernel's data for a process that has the image mapped at this load bias. `libc`: of the process, all
	 * zero: not known. 0; -EAGAIN: not possible yet, try again later; -EOPNOTSUPP: not possible for this process, `diag` says why. */
	int (*place)(const struct runtime_image *image, uint64_t load_bias, const struct libc_facts *libc,
		     const struct runtime_memory *memory, struct diag *diag, void *ret_process);
	/* True: this executable memory without a file is code that the runtime generated; may record it in `process`, which `place` made.
	 * It runs on the frame of the runtime's loop; that of a runtime that owns code (OWNER) has frames of its own, and is asked for
	 * often: from `process` alone. NULL: the runtime generates no such code. */
	bool (*owns_code)(const struct runtime_image *image, const struct runtime_memory *memory, uint64_t start_pc, uint64_t end_pc,
			  void *process);
	/* True: this mapping of the runtime's own file, at its own load bias, contains code that is owned: *ret_part, which may be recorded
	 * in `process`. Asked of each mapping before the kernel is told. NULL: the file has no such code. */
	bool (*owns_part)(void *process, uint64_t load_bias, uint64_t start_pc, uint64_t end_pc, struct sonde_code_range *ret_part);
	/* Resolves a frame from the process's current memory, which is untrusted; `process` is what `place` made. 0; -ESTALE: something
	 * else is at the address now; -EBADMSG: the data are not this runtime's; -EFAULT, -ESRCH, -ENODATA. NULL: the runtime has no
	 * frames. A line that is not in a copy is 0. */
	int (*describe)(const struct runtime_image *image, const void *process, const struct runtime_memory *memory,
			const struct sonde_runtime_frame *frame, struct runtime_function *ret_function);
	/* Reads the code of a frame with SONDE_RUNTIME_CLAIM, and gives the kernel side `rows` that say where its caller is.
	 * *ret_is_true: what that assumed meanwhile was right. 0 or as `describe`. NULL: there are no such frames. */
	int (*prove)(const struct runtime_image *image, const void *process, const struct runtime_memory *memory,
		     const struct sonde_runtime_frame *frame, const struct runtime_rows *rows, bool *ret_is_true);
	/* What it is called to people, without a version; NULL: a language, by its name. */
	const char *called;
	/* Where the layout of its data comes from, in words. */
	const char *layout;
	/* What tells of its own heap, which does not use malloc, and of what shows that one; NULL: it uses malloc. */
	const char *own_heap;
	/* Its name in the flag -tracers of the OpenTelemetry eBPF profiler; NULL: as here, or none. */
	const char *tracer;
	/* Name prefix of the native code that the runtime generates for each function for perf; then follows NAME:FILE, as `describe`
	 * returns them. NULL: it generates none. */
	const char *trampoline;
};

#define X(id, name, ...) extern const struct runtime runtime_##name;
SONDE_RUNTIME_LIST(X, X, X)
#undef X

/* NULL, or "": there is no such runtime. */
const struct runtime *runtime_of(uint32_t kind);
const struct runtime *runtime_of_frame(uint32_t frame_kind);
const char *runtime_name(uint32_t kind); /* as in SONDE_RUNTIME_LIST */
/* True: runtimes_examine could have made it from some file. The image may be hostile. */
bool runtime_image_is_sound(const struct runtime_image *image);
/* Finds up to `max` runtimes in a file: their number, or -ENOMEM. Runs in the worker. */
MUST_CHECK int runtimes_examine(const struct elf_file *elf, struct runtime_image *ret_images, uint32_t max);
