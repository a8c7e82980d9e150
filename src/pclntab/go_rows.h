/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that make unwind rules of Go's functions share: one function's code, and where rules other than its frame size's hold. */
#pragma once
#include "pclntab/go_pclntab_private.h"

#define GO_CODE_BYTES	  512 /* of a function's begin that are looked at: no assembly function that matters is longer */
#define GO_MAX_EXCEPTIONS 6

/* What the program's own code says about where it keeps the current goroutine. */
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
	const uint8_t *bytes; /* from its begin on; borrowed */
	uint32_t nr;
	/* The frame, as the prologue makes it. */
	uint64_t bp_saved_from; /* from here on the caller's rbp is at CFA + bp_off; UINT64_MAX: nowhere */
	uint64_t bp_set_from;	/* from here on rbp is CFA - 16; UINT64_MAX: nowhere */
	int32_t bp_off;
	bool keeps_rbx;		 /* as C's functions do; Go's do not */
	uint64_t rbx_saved_from; /* likewise of rbx */
	int16_t rbx_off;
	bool has_flags;		 /* the functions of this version do */
	bool has_switch_kind;	 /* its frame size's rules are of kind SWITCH: */
	enum sonde_switch_kind switch_kind;
	bool is_switching;	 /* on another stack in places: only rbp leads to the frame */
	struct go_exception exceptions[GO_MAX_EXCEPTIONS];
	uint32_t nr_exceptions;
};

/* Reads what runtime.systemstack does, and what runtime.morestack. */
void go_thread_read_systemstack(const struct go_code *code, struct go_thread *thread);
void go_thread_read_morestack(const struct go_code *code, struct go_thread *thread);
/* The frame's part of `code`; from `first_vaddr` up to `end_vaddr` the stack pointer has moved for the first time, by `delta`. */
void go_code_find_frame(struct go_code *code, uint64_t first_vaddr, uint64_t end_vaddr, int32_t delta);
/* The exceptions of the functions that change stacks, end stacks, or are called by nobody. */
void go_code_find_exceptions(struct go_code *code, const struct go_thread *thread);
/* The frame size's rule at an address. */
struct sonde_rule go_code_rule(const struct go_code *code, uint64_t vaddr, int32_t delta);
