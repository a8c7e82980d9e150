// SPDX-License-Identifier: Apache-2.0
#include "collect/target_map.h"

#include <bpf/bpf.h>
#include <string.h>

int target_map_fill(const struct bpf_map *targets, const uint32_t *ids, uint32_t nr, struct diag *diag)
{
	const uint8_t yes = 1;

	for (uint32_t i = 0; i < nr; i++) {
		int err = bpf_map_update_elem(bpf_map__fd(targets), &ids[i], &yes, BPF_ANY);

		if (err)
			return diag_errno(diag, -err, "cannot tell the kernel the process ids: %s", strerror(-err));
	}
	return 0;
}
