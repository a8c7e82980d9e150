// SPDX-License-Identifier: Apache-2.0
#include "cli/runtimes_option.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <sonde/sonde.h>

const char *runtimes_option_name_at(uint32_t i)
{
	return i ? sonde_runtime_name(i - 1) : "none";
}

static const char *name_at(const void *names, size_t i)
{
	return runtimes_option_name_at((uint32_t)i);
}

static bool is_known(const char *name, bool is_alone)
{
	if (!strcmp(name, "none") || !strcmp(name, "all"))
		return is_alone;
	for (uint32_t i = 0; sonde_runtime_name(i); i++) {
		const char *alias = sonde_runtime_alias(i);

		if (!strcmp(name, sonde_runtime_name(i)) || (alias && !strcmp(name, alias)))
			return true;
	}
	return false;
}

/* Did you mean ...? Or all that there are. */
static int refuse(const char *name, struct diag *diag)
{
	const char *nearest = option_nearest(name, name_at, NULL);
	char known[256] = "";

	if (nearest)
		return diag_errno(diag, EINVAL, "runtimes: there is no language '%s': did you mean %s?", name, nearest);
	for (uint32_t i = 1; runtimes_option_name_at(i); i++)
		snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s%s", i > 1 ? ", " : "", runtimes_option_name_at(i));
	return diag_errno(diag, EINVAL, "runtimes: there is no language '%s', but %s", name, known);
}

int runtimes_option_check(const char *list, struct diag *diag)
{
	char name[40];

	for (const char *at = list; at; at = *at ? at + 1 : NULL) {
		size_t size = strcspn(at, ",");

		snprintf(name, sizeof(name), "%.*s", (int)size, at);
		at += size;
		if (is_known(name, at == list + size && !*at))
			continue;
		if (!strcmp(name, "none") || !strcmp(name, "all"))
			return diag_errno(diag, EINVAL, "runtimes: %s stands alone", name);
		return refuse(name, diag);
	}
	return 0;
}
