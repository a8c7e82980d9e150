/* SPDX-License-Identifier: Apache-2.0 */
/* share_maps: programs of several objects that work together. */
#pragma once
#include <stdbool.h>

#include <bpf/libbpf.h>

#include "base/cleanup.h"

/* Before the object is loaded: its maps become those of the same name of `other`, which is. Each trigger has its own list of programs that it goes on to; the working memory is that of the sampler, where a
 * tick may strike while a switch is looked at, or shared. 0 or what libbpf gave. */
MUST_CHECK int share_maps(struct bpf_object *object, const struct bpf_object *other, bool shares_scratches);
