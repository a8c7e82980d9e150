// SPDX-License-Identifier: Apache-2.0
#include "base/caller.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/number.h"

bool caller_is_us(uint32_t uid)
{
	return !uid || uid == geteuid();
}

bool caller_is(uint32_t uid)
{
	const char *text = getenv("SUDO_UID"); /* NOLINT: nobody changes the environment */
	uint64_t caller;

	return caller_is_us(uid) || (text && !number_u64(text, UINT32_MAX - 1, &caller) && uid == caller);
}
