/* SPDX-License-Identifier: Apache-2.0 */
/* gunzip: gzip members (RFC 1952), one or several, to bytes. */
#pragma once
#include <stddef.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/diag.h"

/* Appends to the buffer, whose `max` bounds what comes out. 0; -EBADMSG: damaged or cut off; -EFBIG; -ENOMEM. */
MUST_CHECK int gunzip(const void *bytes, size_t size, struct buffer *buffer, struct diag *diag);
