/* SPDX-License-Identifier: Apache-2.0 */
/* What the two halves of the resolver share: resolver.c makes locations, resolver_files.c reads names in files. */
#pragma once
#include "base/buffer.h"
#include "naming/resolver.h"
#include "symbolize/symbolizer.h"

/* The locations of a place: some of resolver.locations. */
struct named {
	uint32_t first, nr; /* nr 0: not yet */
};

struct resolver {
	const struct location_table *table;
	struct location_files *files;
	const struct naming *naming;
	struct profile *profile;
	struct symbolizer *symbolizer; /* of the kernel's names, borrowed */
	struct named *named;          /* by place */
	struct buffer locations;      /* uint32_t each */
	bool kernel_hidden;           /* said once */
	uint32_t nr_skipped;
};

/* The name of a place in the kernel. 0 or as the symbolizer says. */
MUST_CHECK int resolver_kernel_name(struct resolver *resolver, const struct location *where, struct symbol_name *ret_name);
/* The address whose function the code of a place belongs to. */
uint64_t resolver_code(const struct resolver *resolver, const struct location *where);
/* Makes the locations of a place that has these names, innermost first. 0 or -ENOMEM. */
MUST_CHECK int resolver_add(struct resolver *resolver, uint32_t number, const struct symbol_name *names, uint32_t nr);
