/* SPDX-License-Identifier: Apache-2.0 */
/* firefox: what the two halves of the writer share. firefox.c writes what the profile has once, firefox_thread.c the tables of a thread. */
#pragma once
#include "codec/json.h"
#include "frames/call_nodes.h"
#include "frames/frame_list.h"
#include "frames/inlines.h"
#include "frames/tick.h"
#include "frames/tracks.h"

/* Categories, by which the viewer colours frames: name, colour. */
#define FIREFOX_OF_RUNTIME(id, name, shown, otlp, files, firefox, ...) X(id, shown, firefox)
#define FIREFOX_CATEGORY_LIST(X) \
	X(OTHER, "Other", "grey") \
	X(USER, "User", "yellow") X(KERNEL, "Kernel", "orange") SONDE_RUNTIME_LIST(FIREFOX_OF_RUNTIME, FIREFOX_OF_RUNTIME, SONDE_NO_RUNTIME)
#define X(id, name, colour) FIREFOX_##id,
enum firefox_category { FIREFOX_CATEGORY_LIST(X) };
#undef X

/* Numbers a thread's own subset of the profile's entries. */
struct renumber {
	uint32_t *number; /* by entry of the profile: its number + 1; 0: not used yet */
	uint32_t *used;	  /* by number: the entry */
	uint32_t nr;
};

struct firefox {
	struct json json;
	const struct profile *profile;
	struct frame_list frames;
	struct tracks tracks;
	struct inlines inlines;
	uint32_t *lib_of;      /* by mapping: number of its library */
	uint32_t *lib_mapping; /* by library: its first mapping */
	uint32_t nr_libs;
	struct value_scale scale;
	uint64_t first_ns;
	/* of the current thread */
	struct renumber strings, chains, functions, symbols, libs; /* functions and symbols: entries of `frames` */
	uint32_t *function_lib;	   /* by function: the library of one of its locations, or PROFILE_NONE */
	uint32_t *symbol_location; /* by symbol: one of its locations */
	struct call_nodes stacks;
	const struct track *track;
	uint32_t *leaf; /* by index in the track: its stack, or PROFILE_NONE */
};

/* 0 or -ENOMEM. */
MUST_CHECK int firefox_thread_prepare(struct firefox *firefox);
MUST_CHECK int firefox_write_thread(struct firefox *firefox, const struct track *track);
void firefox_thread_done(struct firefox *firefox);
