/* SPDX-License-Identifier: Apache-2.0 */
/* series_labels: the labels of a series of profiles, as Prometheus, Pyroscope and Parca have them. */
#pragma once
#include <stdint.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/diag.h"

#define SERIES_MAX_LABELS 68
#define SERIES_NAME_BYTES 64

struct series_label {
	char name[SERIES_NAME_BYTES];
	char value[256];
};

struct series_labels { /* by name */
	struct series_label list[SERIES_MAX_LABELS];
	uint32_t nr;
};

/* `defaults`, NULL ends, and then `texts`, the user's, which replace those of the same name: NAME=VALUE each. 0, or -EINVAL with a line. */
MUST_CHECK int series_labels_init(struct series_labels *labels, const char *const *defaults, const char *const *texts, uint32_t nr,
				  struct diag *diag);
/* Appends each as a message in `field`: 1 name, 2 value. Errors are the buffer's. */
void series_labels_write(const struct series_labels *labels, uint32_t field, struct buffer *buffer);
