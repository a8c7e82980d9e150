/* SPDX-License-Identifier: Apache-2.0 */
/* What the readers of OTLP's protocol buffers and of its JSON share. */
#pragma once
#include "importer/importer.h"

/* Reads a message of opentelemetry-proto 1.10 or newer that is not the file itself, so positions in it mean nothing. In otlp.c. 0,
 * -EBADMSG, -EFBIG or -ENOMEM. */
MUST_CHECK int otlp_read_message(struct importer *importer, const void *bytes, size_t size);
