// SPDX-License-Identifier: Apache-2.0
#include "process/debug_path.h"

#include <string.h>

static bool ends_with(const char *text, size_t size, const char *end)
{
	size_t end_size = strlen(end);

	return size > end_size && !memcmp(text + size - end_size, end, end_size);
}

/* Up to the last slash. */
static size_t directory_size(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (size_t)(slash - path) : 0;
}

static bool is_beside(const char *path, const char *of)
{
	size_t size = directory_size(path), of_size = directory_size(of);

	if (ends_with(path, size, "/.debug"))
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

	return debug_path_is_below_prefix(path) || ends_with(path, size, ".dwo") || ends_with(path, size, ".dwp") || ends_with(path, directory_size(path), "/.dwz") ||
	       (of && is_beside(path, of));
}
