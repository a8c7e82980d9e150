/* SPDX-License-Identifier: Apache-2.0 */
/* base64: reads the alphabet of RFC 4648 section 4, with or without padding, as gRPC's binary headers have it. */
#pragma once
#include <stddef.h>

#include "base/cleanup.h"

/* Writes at most `room` bytes. 0; -EBADMSG: it is none; -ENOSPC. */
MUST_CHECK int base64_read(const char *text, void *bytes, size_t room, size_t *ret_size);
