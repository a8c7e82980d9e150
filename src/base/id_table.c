// SPDX-License-Identifier: Apache-2.0
#include "base/id_table.h"

#include <errno.h>

int id_table_init(struct id_table *table, uint64_t nr)
{
	uint64_t nr_dense = nr + nr / 2 + 64;
	uint32_t *dense = calloc(nr_dense, sizeof(*dense));

	if (!dense)
		return -ENOMEM;
	*table = (struct id_table){ .dense = dense, .nr_dense = nr_dense };
	return 0;
}

void id_table_done(struct id_table *table)
{
	free(table->dense);
	u64_map_done(&table->sparse);
}

int id_table_add(struct id_table *table, uint64_t id, uint32_t number)
{
	uint32_t known;

	if (id_table_find(table, id, &known))
		return 0;
	if (id >= table->nr_dense)
		return u64_map_add(&table->sparse, id, number);
	table->dense[id] = number + 1;
	return 0;
}

bool id_table_find(const struct id_table *table, uint64_t id, uint32_t *ret_number)
{
	const uint32_t *found;

	if (id < table->nr_dense) {
		*ret_number = table->dense[id] - 1;
		return table->dense[id] != 0;
	}
	found = u64_map_find(&table->sparse, id);
	if (found)
		*ret_number = *found;
	return found != NULL;
}
