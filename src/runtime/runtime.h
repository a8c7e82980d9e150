/* SPDX-License-Identifier: Apache-2.0 */
/* runtime: what user space knows of a language's interpreter: whether a file holds one and how its data are laid out, what the kernel side
 * needs to know to walk its stacks, and what the frames that come back are called. One folder per runtime of SONDE_RUNTIME_LIST, one struct
 * runtime each. docs/internals/adding-a-runtime.md. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "abi/runtime.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "elf/elf_file.h"
#include "runtime/libc_facts.h"

#define RUNTIME_NAMING_WORDS 6

/* What a file tells of the runtime in it: made by the worker that reads the file, so it is plain bytes, and nothing in it is believed
 * before runtime_image_is_sound. All addresses are as linked. */
struct runtime_image {
	uint8_t runtime;        /* enum sonde_runtime */
	uint8_t is_supported;   /* 0: `reason` says why not */
	uint8_t version[3];     /* 3.11.2; what is not known is 0 */
	uint8_t pad[3];
	char reason[120];       /* ends with a NUL; "" when is_supported */
	uint32_t nr_loops;
	struct sonde_code_range loops[SONDE_MAX_LOOPS]; /* the interpreter's loop, as far as its frames are paired by counting or a mark is
							   to stand beside them */
	union sonde_runtime_known
	    known; /* what the kernel is told of each process, but with addresses as linked and without what the process or its libc adds */
	uint64_t naming[RUNTIME_NAMING_WORDS]; /* what frames are named by besides: the runtime's own */
};

/* One of the two as the runtime's own struct. */
#define RUNTIME_OWN(type, member) ({ \
	_Static_assert(sizeof(type) <= sizeof(member), "no room"); \
	(type *)&(member); \
})

/* Reads `size` bytes of a process's memory: 0, or a negative errno: -EFAULT when not all of it is there, -ESRCH when the process has ended,
 * -ENODATA when that is not in a copy. */
typedef int (*runtime_memory_fn)(void *arg, uint64_t from, void *to, size_t size);

struct runtime_memory {
	runtime_memory_fn read;
	void *arg;
};

#define RUNTIME_NAME_BYTES 512
#define RUNTIME_FILE_BYTES 1024

/* What a frame is called. UTF-8; what the program's memory holds otherwise is replaced there. */
struct runtime_function {
	char name[RUNTIME_NAME_BYTES]; /* qualified, as the language writes it: "Class.method"; never "" */
	char file[RUNTIME_FILE_BYTES]; /* "": not known */
	uint32_t start_line;           /* 0: not known */
	uint32_t line;                 /* where it is, or calls from; 0: not known */
};

/* What was found out of a frame. */
enum runtime_answer {
	RUNTIME_NAMED,
	RUNTIME_MARK,     /* no function */
	RUNTIME_NOT_YET,  /* what stands there now is something else, or nothing: that may change */
	RUNTIME_NEVER,    /* the process has ended, or runs another program now */
};

struct runtime {
	/* Does the file hold this runtime? Run in the worker: reads the file alone. 0: *ret_image is filled, supported or not; -ENOENT: it
	 * does not; -ENOMEM. */
	int (*examine)(const struct elf_file *elf, struct runtime_image *ret_image);
	/* Could `examine` have made this supported image? What came from the worker is asked about once (runtime_image_is_sound), and then
	 * believed: each number that becomes a place in memory of ours, or a choice, must be one that this build knows. What becomes an
	 * address in the process's memory may be any. */
	bool (*is_sound)(const struct runtime_image *image);
	/* Makes of the image what the kernel is told of a process that has it mapped there. `libc`: of the process, all zero when it is not
	 * known. 0; -EAGAIN: it cannot be told yet, try again later; -EOPNOTSUPP: not of this process, `diag` says why. */
	int (*place)(const struct runtime_image *image, uint64_t load_bias, const struct libc_facts *libc,
		     const struct runtime_memory *memory, struct diag *diag, void *ret_process);
	/* Is this executable memory, which is of no file, code that the runtime made, and that runs on the frame of its loop? Then takes it
	 * down in what `place` made. NULL: it makes none. */
	bool (*owns_code)(const struct runtime_image *image, const struct runtime_memory *memory, uint64_t start_pc, uint64_t end_pc,
			  void *process);
	/* What a frame is called, from the process's memory as it is now; `process` is what `place` made. Everything there is a stranger's.
	 * 0; -ESTALE: something else stands there now; -EBADMSG: it is nothing that this runtime would have put there; -EFAULT, -ESRCH,
	 * -ENODATA. NULL: it has no frames. A line that is not in a copy is 0. */
	int (*describe)(const struct runtime_image *image, const void *process, const struct runtime_memory *memory,
			const struct sonde_runtime_frame *frame, struct runtime_function *ret_function);
	/* The native code that the runtime makes for each function so that perf can see it is called this, then NAME:FILE as `describe` has
	 * them. NULL: it makes none. */
	const char *trampoline;
};

#define X(id, name, ...) extern const struct runtime runtime_##name;
SONDE_RUNTIME_LIST(X, X)
#undef X

/* NULL, "": there is none of that number. */
const struct runtime *runtime_of(uint32_t kind);
const struct runtime *runtime_of_frame(uint32_t frame_kind);
const char *runtime_name(uint32_t kind); /* as in SONDE_RUNTIME_LIST */
/* Is it one that runtimes_examine could have made of some file? Whoever made it may be hostile. */
bool runtime_image_is_sound(const struct runtime_image *image);
/* The runtimes that a file holds, up to `max`: their number, or -ENOMEM. In the worker. */
MUST_CHECK int runtimes_examine(const struct elf_file *elf, struct runtime_image *ret_images, uint32_t max);
