/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_marks: by what is known of the interpreters in a file: which of its code is an interpreter's loop, and the marks that stand where
 * frames of an interpreter are missing. Any thread. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/runtime.h"

/* Where a frame stands. */
struct runtime_site {
	uint64_t elf_vaddr;
	bool is_made;    /* it is in memory of no file, and called from there */
	bool has_frames; /* its stack has frames of a runtime, or at least the word that there are none */
};
#define RUNTIME_NOT_KNOWN \
	"[%s: frames not known]" /* what it ran was not looked at: the process was not known yet, or the thread was not on a CPU */

bool runtime_marks_is_loop(const struct runtime_image *images, uint32_t nr_images, uint64_t elf_vaddr);
/* Are frames of an interpreter missing in a stack with this frame? When it is not supported, its whole file stands for it: where its loop
 * is, is known as little as the rest. Else when that is its loop, or what it made, and the stack has none at all. Then the mark that stands
 * for them: "[unsupported python 3.99: ...]", "[python: frames not known]". */
bool runtime_marks_of(const struct runtime_image *images, uint32_t nr_images, const struct runtime_site *site, char *to, size_t size);
/* "[unsupported python 3.99: ...]" */
void runtime_marks_unsupported(const struct runtime_image *image, char *to, size_t size);
