/* SPDX-License-Identifier: Apache-2.0 */
/* load_failure: finds out why the kernel rejected a BPF object. */
#pragma once
#include <stdbool.h>

#include "base/cleanup.h"
#include "base/diag.h"

/* Call it before anything is loaded. True if the kernel lets this user create maps, as far as there is memory for them. */
bool load_can_make_maps(void);
/* The same for descriptors. libbpf probes kernel features, takes a lack of descriptors for a missing feature, and never probes again in
 * this process. 0 or -EMFILE. */
MUST_CHECK int load_check_descriptors(struct diag *diag);
/* Explains in `diag` why loading failed with `err` (negative), and returns the error to report. Kernels before 5.11 charge what is loaded
 * to locked memory and release it late; libbpf raises the limit where it may. */
int load_failed(int err, bool can_make_maps, const char *oldest_kernel, struct diag *diag);
