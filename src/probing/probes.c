// SPDX-License-Identifier: Apache-2.0
#include "probing/probes.h"

#include <errno.h>
#include <string.h>

int probes_parse(const char *text, bool latency, uint32_t tgid, struct diag *diag, struct probes *ret_probes)
{
	const char *at = text;
	int err = kernel_types_new(diag, &ret_probes->types);

	while (!err) {
		size_t size = strcspn(at, ",");
		struct probe_spec *spec = &ret_probes->list[ret_probes->nr];

		if (ret_probes->nr == MAX_PROBES)
			return diag_errno(diag, EINVAL, "%d probes at most", MAX_PROBES);
		err = probe_spec_parse(at, size, latency, ret_probes->types, diag, spec);
		if (err)
			return err;
		ret_probes->nr++;
		if (tgid)
			spec->trigger.tgid = spec->end.tgid = (pid_t)tgid;
		at += size;
		if (!*at++)
			break;
	}
	return err;
}

void probes_done(struct probes *probes)
{
	for (uint32_t i = 0; i < probes->nr; i++)
		probe_spec_done(&probes->list[i]);
	kernel_types_free(probes->types);
}
