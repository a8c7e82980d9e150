/* SPDX-License-Identifier: Apache-2.0 */
/* file_runtimes: which languages' interpreters, or which C library, a file holds, as bytes from the process that reads files to the one
 * that may not. Whoever made the bytes may be hostile: all is checked when they are read. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "elf/elf_file.h"
#include "runtime/libc_facts.h"
#include "runtime/runtime.h"

#define FILE_RUNTIMES_MAX 2 /* in one file */

struct file_runtimes {
	struct libc_facts libc; /* all zero: it is no C library */
	uint32_t nr_images, pad;
	struct runtime_image images[FILE_RUNTIMES_MAX];
};

/* Appends what the file holds. 0, -ENOMEM or -EFBIG. In the worker. */
MUST_CHECK int file_runtimes_make(const struct elf_file *elf, struct buffer *to);
/* 0 or -EBADMSG: no file_runtimes_make of this build has said so. */
MUST_CHECK int file_runtimes_read(const void *bytes, size_t size, struct file_runtimes *ret_runtimes);
