// SPDX-License-Identifier: Apache-2.0
/* The tracepoint or system call that has most in common with a kernel function that cannot be probed. */
#include <stdio.h>
#include <string.h>

#include "programs/call_numbers.h"
#include "events/probe_spec.h"

/* Is this word, up to '_', one of the name's? */
static bool has_word(const char *name, const char *word, size_t size)
{
	while (name) {
		if (strcspn(name, "_") == size && !strncmp(name, word, size))
			return true;
		name = strchr(name, '_');
		name += name != NULL;
	}
	return false;
}

/* Bytes of the words that both have, less a bit for each word that only `name` has. */
static int likeness(const char *function, const char *name)
{
	const char *word = name;
	int same = 0, others = 0;

	while (word) {
		size_t size = strcspn(word, "_");

		if (size > 1 && has_word(function, word, size))
			same += 4 * (int)size;
		else
			others++;
		word = strchr(word, '_');
		word += word != NULL;
	}
	return same ? same - others : 0;
}

bool probe_nearest(const struct kernel_types *types, const char *function, char *ret_name, size_t size)
{
	int best = 0, like;
	uint32_t cursor = 0;
	const char *name;
	bool is_tracepoint;

	for (const struct call_number *call = call_numbers_64; call->name; call++) {
		like = likeness(function, call->name);
		if (like > best) {
			best = like;
			snprintf(ret_name, size, "syscall:%s", call->name);
		}
	}
	while (kernel_types_next(types, &cursor, &is_tracepoint, &name)) {
		like = is_tracepoint ? likeness(function, name) : 0;
		if (like > best) {
			best = like;
			snprintf(ret_name, size, "tracepoint:%s", name);
		}
	}
	return best > 0;
}
