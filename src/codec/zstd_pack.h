/* SPDX-License-Identifier: Apache-2.0 */
/* zstd_pack: packs bytes into a frame of zstd, which says how large they are. */
#pragma once
#include <stddef.h>

#include "base/buffer.h"
#include "base/cleanup.h"

/* Appends to the buffer, which also has its own sticky error. 0, -ENOMEM or -EFBIG. */
MUST_CHECK int zstd_pack(const void *bytes, size_t size, struct buffer *buffer);
