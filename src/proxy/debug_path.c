// SPDX-License-Identifier: Apache-2.0
#include "proxy/debug_path.h"

#include <string.h>

#include "base/suffix.h"

/* Length of the path up to its last slash. */
static size_t directory_size(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (size_t)(slash - path) : 0;
}

static bool is_beside(const char *path, const char *of)
{
	size_t size = directory_size(path), of_size = directory_size(of);

	if (has_suffix(path, size, "/.debug"))
		size -= strlen("/.debug");
	return *of == '/' && size == of_size && !memcmp(path, of, size);
}

bool debug_path_is_below_prefix(const char *path)
{
	return !strncmp(path, DEBUG_PATH_PREFIX, strlen(DEBUG_PATH_PREFIX)) && !strstr(path, "/../");
}

bool debug_path_is_one(const char *path, const char *of)
{
	size_t size = strlen(path);

	return debug_path_is_below_prefix(path) || has_suffix(path, size, ".dwo") || has_suffix(path, size, ".dwp") ||
	       has_suffix(path, directory_size(path), "/.dwz") || (of && is_beside(path, of));
}
