/* SPDX-License-Identifier: Apache-2.0 */
/* sums_map: a hash map in which BPF programs sum, emptied while they do: they reach it through an array of one map, and user space replaces
 * it there. One thread. */
#pragma once
#include <bpf/libbpf.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "collect/map_read.h"

struct sums_map {
	int fd;	      /* the one in use; -1: none */
	int outer_fd; /* borrowed */
	uint32_t key_bytes, value_bytes, max;
};

#define SUMS_MAP_NONE \
	{ \
		.fd = -1 \
	}

/* Creates the first map, in `outer` (BPF_MAP_TYPE_ARRAY_OF_MAPS with one entry; borrowed). 0 or -errno. */
MUST_CHECK int sums_map_init(struct sums_map *sums, const struct bpf_map *outer, uint32_t key_bytes, uint32_t value_bytes, uint32_t max,
			     struct diag *diag);
void sums_map_done(struct sums_map *sums);
/* Puts an empty map in its place. The old one, to which nobody writes any more, is *ret_fd: the caller closes it. 0 or -errno. */
MUST_CHECK int sums_map_turn(struct sums_map *sums, int *ret_fd);
