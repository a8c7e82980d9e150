/* SPDX-License-Identifier: Apache-2.0 */
/* object_cost: what the programs and maps of a BPF object cost, as the kernel counts it. */
#pragma once
#include <bpf/libbpf.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"

/* The kernel measures the programs' run time while the descriptor is open (about 20 ns per run). Returns 0 and *ret_fd; -EPERM; other
 * errors: this kernel (before 5.8) cannot. */
MUST_CHECK int object_cost_begin(struct diag *diag, int *ret_fd);
/* Run time of its programs since they were loaded, with the programs that they tail-called. */
uint64_t object_cost_ns(const struct bpf_object *object);
/* How often a program was not run, as it was at work on the CPU; 0: not loaded, or not known. */
uint64_t program_nr_misses(const struct bpf_program *program);
/* Kernel memory of its maps, without those shared with `other`, which may be NULL. */
uint64_t object_map_bytes(const struct bpf_object *object, const struct bpf_object *other);
uint64_t map_bytes(int map_fd);
