/* SPDX-License-Identifier: Apache-2.0 */
/* agent_counters: counters of the whole machine (sonde/counter.h) that the agent's pages have beside its own numbers. They count all the
 * time: no window costs anything. Any thread. */
#pragma once
#include <stdint.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "codec/json.h"

struct agent_counters;
/* `names`: as of struct sonde_counter_options. Counts from now on. Events that this machine lacks are said on stderr, once. 0; -EINVAL with
 * a line: nonsense, or none of them can be counted. */
MUST_CHECK int agent_counters_new(const char *names, struct diag *diag, struct agent_counters **ret_counters);
void agent_counters_free(struct agent_counters *counters); /* takes NULL */
void agent_counters_metrics(struct agent_counters *counters, struct buffer *buffer); /* for Prometheus; NULL: nothing */
void agent_counters_text(struct agent_counters *counters, struct buffer *buffer);    /* a line; likewise */
void agent_counters_json(struct agent_counters *counters, struct json *json);        /* the key "counters" and its list; likewise empty */
