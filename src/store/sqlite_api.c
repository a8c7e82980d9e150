// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite_api.h"

#include <dlfcn.h>
#include <errno.h>

#include "base/library.h"

#define LIBRARY "libsqlite3.so.0"

int sqlite_api_load(struct sqlite_api *ret_api, struct diag *diag)
{
	const struct library_function functions[] = {
#define X(name) { "sqlite3_" #name, &ret_api->name },
		SQLITE_API_LIST(X)
#undef X
	};
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	const char *missing;

	if (!library)
		return diag_errno(diag, ELIBACC, "the store needs %s: install it (Debian: libsqlite3-0)", LIBRARY);
	missing = library_functions(library, functions, ARRAY_SIZE(functions));
	return missing ? diag_errno(diag, ELIBACC, "%s has no %s", LIBRARY, missing) : 0;
}
