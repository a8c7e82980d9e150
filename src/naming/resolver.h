/* SPDX-License-Identifier: Apache-2.0 */
/* resolver: gives places their names and puts them into a profile as locations, each once. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "abi/reason.h"
#include "model/profile.h"
#include "naming/kernel_names.h"
#include "naming/location_files.h"
#include "naming/name_cache.h"
#include "parse/parser.h"

struct naming { /* all borrowed */
	struct parser *parser; /* reads files; NULL: what stands in files has no names */
	struct proxy *proxy;   /* opens files that strangers name */
	bool lines;            /* also source lines and inlined functions */
	const char *vmlinux;   /* the kernel's file with debug info; NULL: is looked for */
	struct name_cache *cache;    /* NULL: none */
	struct kernel_names *kernel;
	const uint64_t *haste_ns; /* from then on no more files are read (clock_is_past) */
};

struct resolver;
/* Borrows all four for its life. NULL: no memory. */
struct resolver *resolver_new(const struct location_table *locations, struct location_files *files, const struct naming *naming,
			      struct profile *profile);
/* Looks up the names of the places in files, a file at a time, and of JIT code, a process at a time. 0 or -ENOMEM. Once, before
 * resolver_locations is asked. */
MUST_CHECK int resolver_read_files(struct resolver *resolver);
uint32_t resolver_nr_skipped(const struct resolver *resolver); /* files that were not read in haste */
void resolver_free(struct resolver *resolver);
/* The locations of a place: functions that were inlined there, innermost first, and the one that the code belongs to. Borrowed until the
 * next call. NULL: no memory. */
const uint32_t *resolver_locations(struct resolver *resolver, uint32_t where, uint32_t *ret_nr);
/* Each gives a location of the profile; PROFILE_NONE: no memory. */
uint32_t resolver_mark(struct resolver *resolver, enum sonde_stop stop, uint32_t last_location); /* the outermost frame that was found */
uint32_t resolver_no_natives(struct resolver *resolver); /* the mark for native frames that belong between what stands here */
uint32_t resolver_cut(struct resolver *resolver); /* the mark for frames that were left out between the two ends of a stack */
/* Are frames of the interpreter that the code there belongs to missing in the stack (runtime_marks_of)? Code in no file belongs to what
 * calls it: a JIT's code does to its interpreter, whatever is known of the process. `caller`: the frame's, or LOCATION_NO_MEMORY. Then the
 * mark that stands for what it runs; or PROFILE_NONE. */
bool resolver_has_runtime_mark(struct resolver *resolver, uint32_t where, uint32_t caller, bool has_frames, uint32_t *ret_mark);
/* Is the code there an interpreter's loop? */
bool resolver_is_loop(const struct resolver *resolver, uint32_t where);
uint32_t resolver_missed(struct resolver *resolver, bool kernel);
/* Is the location in functions of the kernel's scheduler, which it leaves out itself of the stack of a thread that waits? */
bool resolver_is_scheduler(const struct resolver *resolver, uint32_t location);
