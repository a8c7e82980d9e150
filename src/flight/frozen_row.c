// SPDX-License-Identifier: Apache-2.0
#include "flight/frozen_row.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

int frozen_row_add(const struct frozen_row *row, struct store *store, pthread_mutex_t *store_lock, struct diag *diag)
{
	struct store_row of_store = {
		.start_ns = row->start_unix_ns,
		.end_ns = row->start_unix_ns + row->duration_ns,
		.type = (char *)(uintptr_t)row->type,
		.body = (void *)(uintptr_t)row->body,
		.body_bytes = row->body_bytes,
	};
	int err;

	if (getrandom(of_store.profile_id, sizeof(of_store.profile_id), 0) != sizeof(of_store.profile_id))
		return diag_errno(diag, errno, "no random numbers: %s", strerror(errno));
	pthread_mutex_lock(store_lock);
	err = store_add(store, &of_store, diag);
	pthread_mutex_unlock(store_lock);
	return err;
}
