/* SPDX-License-Identifier: Apache-2.0 */
/* gzip: packs bytes into a gzip member without name and time, so equal bytes give equal files. */
#pragma once
#include <stddef.h>

#include "base/buffer.h"
#include "base/cleanup.h"

/* Appends to the buffer, which also has its own sticky error. 0, -ENOMEM or -EFBIG. */
MUST_CHECK int gzip(const void *bytes, size_t size, struct buffer *buffer);
