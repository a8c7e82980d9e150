/* SPDX-License-Identifier: Apache-2.0 */
/* namer: gives places their names and puts them into a profile as locations, each once. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "abi/reason.h"
#include "model/profile.h"
#include "naming/kernel_names.h"
#include "naming/name_cache.h"
#include "naming/place_files.h"
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

struct namer;
/* Borrows all four for its life. NULL: no memory. */
struct namer *namer_new(const struct place_table *places, struct place_files *files, const struct naming *naming, struct profile *profile);
/* Looks up the names of the places in files, a file at a time, and of JIT code, a process at a time. 0 or -ENOMEM. Once, before namer_locations is asked. */
MUST_CHECK int namer_read_files(struct namer *namer);
uint32_t namer_nr_skipped(const struct namer *namer); /* files that were not read in haste */
void namer_free(struct namer *namer);
/* The locations of a place: functions that were inlined there, innermost first, and the one that the code belongs to. Borrowed until the next call. NULL: no memory. */
const uint32_t *namer_locations(struct namer *namer, uint32_t place, uint32_t *ret_nr);
/* Each gives a location of the profile; PROFILE_NONE: no memory. */
uint32_t namer_mark(struct namer *namer, enum sonde_stop stop, uint32_t last_place); /* the outermost frame that was found */
uint32_t namer_no_natives(struct namer *namer); /* the mark for native frames that belong between what stands here */
uint32_t namer_cut(struct namer *namer); /* the mark for frames that were left out between the two ends of a stack */
/* Are frames of the interpreter that the code there belongs to missing in the stack (runtime_marks_of)? Code in no file belongs to what calls it: a JIT's code does to its interpreter, whatever is known of the process.
 * `caller`: the frame's, or PLACE_NO_MEMORY. Then the mark that stands for what it runs; or PROFILE_NONE. */
bool namer_has_runtime_mark(struct namer *namer, uint32_t place, uint32_t caller, bool has_frames, uint32_t *ret_mark);
/* Is the code there an interpreter's loop? */
bool namer_is_loop(const struct namer *namer, uint32_t place);
uint32_t namer_missed(struct namer *namer, bool kernel);
/* Is the location in functions of the kernel's scheduler, which it leaves out itself of the stack of a thread that waits? */
bool namer_is_scheduler(const struct namer *namer, uint32_t location);
