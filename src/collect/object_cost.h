/* SPDX-License-Identifier: Apache-2.0 */
/* object_cost: what the programs and maps of a BPF object cost, by the kernel's own account. */
#pragma once
#include <bpf/libbpf.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"

/* The kernel keeps account of programs' time while the descriptor is open (about 20 ns each run). *ret_fd; -EPERM; others: this kernel
 * (before 5.8) cannot. */
MUST_CHECK int object_cost_begin(struct diag *diag, int *ret_fd);
uint64_t
object_cost_ns(const struct bpf_object *object); /* of all runs of its programs since they were loaded, with those that they went on to */
uint64_t
object_map_bytes(const struct bpf_object *object,
		 const struct bpf_object *other); /* kernel memory of its maps; those that are `other`'s, which may be NULL, are left out */
uint64_t map_bytes(int map_fd);
