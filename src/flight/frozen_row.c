// SPDX-License-Identifier: Apache-2.0
#include "flight/frozen_row.h"

int frozen_row_add(const struct frozen_row *row, struct store *store, pthread_mutex_t *store_lock, struct diag *diag)
{
	struct store_row of_store = {
		.start_ns = row->start_unix_ns,
		.end_ns = row->start_unix_ns + row->duration_ns,
		.type = (char *)(uintptr_t)row->type,
		.body = (void *)(uintptr_t)row->body,
		.body_bytes = row->body_bytes,
	};
	int err = store_draw_id(&of_store, diag);

	if (err)
		return err;
	pthread_mutex_lock(store_lock);
	err = store_add(store, &of_store, diag);
	pthread_mutex_unlock(store_lock);
	return err;
}
