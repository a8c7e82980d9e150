/* SPDX-License-Identifier: Apache-2.0 */
/* allocator_probes: finds the allocators that the target processes map, and probes their functions: at the start, and as processes map more
 * files (dlopen, exec). One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "programs/alloc_programs.h"
#include "engine/engine.h"
#include "engine/target.h"

struct allocator_probes_options { /* borrowed for the call, except `object` */
	const struct targets *targets;
	uint32_t command_tgid;      /* 0: none */
	bool children;              /* of the command, too */
	bool is_estimate;           /* what probes cost matters */
	const char *object;         /* only the file with this path or base name; NULL: all. Borrowed for the object's life */
};

struct allocator_probes;
/* Borrows `engine` and `programs` for its life. NULL: no memory. */
struct allocator_probes *allocator_probes_new(const struct engine *engine, struct alloc_programs *programs,
					      const struct allocator_probes_options *options);
void allocator_probes_free(struct allocator_probes *probes); /* takes NULL */
/* Probes the allocator of a program that is about to run, and the allocators that its environment or the program itself asks for by name,
 * before it maps them. A file that is not found is met later. 0 or as alloc_programs_attach. */
MUST_CHECK int allocator_probes_expect(struct allocator_probes *probes, char *const *command, struct diag *diag);
/* Probes what has been mapped since the last call. 0, -ENOMEM; -EPERM, -EOPNOTSUPP; other failures are noted in the account. */
MUST_CHECK int allocator_probes_look(struct allocator_probes *probes, struct diag *diag);
/* Lets the calls of all that is mapped now be counted, until alloc_programs_end_count. Before allocator_probes_look. 0; -ENODATA: there is
 * nothing to count; or as allocator_probes_look. */
MUST_CHECK int allocator_probes_count(struct allocator_probes *probes, struct diag *diag);
uint32_t allocator_probes_nr(const struct allocator_probes *probes); /* files with an allocator that are probed, once per process */
