/* SPDX-License-Identifier: Apache-2.0 */
/* gzip: packs bytes into a gzip member without name and time, so equal bytes give equal files. */
#pragma once
#include <stddef.h>

#include "base/buffer.h"
#include "base/cleanup.h"

#define GZIP_FAST 1  /* for a file, beside which a program waits */
#define GZIP_SMALL 6 /* for what is sent */

/* Appends to the buffer, which also has its own sticky error. `level`: of zlib. 0, -ENOMEM or -EFBIG. */
MUST_CHECK int gzip(const void *bytes, size_t size, int level, struct buffer *buffer);
