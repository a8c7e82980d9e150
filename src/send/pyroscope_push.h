/* SPDX-License-Identifier: Apache-2.0 */
/* pyroscope_push: how a profile is sent to Grafana Pyroscope: push.v1.PusherService/Push (pyroscope/api/push/v1/push.proto), a unary call
 * of the Connect protocol, with one series and one pprof. */
#pragma once
#include "send/push.h"
#include "send/series_labels.h"

/* Labels, the settings of the type, which each series has: __name__ (process_cpu), service_name (sonde), hostname, and __session_id__, by
 * which the server tells the profiles of two agents apart that have all others alike. `texts`: the user's, NAME=VALUE, which replace those.
 * 0, or -EINVAL with a line. */
MUST_CHECK int pyroscope_labels_init(struct series_labels *labels, const char *const *texts, uint32_t nr, struct diag *diag);

extern const struct push_type pyroscope_push;
