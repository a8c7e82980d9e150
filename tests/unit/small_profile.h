/* SPDX-License-Identifier: Apache-2.0 */
/* small_profile: profiles of a few samples, written as text, for tests with results worked out by hand. */
#pragma once
#include <string.h>

#include "model/profile.h"

#define SMALL_MAX_FRAMES 16

/* Makes a stack of names separated by blanks, innermost first. A text with ESC, CR or LF is one frame. NULL: the stack does not exist. */
static inline uint32_t small_stack(struct profile *profile, const char *names, enum frame_kind kind)
{
	uint32_t frames[SMALL_MAX_FRAMES], nr = 0;
	bool is_list = names && !strpbrk(names, "\033\r\n");
	char *copy = names ? strdup(names) : NULL, *rest = copy;

	for (char *name; names && nr < SMALL_MAX_FRAMES && (name = is_list ? strsep(&rest, " ") : nr ? NULL : copy); nr++) {
		struct profile_function function = { .name = profile_string(profile, name),
						     .system_name = profile_string(profile, name),
						     .file = PROFILE_EMPTY_STRING };
		struct profile_mapping mapping = {
			.start_pc = 0x1000, .end_pc = 0x2000, .path = profile_string(profile, "/opt/app"), .build_id = PROFILE_EMPTY_STRING
		};
		struct profile_location location = { .function = profile_function(profile, &function),
						     .kind = kind,
						     .mapping = PROFILE_NONE,
						     .pc = 0x1100 + function.name };

		if (kind == FRAME_NATIVE)
			location.mapping = profile_mapping(profile, &mapping);
		frames[nr] = profile_location(profile, &location);
	}
	free(copy);
	return names ? profile_stack(profile, frames, nr) : PROFILE_NONE;
}

static inline void small_add(struct profile *profile, const char *comm, uint32_t tgid, const char *user, const char *kernel, int64_t value)
{
	struct profile_sample sample = {
		.tgid = tgid, .tid = tgid, .cpu = PROFILE_NONE, .comm = profile_string(profile, comm), .values = { value }
	};

	sample.user_stack = small_stack(profile, user, FRAME_NATIVE);
	sample.kernel_stack = small_stack(profile, kernel, FRAME_KERNEL);
	if (profile_add(profile, &sample))
		abort();
}
