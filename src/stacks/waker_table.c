// SPDX-License-Identifier: Apache-2.0
#include "stacks/waker_table.h"

#include <errno.h>
#include <string.h>

#include "base/buffer.h"
#include "base/u64_map.h"

#define WAKERS_BYTES_MAX ((size_t)1 << 30)

struct waker_table {
	struct buffer wakers; /* struct waker each */
	struct u64_map by_hash;
};

struct waker_table *waker_table_new(void)
{
	struct waker_table *table = calloc(1, sizeof(*table));

	if (table)
		table->wakers = BUFFER_INIT(WAKERS_BYTES_MAX);
	return table;
}

void waker_table_free(struct waker_table *table)
{
	if (!table)
		return;
	buffer_done(&table->wakers);
	u64_map_done(&table->by_hash);
	free(table);
}

static struct waker *find(const struct waker_table *table, uint64_t hash)
{
	const uint32_t *number = u64_map_find(&table->by_hash, hash);

	return number ? (struct waker *)table->wakers.data + *number : NULL;
}

int waker_table_copy(struct waker_table *table, uint64_t hash, const struct waker *waker)
{
	uint32_t number = (uint32_t)(table->wakers.size / sizeof(*waker));

	buffer_append(&table->wakers, waker, sizeof(*waker));
	return table->wakers.err ? -ENOMEM : u64_map_add(&table->by_hash, hash, number);
}

int waker_table_record(struct waker_table *table, const struct sonde_waker_record *record)
{
	struct waker *known = find(table, record->hash);

	if (!known)
		return waker_table_copy(table, record->hash, &(struct waker){ .key = record->waker });
	known->is_disputed |= memcmp(&known->key, &record->waker, sizeof(known->key)) != 0; /* sent again: must be the same */
	return 0;
}

size_t waker_table_bytes(const struct waker_table *table)
{
	return table->wakers.size;
}

const struct waker *waker_table_find(const struct waker_table *table, uint64_t hash)
{
	return find(table, hash);
}
