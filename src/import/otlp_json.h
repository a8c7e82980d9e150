/* SPDX-License-Identifier: Apache-2.0 */
/* What the reader of OTLP's protocol buffers shares with that of its JSON. */
#pragma once
#include "import/importer.h"

/* In otlp.c. A message of opentelemetry-proto 1.10 or newer that is not the file itself: places in it say nothing. 0, -EBADMSG, -EFBIG or
 * -ENOMEM. */
MUST_CHECK int otlp_read_message(struct importer *importer, const void *bytes, size_t size);
