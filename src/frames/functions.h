/* SPDX-License-Identifier: Apache-2.0 */
/* functions: a profile's functions, (name, file, kind), with their own values (self) and those including what they call (total). The values
 * fold as their kind does, mostly by sum. A sample counts once in the total of a function, however often the function is on its stack. A
 * state, a kind of wait, and the waker's frames are no code of the thread: they have no values, unless the stack has nothing else. */
#pragma once
#include "model/profile.h"

struct function_row {
	uint32_t name, path; /* strings; path: frame_path, the mapped file or the source of an interpreted function; "": none */
	uint32_t kind;       /* enum frame_kind */
	uint32_t start_line; /* frame_start_line; 0 for most */
	uint32_t last_sample;/* the last sample counted into total, plus one */
	bool is_code;        /* false: a state of a thread, a kind of wait, or what stands for its waker */
	int64_t self, total;
};

struct functions {
	struct function_row *rows;
	uint32_t nr;
	uint32_t *of_location; /* by location: the row's index */
	uint32_t waker;        /* the row of PROFILE_WAKER; PROFILE_NONE: there is none */
	int64_t all;           /* the value of all samples */
};

/* Tallies the profile's value with this index. 0 or -ENOMEM. */
MUST_CHECK int functions_tally(const struct profile *profile, uint32_t value, struct functions *ret_functions);
void functions_done(struct functions *functions);
/* The rows by self, then by total, or the other way round, largest first. The caller frees the list. NULL: no memory. */
const struct function_row **functions_sorted(const struct functions *functions, bool total_first);
/* Never "". */
const char *function_row_name(const struct profile *profile, const struct function_row *row);
#define FUNCTION_PLACE_BYTES 280
/* Where its code is, in short: "kernel", "libc.so.6", "app.py:12", "". `room` holds texts with a line. */
const char *function_row_place(const struct profile *profile, const struct function_row *row, char room[FUNCTION_PLACE_BYTES]);

/* Both sides of a sample's stack as one: innermost first, the kernel's before the user's. */
struct whole_stack {
	const uint32_t *kernel, *user; /* locations */
	uint32_t nr_kernel, nr;        /* nr: of both */
};
struct whole_stack whole_stack_of(const struct profile *profile, const struct profile_sample *sample);
static inline uint32_t whole_stack_at(const struct whole_stack *stack, uint32_t i) /* i < nr */
{
	return i < stack->nr_kernel ? stack->kernel[i] : stack->user[i - stack->nr_kernel];
}
/* The index of the innermost frame that is the thread's code; 0 if there is none. `stack` is not empty. */
uint32_t functions_code_at(const struct functions *functions, const struct whole_stack *stack);
/* The state that stands at the leaf end, before the thread's code: a string; PROFILE_NONE: there is none. */
uint32_t functions_state(const struct functions *functions, const struct whole_stack *stack);
