/* SPDX-License-Identifier: Apache-2.0 */
/* code_frames: what the instructions of one x86-64 function say of its frame: where the CFA, the return address and the caller's rbp and
 * rbx are, at each instruction that control comes to from the function's begin. For code without call frame information.
 *
 * All ways are followed, loops and conditional jumps included; where two meet, what they do not have in common is not known any more, and
 * two depths of the stack are a contradiction, as is a return where sp is not at the return address or rbp or rbx are not the caller's.
 * With one contradiction nothing is believed of the function. Calls are believed to keep to the psABI, but for one thing: whether they drop
 * arguments. A return with sp in its place proves that none did, where nothing sets sp anew; else only the code of what is called does, and
 * behind other calls sp is not known. Nobody called a new thread (clone's, on the way on which it gave zero) that zeroes rbp and takes what
 * is on its stack, and never leaves. Cost: linear in the instructions, but where ways meet; all that costs time is counted as work, and
 * when that is done nothing more is read. */
#pragma once
#include "cfi/cfi.h"

struct code_function {
	const uint8_t *code;
	size_t size;
	uint64_t vaddr;
	bool is_sized; /* the end is the function's own; else it is only known that it is not longer */
	bool is_start; /* a program's entry point: nobody called it */
	bool (*is_other)(void *arg, uint64_t vaddr); /* does another function begin there? For those without a size */
	bool (*keeps_sp)(void *arg, uint64_t vaddr); /* is it known that the function that is called there drops none of its arguments? */
	void *arg;
};

enum code_verdict {
	CODE_CONTRADICTS,
	CODE_MAY_BE, /* it does not return: nothing shows that it was called to begin with, and not entered by a jump with a frame (a
			function's cold part is) */
	CODE_RETURNS,
};

struct code_frames;
struct code_frames *code_frames_new(void); /* NULL: no memory */
void code_frames_free(struct code_frames *frames); /* takes NULL */
static inline void code_frames_freep(struct code_frames **frames)
{
	code_frames_free(*frames);
}
/* Forgets the function before; borrows this one's bytes until the next call. -ENOMEM, or enum code_verdict. */
MUST_CHECK int code_frames_read(struct code_frames *frames, const struct code_function *function);
/* Work that the caller did, in instructions that could have been followed in that time. */
void code_frames_add_work(struct code_frames *frames, uint64_t nr_steps);
bool code_frames_is_spent(const struct code_frames *frames); /* no work is left: whatever is read then is contradicted */
/* Does the code that begins there start a process: before its first call it zeroes rbp, and aligns sp, and keeps neither? */
bool code_frames_is_start(const uint8_t *code, size_t size);
/* Is it plain by the code that begins there that a call of it changes sp in no way? For keeps_sp. */
bool code_frames_is_plain(struct code_frames *frames, const uint8_t *code, size_t size);
/* The rows of each run of instructions that was come to, and its end. `by_frame`: as compilers say it: the CFA by rbp, rbp and rbx by where
 * they were saved, where there is another way, too. */
MUST_CHECK int code_frames_rows(const struct code_frames *frames, bool by_frame, cfi_row_fn row, void *arg, struct cfi_stats *stats);
/* Where the function calls, or goes with nothing of its own left on the stack: functions begin there. Borrowed until the next read. */
const uint64_t *code_frames_targets(const struct code_frames *frames, size_t *ret_nr);
