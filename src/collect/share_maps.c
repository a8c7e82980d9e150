// SPDX-License-Identifier: Apache-2.0
#include "collect/share_maps.h"

#include <string.h>

int share_maps(struct bpf_object *object, const struct bpf_object *other, enum share_what also)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, object) {
		const char *name = bpf_map__name(map);
		const struct bpf_map *shared = bpf_object__find_map_by_name(other, name);
		bool is_own = bpf_map__is_internal(map) || (!strcmp(name, "sonde_rt_progs") && also != SHARE_TRIGGER);
		int err = shared && !is_own ? bpf_map__reuse_fd(map, bpf_map__fd(shared)) : 0;

		if (err)
			return err;
	}
	return 0;
}
