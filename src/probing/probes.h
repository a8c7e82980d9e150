/* SPDX-License-Identifier: Apache-2.0 */
/* probes: the list of probes that `trace` was given, parsed. One thread. */
#pragma once
#include "probing/probe_spec.h"

#define MAX_PROBES 16

struct probes {
	struct kernel_types *types;
	struct probe_spec list[MAX_PROBES];
	uint32_t nr;
};

/* `text`: separated by commas. `tgid`: user functions in this process alone; 0: in all. As probe_spec_parse; to be freed after a failure,
 * too. */
MUST_CHECK int probes_parse(const char *text, bool latency, uint32_t tgid, struct diag *diag, struct probes *ret_probes);
void probes_done(struct probes *probes);
