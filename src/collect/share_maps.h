/* SPDX-License-Identifier: Apache-2.0 */
/* share_maps: maps shared by the programs of several objects. */
#pragma once
#include <bpf/libbpf.h>

#include "base/cleanup.h"

/* What to share besides the maps that are always shared. */
enum share_what {
	SHARE_NO_MORE,
	SHARE_TRIGGER, /* the list of programs to tail-call, which each trigger has of its own */
};

/* Call it before `object` is loaded: its maps become those of the same name in `other`, which is loaded. 0 or what libbpf returned. */
MUST_CHECK int share_maps(struct bpf_object *object, const struct bpf_object *other, enum share_what also);
