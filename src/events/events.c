// SPDX-License-Identifier: Apache-2.0
#include "events/events.h"

#include <errno.h>
#include <stdlib.h>

uint32_t *targets_ids(const struct targets *targets)
{
	uint32_t *ids = calloc(targets->nr ?: 1, sizeof(*ids));

	for (uint32_t i = 0; ids && i < targets->nr; i++)
		ids[i] = targets->list[i].tid ? targets->list[i].tid : targets->list[i].tgid;
	return ids;
}

int events_account(const struct measurement *measurement, uint64_t start_unix_ns, uint64_t duration_ns, struct profile **ret_profile)
{
	struct profile *profile = profile_new();

	if (!profile)
		return -ENOMEM;
	*profile_account(profile) = *measurement->parts.account;
	profile_account(profile)->start_unix_ns = start_unix_ns;
	profile_account(profile)->duration_ns = duration_ns;
	*ret_profile = profile;
	return 0;
}
