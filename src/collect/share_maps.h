/* SPDX-License-Identifier: Apache-2.0 */
/* share_maps: programs of several objects that work together. */
#pragma once
#include <bpf/libbpf.h>

#include "base/cleanup.h"

/* Beside the maps that are always shared. */
enum share_what {
	SHARE_NO_MORE,
	SHARE_TRIGGER, /* the list of programs that it goes on to: each trigger has its own */
};

/* Before the object is loaded: its maps become those of the same name of `other`, which is. 0 or what libbpf gave. */
MUST_CHECK int share_maps(struct bpf_object *object, const struct bpf_object *other, enum share_what also);
