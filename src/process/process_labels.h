/* SPDX-License-Identifier: Apache-2.0 */
/* process_labels: what a process belongs to (identity/process_identity.h), as labels. Immutable and reference counted: samples of a window
 * that another thread reads keep them after the process has ended. Any thread. */
#pragma once
#include <stdint.h>

#include "base/cleanup.h"
#include "identity/process_identity.h"
#include "process/process_context.h"

#define PROCESS_LABELS_MAX (8 + 5 + ENVIRONMENT_MAX_NAMES)

struct process_label {
	const char *key, *text; /* neither is empty */
};

struct process_labels {
	uint32_t nr_refs, nr; /* of a kernel thread: none */
	uint32_t bytes;       /* of all of it */
	struct process_label list[]; /* sorted by key; the texts follow */
};

/* NULL: no memory. */
struct process_labels *process_labels_new(const struct process_identity *identity, const struct environment_names *names,
					  const struct environment_values *values);
/* Those of `own`, and what the process publishes of itself: name, namespace, version and instance of its service, and the deployment's
 * environment. What is published replaces what was found out. Other attributes stay where they are: nobody has allowed them to leave. NULL:
 * no memory. */
struct process_labels *process_labels_join(const struct process_labels *own, const struct process_context *context);
struct process_labels *process_labels_ref(struct process_labels *labels); /* takes NULL */
void process_labels_unref(struct process_labels *labels); /* takes NULL */
