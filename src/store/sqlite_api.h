/* SPDX-License-Identifier: Apache-2.0 */
/* sqlite_api: the functions of SQLite that the store uses, loaded on demand (base/library.h). */
#pragma once
#include <sqlite3.h>

#include "base/cleanup.h"
#include "base/diag.h"

#define SQLITE_API_LIST(X) \
	X(bind_blob) X(bind_blob64) X(bind_int64) X(bind_text) X(busy_timeout) X(changes) X(close) X(column_blob) X(column_bytes) \
	X(column_int64) X(column_text) X(errmsg) X(exec) X(finalize) X(open_v2) X(prepare_v2) X(step)

struct sqlite_api {
#define X(name) __typeof__(sqlite3_##name) *name;
	SQLITE_API_LIST(X)
#undef X
};

/* Loads SQLite for the life of the process. 0 or -ELIBACC, with a line. */
MUST_CHECK int sqlite_api_load(struct sqlite_api *ret_api, struct diag *diag);
