/* SPDX-License-Identifier: Apache-2.0 */
/* target_map: the ids that BPF programs filter by (bpf/lib/filter.h). */
#pragma once
#include <stdint.h>

#include <bpf/libbpf.h>

#include "base/cleanup.h"
#include "base/diag.h"

/* 0 or -errno. */
MUST_CHECK int target_map_fill(const struct bpf_map *targets, const uint32_t *ids, uint32_t nr, struct diag *diag);
