/* SPDX-License-Identifier: Apache-2.0 */
/* span_label: the labels that say which request a sample belongs to: its trace and its span, in lower-case hexadecimal digits as in W3C
 * Trace Context. */
#pragma once
#include "model/profile.h"

#define SPAN_LABEL_TRACE "trace_id"
#define SPAN_LABEL_SPAN	 "span_id"
#define SPAN_TRACE_BYTES 16
#define SPAN_BYTES	 8

struct span_ids { /* strings of the profile; PROFILE_NONE: there is none */
	uint32_t trace, span;
};

/* Of a set of labels. */
struct span_ids span_ids_of(const struct profile *profile, uint32_t labels);
