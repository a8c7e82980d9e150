/* SPDX-License-Identifier: Apache-2.0 */
/* recognised: runtimes that are known by name alone: their frames are not walked. Their images have the kind SONDE_RUNTIME_NONE, are not
 * supported, and have the name as their reason. Any thread. */
#pragma once
#include <stdbool.h>

#include "base/cleanup.h"
#include "elf/elf_file.h"
#include "runtime/runtime.h"

struct recognised {
	const char *name;
	const char *exported; /* a symbol that only its library, or a program that contains it, exports */
	/* Where it runs the language's code. No entries: anywhere in its file. */
	const char *entries[SONDE_MAX_LOOPS];
	bool compiles;        /* it compiles all code: its frames are on the native stack, in memory without a file */
	const char *help;     /* what shows its functions */
	bool is_alone;        /* runtimes whose frames are walked export that symbol, too */
	const char *section;  /* that its file also has; or NULL */
};

/* As struct runtime's `examine`. has_walked: the file has a runtime whose frames are walked, or would be in another version. */
MUST_CHECK int recognised_examine(const struct elf_file *elf, bool has_walked, struct runtime_image *ret_image);
const struct recognised *recognised_find(const char *name); /* NULL: there is none of that name */
uint32_t recognised_number(const struct recognised *recognised);
const struct recognised *recognised_at(uint32_t number); /* with a number from recognised_number */
