/* SPDX-License-Identifier: Apache-2.0 */
/* heap_options: the options that `leak` and `alloc` have in common: which blocks of which processes, and how often. */
#pragma once
#include "cli/recording.h"

#define HEAP_MAX_BLOCKS (1 << 28)
#define HEAP_DEFAULT_STACKS 10

struct heap_options {
	struct recording recording; /* every_s: the interval */
	uint64_t nr_intervals;      /* 0: not given */
	uint64_t min_bytes, max_bytes, max_live, max_stacks;
	const char *object;
	bool children;
};

/* Rows of an option table. `type` is that of the verb's arguments, `field` its struct heap_options. */
#define HEAP_INTERVAL_OPTIONS(type, field, text) \
	{ .group = "What is measured", \
	  .metavar = "INTERVAL", \
	  .kind = OPTION_NUMBER, \
	  .offset = offsetof(type, field.recording.every_s), \
	  .min = 1, \
	  .max = RECORDING_MAX_DURATION_S, \
	  .help = text }, \
	    { .metavar = "COUNT", .kind = OPTION_NUMBER, .offset = offsetof(type, field.nr_intervals), .min = 1, .max = UINT32_MAX, \
	      .help = "so many reports" }

#define HEAP_BLOCK_OPTIONS(type, field) \
	{ .name = "min-size", .metavar = "BYTES", .kind = OPTION_BYTES, .offset = offsetof(type, field.min_bytes), .max = INT64_MAX, \
	  .help = "track only allocations of at least this size" }, \
	    { .name = "max-size", .metavar = "BYTES", .kind = OPTION_BYTES, .offset = offsetof(type, field.max_bytes), .min = 1, \
	      .max = INT64_MAX, .help = "and of at most this size" }, \
	    { .name = "max-live", \
	      .metavar = "N", \
	      .kind = OPTION_NUMBER, \
	      .offset = offsetof(type, field.max_live), \
	      .min = 1, \
	      .max = HEAP_MAX_BLOCKS, \
	      .help = "track so many blocks at a time; 1000000. Those beyond it are counted, and the report says so" }, \
	    { .letter = 'O', \
	      .name = "obj", \
	      .metavar = "OBJECT", \
	      .kind = OPTION_TEXT, \
	      .offset = offsetof(type, field.object), \
	      .values = OPTION_VALUES_FILE, \
	      .help = "probe only the allocator in this file: a path, or a name such as libc; without it every allocator that is mapped" }

#define HEAP_CHILDREN_OPTION(type, field) \
	{ .name = "children", .kind = OPTION_FLAG, .offset = offsetof(type, field.children), \
	  .help = "also the processes that the command starts. All processes that map the allocator's file are slowed down then" }

#define HEAP_YES_OPTION(type, field) \
	{ .name = "yes", .kind = OPTION_FLAG, .offset = offsetof(type, field.recording.yes), \
	  .help = "do not ask: on a terminal, sonde asks before it makes a process more than twice as slow" }

#define HEAP_TOP_OPTION(type, field) \
	{ .group = "How it is shown", \
	  .name = "top", \
	  .metavar = "N", \
	  .kind = OPTION_NUMBER, \
	  .offset = offsetof(type, field.max_stacks), \
	  .min = 1, \
	  .max = UINT32_MAX, \
	  .help = "so many stacks in text, those that hold the most; 10. The largest is the last" }

/* Checks what the table cannot express, and sets the duration by the intervals. 0; -EINVAL with a line. */
MUST_CHECK int heap_options_check(struct heap_options *heap, char *const *command, struct diag *diag);
/* Of these only what concerns the recording. */
MUST_CHECK int heap_options_check_recording(struct heap_options *heap, char *const *command, struct diag *diag);
/* The library's options for these; the verb adds its own. Borrows `heap`. */
struct sonde_leak_options heap_options_leak(const struct heap_options *heap);
