/* SPDX-License-Identifier: Apache-2.0 */
/* load_failure: why the kernel took a BPF object not. */
#pragma once
#include <stdbool.h>

#include "base/cleanup.h"
#include "base/diag.h"

/* Asked before anything is loaded: does the kernel let this user make maps at all, as long as there is memory for them? */
bool load_can_make_maps(void);
/* The same for descriptors: libbpf tries out what the kernel can, takes a want of descriptors for the kernel's, and never asks again in
 * this process. 0 or -EMFILE. */
MUST_CHECK int load_check_descriptors(struct diag *diag);
/* Says why the loading failed with `err` (negative), and gives the error that it amounts to. Kernels before 5.11 count what is loaded as
 * locked memory, and give it back later; libbpf raises the limit where it may. */
int load_failed(int err, bool can_make_maps, const char *oldest_kernel, struct diag *diag);
