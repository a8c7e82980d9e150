/* SPDX-License-Identifier: Apache-2.0 */
/* resolver: resolves locations (naming/location.h) to names and adds them to a profile as its locations, each once. One thread. */
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
	struct parser *parser; /* reads files; NULL: code in files gets no names */
	struct proxy *proxy;   /* opens paths given by untrusted processes */
	bool lines;            /* also source lines and inlined functions */
	bool addresses;        /* code in ELF files keeps its addresses, and gets no names */
	bool as_linked;        /* ELF files are mapped where they are linked: processes that share one share its locations */
	const char *vmlinux;   /* the kernel's file with debug info; NULL: searched for */
	struct name_cache *cache;    /* NULL: none */
	struct kernel_names *kernel;
	const uint64_t *haste_ns; /* after this time no more files are read (clock_is_past) */
};

struct resolver;
/* Borrows all arguments for its life. NULL: no memory. */
struct resolver *resolver_new(const struct location_table *locations, struct location_files *files, const struct naming *naming,
			      struct profile *profile);
/* Resolves the locations in files, one file at a time, in JIT code, one process at a time, and, for source lines, in the kernel. Call it
 * once, before resolver_locations. 0 or -ENOMEM. */
MUST_CHECK int resolver_read_files(struct resolver *resolver);
uint32_t resolver_nr_skipped(const struct resolver *resolver); /* files not read for lack of time */
void resolver_free(struct resolver *resolver);
/* Returns the profile's locations for a location: the functions inlined there, innermost first, then the one that the code belongs to.
 * Borrowed until the next call. NULL: no memory. */
const uint32_t *resolver_locations(struct resolver *resolver, uint32_t where, uint32_t *ret_nr);
/* Each returns a location of the profile; PROFILE_NONE: no memory. */
/* last_location: the outermost frame found, or LOCATION_NO_MEMORY. */
uint32_t resolver_mark(struct resolver *resolver, enum sonde_stop stop, uint32_t last_location);
uint32_t resolver_no_natives(struct resolver *resolver); /* the mark for missing native frames among runtime frames */
uint32_t resolver_cut(struct resolver *resolver); /* the mark for frames that were left out between the two ends of a stack */
/* Are frames of the interpreter that the code belongs to missing from the stack (runtime_marks_of)? Then returns true and their mark, or
 * PROFILE_NONE. Code outside of files belongs to its caller: JIT code to its interpreter, whatever is known of the process. `caller`: the
 * location of the frame's caller, or LOCATION_NO_MEMORY. */
bool resolver_has_runtime_mark(struct resolver *resolver, uint32_t where, uint32_t caller, bool has_frames, uint32_t *ret_mark);
/* Is the location in an interpreter's loop? */
bool resolver_is_loop(const struct resolver *resolver, uint32_t where);
uint32_t resolver_missed(struct resolver *resolver, bool kernel);
/* Is the location in a function of the kernel's scheduler? The kernel itself leaves those out of a waiting thread's stack. */
bool resolver_is_scheduler(const struct resolver *resolver, uint32_t location);
