// SPDX-License-Identifier: Apache-2.0
#include "frames/mark_kind.h"

#include <string.h>

#include "model/profile.h"
#include "model/wait_kind.h"

/* A wait for the start of a program and a stack that ended there have one name: then it is the end of a stack. */
static bool is_stop(const char *name)
{
	for (int i = 0; i < SONDE_STOP_COUNT; i++) {
		if (!strcmp(name, stop_mark((enum sonde_stop)i)))
			return true;
	}
	return false;
}

enum mark_kind mark_kind_of(const char *name)
{
	static const char blocked[] = PROFILE_BLOCKED; /* with a hole for the kind */
	size_t size = strlen(name);

	if (*name != '[') /* all others are in brackets: what waits was woken by a thread of this name */
		return MARK_WAKER;
	if (!strcmp(name, PROFILE_ON_CPU))
		return MARK_RUNNING;
	if (!strcmp(name, PROFILE_RUNNABLE))
		return MARK_READY;
	if (!strncmp(name, blocked, sizeof(blocked) - sizeof("%s]")))
		return MARK_BLOCKED;
	if (!strcmp(name, PROFILE_INTERRUPT))
		return MARK_WAKER;
	return size > 2 && !is_stop(name) && wait_kind_by_name(name + 1, size - 2) != WAIT_KIND_COUNT ? MARK_WAIT : MARK_CUT;
}

const char *mark_kind_name(enum mark_kind kind)
{
#define X(id, name) name,
	static const char *const names[] = { MARK_KIND_LIST(X) };
#undef X
	return names[kind];
}
