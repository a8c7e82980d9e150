// SPDX-License-Identifier: Apache-2.0
#include "cli/plain_format.h"

#include <errno.h>
#include <string.h>

#include "base/suffix.h"

const char *plain_format_at(uint32_t i)
{
	static const char *const names[] = { "text", "json" };

	return i < ARRAY_SIZE(names) ? names[i] : NULL;
}

int plain_format_choose(const char *format, const char *path, struct diag *diag, bool *ret_is_json)
{
	if (format && strcmp(format, "text") && strcmp(format, "json"))
		return diag_errno(diag, EINVAL, "there is no format '%.60s': --format takes one of text, json", format);
	*ret_is_json = format ? !strcmp(format, "json") : path && has_suffix(path, strlen(path), ".json");
	return 0;
}
