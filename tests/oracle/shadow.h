/* SPDX-License-Identifier: Apache-2.0 */
/* shadow: the true chain of callers of a single-stepped thread, derived from the instructions that it executes. A call puts a return
 * address on the stack. Whatever raises the stack pointer above it (ret, longjmp, an unwinder that lands) ends that call. A signal
 * interrupts. Knows nothing of tables or frame pointers. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/user.h>

#define SHADOW_MAX 4096
#define SHADOW_NOWHERE UINT64_MAX /* from before the first step: ends when a ret leads to its pc */

struct shadow_entry {
	uint64_t pc;    /* a return address has SONDE_FRAME_RETURN; an interrupted instruction has not */
	uint64_t at;    /* the address of its word, or SHADOW_NOWHERE; for an interrupted one the stack pointer at that time */
	bool is_signal; /* the frame of interrupted code */
};

struct shadow {
	struct shadow_entry entries[SHADOW_MAX]; /* outermost first */
	uint32_t nr;
};

/* One instruction was executed: `code` has the bytes at before->rip, `top` is the word at after->rsp. */
void shadow_step(struct shadow *shadow, const struct user_regs_struct *before, const struct user_regs_struct *after, const uint8_t *code,
		 uint64_t top);
/* A signal's handler was entered instead. */
void shadow_signal(struct shadow *shadow, const struct user_regs_struct *before, const struct user_regs_struct *after, uint64_t top);
bool shadow_is_syscall(const uint8_t *code);
