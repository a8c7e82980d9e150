/* SPDX-License-Identifier: Apache-2.0 */
/* waker_table: the threads that ended waits, by the hashes in the waits' keys. One thread adds; any thread may read once nothing is added
 * any more. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "abi/wait.h"
#include "base/cleanup.h"

struct waker {
	struct sonde_wait_key key;
	bool is_disputed; /* another waker has the same hash */
};

struct waker_table;
struct waker_table *waker_table_new(void); /* NULL: no memory */
void waker_table_free(struct waker_table *table); /* takes NULL */
/* Copies the record. 0 or -ENOMEM. */
MUST_CHECK int waker_table_record(struct waker_table *table, const struct sonde_waker_record *record);
/* Adds a waker of another table. 0 or -ENOMEM. */
MUST_CHECK int waker_table_copy(struct waker_table *table, uint64_t hash, const struct waker *waker);
size_t waker_table_bytes(const struct waker_table *table);
/* Borrowed until the next is added; NULL: it has not arrived. */
const struct waker *waker_table_find(const struct waker_table *table, uint64_t hash);
