/* SPDX-License-Identifier: Apache-2.0 */
/* packed_body: a window's profile, compressed with zstd, as the store has it on disk. Any thread. */
#pragma once
#include <stddef.h>

#include "base/cleanup.h"
#include "base/diag.h"

#define STORE_MAX_BODY_BYTES ((size_t)256 << 20) /* of a row of the store */

/* *ret_packed is the caller's to free. 0; -EFBIG: larger than STORE_MAX_BODY_BYTES; -ENOMEM. */
MUST_CHECK int packed_body_make(const void *body, size_t size, struct diag *diag, void **ret_packed, size_t *ret_size);
/* *ret_body is the caller's to free. 0; -EUCLEAN: nothing that was packed; -ENOMEM. */
MUST_CHECK int packed_body_open(const void *packed, size_t size, struct diag *diag, void **ret_body, size_t *ret_size);
