// SPDX-License-Identifier: Apache-2.0
#include "base/library.h"

#include <dlfcn.h>
#include <string.h>

const char *library_functions(void *library, const struct library_function *functions, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		void *function = dlsym(library, functions[i].name);

		if (!function)
			return functions[i].name;
		memcpy(functions[i].to, &function, sizeof(function)); /* ISO C has no conversion between object and function pointers */
	}
	return NULL;
}
