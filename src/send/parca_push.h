/* SPDX-License-Identifier: Apache-2.0 */
/* parca_push: how a profile is sent to Parca: parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw (parca's
 * profilestore/v1alpha1/profilestore.proto), a unary call of gRPC, with one series and one pprof. */
#pragma once
#include "send/push.h"
#include "send/series_labels.h"

/* Labels, the settings of the type: __name__ (sonde), node (this host), and the user's. 0, or -EINVAL with a line. */
MUST_CHECK int parca_labels_init(struct series_labels *labels, const char *const *texts, uint32_t nr, struct diag *diag);

extern const struct push_type parca_push;
