/* SPDX-License-Identifier: Apache-2.0 */
/* resolver_private: shared by the two halves of the resolver. resolver.c creates locations, resolver_files.c reads names in files. */
#pragma once
#include "base/buffer.h"
#include "naming/resolver.h"
#include "symbolize/symbolizer.h"

/* The profile's locations for one location: a range in resolver.locations. */
struct named {
	uint32_t first, nr; /* nr 0: not yet */
	bool is_nameless;   /* only the place where it is was found */
};

struct resolver {
	const struct location_table *table;
	struct location_files *files;
	const struct naming *naming;
	struct profile *profile;
	struct symbolizer *symbolizer; /* for the kernel's names, borrowed */
	struct named *named;          /* by location */
	struct buffer locations;      /* uint32_t each */
	bool kernel_hidden;           /* the note about hidden addresses was made */
	uint32_t nr_skipped;
};

/* Returns the name of a location in the kernel. 0; -ENOENT: also if a BPF program was loaded there too late; or as symbolizer_kernel. */
MUST_CHECK int resolver_kernel_name(struct resolver *resolver, const struct location *where, struct symbol_name *ret_name);
/* Returns the address to look up for a location: for a return address, one in the call before it. */
uint64_t resolver_code(const struct resolver *resolver, const struct location *where);
/* Creates the profile's locations for a location with these names, innermost first. 0 or -ENOMEM. */
MUST_CHECK int resolver_add(struct resolver *resolver, uint32_t number, const struct symbol_name *names, uint32_t nr);
