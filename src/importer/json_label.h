/* SPDX-License-Identifier: Apache-2.0 */
/* json_label: reads a label of sonde's JSON: [key, text] or [key, number, unit]. */
#pragma once
#include "codec/json_read.h"
#include "importer/importer.h"

/* The reader is at the start of the list. `text` is a scratch buffer. False: the reader or the buffer has an error. */
bool json_label(struct importer *importer, struct json_reader *r, struct buffer *text, struct profile_label *ret_label);
