/* SPDX-License-Identifier: Apache-2.0 */
/* sky_stacks: the stacks of a window as SkyWalking takes them: names alone, equal ones merged (its server loses one of two records with the
 * same names and count), with their counts. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "base/u64_map.h"
#include "skywalking/sky_wire.h"

struct sky_stack {
	size_t first, bytes; /* its names in `names`: the kernel's, then the user's, each leaf first and NUL-terminated */
	uint32_t nr_kernel, nr_user;
	int64_t count, duration_ns; /* duration: of waits */
};

struct sky_stacks {
	struct buffer names;
	struct sky_stack *all;
	uint32_t nr, max;
	struct u64_map index;
	uint64_t nr_without; /* samples that have neither side: they are not sent */
	uint64_t start_unix_ns, duration_ns;
};

void sky_stacks_done(struct sky_stacks *stacks);
/* Reads a profile in sonde's JSON lines. 0; -ENOMEM; -EFBIG: too many names; -EBADMSG: it is no such profile. `stacks` is to be done with
 * in any case. */
MUST_CHECK int sky_stacks_read(struct sky_stacks *stacks, const void *lines, size_t size, struct diag *diag);
/* Passes on the stacks as records, those with larger counts than a record holds as several, with different counts. 0 or what `take`
 * returned. */
MUST_CHECK int sky_stacks_records(const struct sky_stacks *stacks, int (*take)(void *arg, const struct sky_record *record), void *arg);
