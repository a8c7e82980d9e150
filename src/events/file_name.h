/* SPDX-License-Identifier: Apache-2.0 */
/* file_name: the name of a file, by what the kernel side took of it (abi/file.h). Any bytes: for people, plain_text makes it safe. */
#pragma once
#include <stddef.h>

#include "abi/file.h"
#include "base/buffer.h"

/* Appends the parts of a path, from the root down, "/a/b"; the root itself is "/". `parts`: each with its NUL, leaf first. */
void file_name_parts(struct buffer *name, const struct sonde_file_text *file, const char *parts, size_t bytes);
/* Appends the name of a file: its path, or what it is: "pipe:[17]", "TCP 10.0.0.1:4711->10.0.0.2:80". `text`: file->bytes of it. */
void file_name(struct buffer *name, const struct sonde_file_text *file, const char *text);
