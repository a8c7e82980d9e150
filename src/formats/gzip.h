/* SPDX-License-Identifier: Apache-2.0 */
/* gzip: bytes to a gzip member without name and time, so that equal bytes give equal files. */
#pragma once
#include <stddef.h>

#include "base/buffer.h"
#include "base/cleanup.h"

/* Appends to the buffer, whose own error is sticky as ever. 0, -ENOMEM or -EFBIG. */
MUST_CHECK int gzip(const void *bytes, size_t size, struct buffer *buffer);
