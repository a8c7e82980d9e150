/* SPDX-License-Identifier: Apache-2.0 */
/* file_runtimes: the interpreters, or the C library, in a file, as bytes that the worker sends to the process that may not read files. The
 * bytes may be hostile: all of them are checked when they are read. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "elf/elf_file.h"
#include "runtime/libc_facts.h"
#include "runtime/runtime.h"

#define FILE_RUNTIMES_MAX 3 /* in one file: two languages, or a language and what is none */

struct file_runtimes {
	struct libc_facts libc; /* all zero: not a C library */
	uint32_t nr_images, pad;
	struct runtime_image images[FILE_RUNTIMES_MAX];
};

/* Appends what was found in the file. 0, -ENOMEM or -EFBIG. Runs in the worker. */
MUST_CHECK int file_runtimes_make(const struct elf_file *elf, struct buffer *to);
/* Reads and checks the bytes. 0; -EBADMSG: file_runtimes_make of this build cannot have made them. */
MUST_CHECK int file_runtimes_read(const void *bytes, size_t size, struct file_runtimes *ret_runtimes);
