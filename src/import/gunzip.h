/* SPDX-License-Identifier: Apache-2.0 */
/* gunzip: unpacks one or several gzip members (RFC 1952). */
#pragma once
#include <stddef.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/diag.h"

/* Appends the unpacked bytes to the buffer; buffer->max limits them. 0; -EBADMSG: damaged or cut off; -EFBIG; -ENOMEM. */
MUST_CHECK int gunzip(const void *bytes, size_t size, struct buffer *buffer, struct diag *diag);
