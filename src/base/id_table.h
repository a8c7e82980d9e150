/* SPDX-License-Identifier: Apache-2.0 */
/* id_table: maps a file's ids to our numbers. Ids mostly count up from 1, so they are looked up in an array; larger ones are in a map. One
 * thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/u64_map.h"

struct id_table {
	uint32_t *dense; /* indexed by id: our number + 1; 0: none */
	uint64_t nr_dense;
	struct u64_map sparse;
};

/* Room for `nr` entries. 0 or -ENOMEM. */
MUST_CHECK int id_table_init(struct id_table *table, uint64_t nr);
void id_table_done(struct id_table *table);
/* An id that was added before keeps its number. 0 or -ENOMEM. */
MUST_CHECK int id_table_add(struct id_table *table, uint64_t id, uint32_t number);
bool id_table_find(const struct id_table *table, uint64_t id, uint32_t *ret_number);
