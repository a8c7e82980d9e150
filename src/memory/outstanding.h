/* SPDX-License-Identifier: Apache-2.0 */
/* outstanding: the blocks that are allocated at one moment, summed by the process and stack that asked for them. One thread adds; any may
 * read once nothing is added any more. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "abi/alloc.h"
#include "base/cleanup.h"
#include "stacks/stack_ids.h"

struct outstanding_key { /* has no padding */
	struct stack_ids ids;
	uint64_t addr;          /* of the block, where each is kept; else 0 */
};

struct outstanding_sum {
	struct outstanding_key key;
	uint64_t nr, bytes;             /* old enough to be reported */
	uint64_t nr_young, bytes_young; /* and not */
	uint64_t growth;                /* bytes per hour, of a suspect (memory/suspects.h); else 0 */
	char comm[SONDE_COMM_BYTES];    /* of the process */
};

struct outstanding;
struct outstanding *outstanding_new(bool keeps_each); /* NULL: no memory */
void outstanding_free(struct outstanding *outstanding); /* takes NULL */
struct outstanding_block {
	struct stack_ids ids;
	uint64_t addr, bytes;
	uint32_t weight;      /* it stands for so many */
	const char *comm;     /* of the process */
	bool is_old;          /* reported */
};
MUST_CHECK int outstanding_add(struct outstanding *outstanding, const struct outstanding_block *block); /* 0 or -ENOMEM */
uint32_t outstanding_nr(const struct outstanding *outstanding);
/* Borrowed until the next is added; writable, except for the key. */
struct outstanding_sum *outstanding_at(const struct outstanding *outstanding, uint32_t i);
