/* SPDX-License-Identifier: Apache-2.0 */
/* metrics_text: lines of Prometheus's text format, version 0.0.4. */
#pragma once
#include <stdint.h>

#include "base/buffer.h"

/* Begins a family. `type`: "counter", "gauge". */
void metrics_head(struct buffer *buffer, const char *name, const char *type, const char *help);
/* A label, after `before` ("{" or ","). */
void metrics_label(struct buffer *buffer, const char *before, const char *label, const char *value);
/* A family of one number. */
void metrics_number(struct buffer *buffer, const char *name, const char *type, const char *help, uint64_t number);
