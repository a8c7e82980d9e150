/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that make unwind rules of Go's functions share: one function's code, and where its rules are not those of its frame
 * size. */
#pragma once
#include "pclntab/go_pclntab_private.h"

#define GO_CODE_BYTES	  512 /* of a function's start that are read: no assembly function that matters is longer */
#define GO_MAX_EXCEPTIONS 6

/* Where the program keeps the current goroutine, according to its own code. */
struct go_thread {
	bool is_known;
	int32_t tls_off;  /* g is at the thread's fs base + this */
	int16_t curg_off; /* of m.curg */
	int16_t sched_bp; /* of g.sched.bp; 0: not known */
};

struct go_exception { /* a rule that holds in [from, to), whatever the frame size */
	uint64_t from, to;
	struct sonde_rule rule;
};

struct go_code {
	struct go_function function;
	const uint8_t *bytes; /* from its start; borrowed */
	uint32_t nr;
	/* The frame, as the prologue builds it. */
	uint64_t bp_saved_from; /* from here on the caller's rbp is at CFA + bp_off; UINT64_MAX: nowhere */
	uint64_t bp_set_from;	/* from here on rbp is CFA - 16; UINT64_MAX: nowhere */
	int32_t bp_off;
	bool keeps_rbx;		 /* as C functions do; Go functions do not */
	uint64_t rbx_saved_from; /* the same for rbx */
	int16_t rbx_off;
	bool has_flags;		 /* functions of this version have flags */
	bool has_switch_kind;	 /* the rules of its frame size are of kind SWITCH: */
	enum sonde_switch_kind switch_kind;
	bool is_switching;	 /* on another stack in places: only rbp leads to its frame */
	struct go_exception exceptions[GO_MAX_EXCEPTIONS];
	uint32_t nr_exceptions;
};

/* Read the code of runtime.systemstack, and of runtime.morestack. */
void go_thread_read_systemstack(const struct go_code *code, struct go_thread *thread);
void go_thread_read_morestack(const struct go_code *code, struct go_thread *thread);
/* Fills the frame's part of `code`. Between `first_vaddr` and `end_vaddr` the stack pointer has moved for the first time, by `delta`. */
void go_code_find_frame(struct go_code *code, uint64_t first_vaddr, uint64_t end_vaddr, int32_t delta);
/* Finds the exceptions for functions that switch stacks, end stacks, or have no caller. */
void go_code_find_exceptions(struct go_code *code, const struct go_thread *thread);
/* Returns the rule at an address according to the frame size. */
struct sonde_rule go_code_rule(const struct go_code *code, uint64_t vaddr, int32_t delta);
