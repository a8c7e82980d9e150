/* SPDX-License-Identifier: Apache-2.0 */
/* frozen_row: adds a row of the flight recorder to the agent's store. Any thread. */
#pragma once
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "store/store.h"

struct frozen_row {
	const char *type;                   /* STORE_INCIDENT or STORE_CRASH */
	uint64_t start_unix_ns, duration_ns;
	const void *body;                   /* JSON */
	size_t body_bytes;
};

/* Under the store's lock. 0 or a negative errno, as store_add. */
MUST_CHECK int frozen_row_add(const struct frozen_row *row, struct store *store, pthread_mutex_t *store_lock, struct diag *diag);
