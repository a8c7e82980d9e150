/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_marks: from the interpreters in a file: which of its code is an interpreter's loop, and the marks for missing interpreter frames.
 * Any thread. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/runtime.h"

/* The location of a frame. */
struct runtime_site {
	uint64_t elf_vaddr;
	bool is_made;    /* it is in memory without a file, and called from this file */
	bool has_frames; /* its stack has runtime frames, or the kernel side reported that there are none */
};
/* The kernel side did not look for frames: the process was not known yet, or the thread was not on a CPU. */
#define RUNTIME_NOT_KNOWN "[%s: frames not known]"

bool runtime_marks_is_loop(const struct runtime_image *images, uint32_t nr_images, uint64_t elf_vaddr);
/* Are an interpreter's frames missing from a stack with this frame? Then writes their mark: "[unsupported python 3.99: ...]" or "[python:
 * frames not known]". A supported interpreter: the frame is in its loop, or in code it made, and the stack has no runtime frames. An
 * unsupported one: any frame in its file, because its loop is not known either; in a stack with runtime frames only the loop. One that is
 * only recognised: as runtime/recognised.h says. */
bool runtime_marks_of(const struct runtime_image *images, uint32_t nr_images, const struct runtime_site *site, char *to, size_t size);
/* Writes "[unsupported python 3.99: ...]", or "[unsupported NAME]" for a runtime that is only recognised. */
void runtime_marks_unsupported(const struct runtime_image *image, char *to, size_t size);
