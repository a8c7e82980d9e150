/* SPDX-License-Identifier: Apache-2.0 */
/* code_frames: derives the frame of one x86-64 function from its instructions: where the CFA, the return address and the caller's rbp and
 * rbx are, at each instruction that control reaches from the function's start. For code without call frame information.
 *
 * Follows all paths, including loops and conditional jumps. Where two meet, only what they have in common is still known. A contradiction
 * is: two different stack depths; a return where sp is not at the return address, or rbp or rbx are not the caller's. After one
 * contradiction nothing is known about the function. Calls are assumed to follow the psABI, except that they may drop arguments. A return
 * with the right sp proves that none did, if nothing resets sp. Otherwise only the callee's code can show it, and after other calls sp
 * is not known. A new thread has no caller: where clone returned zero, it zeroes rbp, takes what is on its stack and never leaves. Cost:
 * linear in the instructions, except where paths meet. All work is counted and limited. */
#pragma once
#include "cfi/cfi.h"

struct code_function {
	const uint8_t *code;
	size_t size;
	uint64_t vaddr;
	bool is_sized; /* the end is the function's own; else `size` is only an upper bound */
	bool is_start; /* a program's entry point: it has no caller */
	/* Compiled by Graal's native-image: no callee keeps a register, and control also enters where an exception is handled. Sized. */
	bool is_managed;
	bool (*is_other)(void *arg, uint64_t vaddr); /* does another function begin there? For functions without a size */
	bool (*keeps_sp)(void *arg, uint64_t vaddr); /* does the function called there drop none of its arguments, for sure? */
	bool (*never_returns)(void *arg, uint64_t vaddr); /* is that known of the function called there? */
	bool (*is_clone)(void *arg, uint64_t vaddr);	  /* does the function called there start threads? */
	bool (*is_code)(void *arg, uint64_t vaddr);	  /* can a function begin there? */
	void *arg;
};

enum code_verdict {
	CODE_CONTRADICTS,
	/* It does not return: nothing shows whether it is called, or entered by a jump with a frame, like a function's cold part. */
	CODE_MAY_BE,
	CODE_RETURNS,
};

#define CODE_FRAMES_MAX_STEPS (12u << 20) /* of a file, in instructions: a quarter of a second */
#define CODE_MANAGED_ALIGN    16	   /* of managed functions */

struct code_frames;
struct code_frames *code_frames_new(uint64_t max_steps); /* the work that it may do. NULL: no memory */
void code_frames_free(struct code_frames *frames); /* takes NULL */
static inline void code_frames_freep(struct code_frames **frames)
{
	code_frames_free(*frames);
}
/* Reads a function and forgets the one before; borrows its bytes until the next call. -ENOMEM or enum code_verdict. */
MUST_CHECK int code_frames_read(struct code_frames *frames, const struct code_function *function);
/* If it calls what starts threads: the addresses of code that it computes, among them where the threads start. Borrowed likewise. */
const uint64_t *code_frames_thread_starts(const struct code_frames *frames, size_t *ret_nr);
/* Does no path leave the function? For never_returns, after CODE_MAY_BE. */
bool code_frames_never_returns(const struct code_frames *frames);
/* Does the code at a function's start make a thread (clone), and what it does there? For is_clone. */
bool code_frames_is_clone(const uint8_t *code, size_t size);
/* How long the function is: less than was stated if the code shows that another managed function follows. */
size_t code_frames_size(const struct code_frames *frames);
/* Does it begin as managed functions with a frame do? */
bool code_frames_is_begin(const uint8_t *code, size_t size);
/* Adds the caller's work, in instructions that could have been followed in that time. */
void code_frames_add_work(struct code_frames *frames, uint64_t nr_steps);
bool code_frames_is_spent(const struct code_frames *frames); /* no work is left: every function read from now on contradicts */
/* Does the code at a function's start look like a process's start: before its first call it zeroes rbp, aligns sp, and saves neither? */
bool code_frames_is_start(const uint8_t *code, size_t size);
/* Does the code show that calling it leaves sp unchanged? For keeps_sp. */
bool code_frames_is_plain(struct code_frames *frames, const uint8_t *code, size_t size);
/* Gives the rows of each run of reached instructions, and its end. `by_frame`: as compilers write it: the CFA by rbp, rbp and rbx from
 * where they were saved, even if there is another way. */
MUST_CHECK int code_frames_rows(const struct code_frames *frames, bool by_frame, cfi_row_fn row, void *arg, struct cfi_stats *stats);
/* Where the function calls, or jumps with nothing of its own left on the stack: functions begin there. Borrowed until the next read. */
const uint64_t *code_frames_targets(const struct code_frames *frames, size_t *ret_nr);
