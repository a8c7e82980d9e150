// SPDX-License-Identifier: Apache-2.0
/* The stacks of a process's threads, running and waiting, as `sonde wall` takes them: how much of their time has whole user stacks, and
 * what the others lack. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "examine/process_look.h"
#include "session/session_profile.h"

static bool is_state(const char *mark)
{
	return !strcmp(mark, PROFILE_ON_CPU) || !strcmp(mark, PROFILE_RUNNABLE) ||
	       !strncmp(mark, PROFILE_BLOCKED, strcspn(PROFILE_BLOCKED, "%"));
}

/* The leafmost mark of a stack; NULL: it is whole. */
static const char *mark_of(const struct profile *profile, uint32_t stack)
{
	uint32_t nr;
	const uint32_t *locations = profile_stack_at(profile, stack, &nr);

	for (uint32_t i = 0; i < nr; i++) {
		const struct profile_location *location = profile_location_at(profile, locations[i]);
		const char *name = profile_string_text(profile, profile_function_at(profile, location->function)->name);

		if ((location->kind == FRAME_MARK || location->kind == FRAME_MISSED) && !is_state(name))
			return name;
	}
	return NULL;
}

static void count_mark(struct process_look *look, const char *name, uint64_t ns)
{
	for (uint32_t i = 0; i < look->nr_marks; i++) {
		if (!strcmp(look->marks[i].name, name)) {
			look->marks[i].ns += ns;
			return;
		}
	}
	if (look->nr_marks < LOOK_MAX_MARKS)
		look->marks[look->nr_marks++] = (struct looked_mark){ name, ns };
}

static int by_time(const void *a, const void *b)
{
	const struct looked_mark *one = a, *other = b;

	return one->ns < other->ns ? 1 : one->ns > other->ns ? -1 : strcmp(one->name, other->name);
}

static void take_profile(struct process_look *look, const struct profile *profile)
{
	uint32_t value = profile_shown_value(profile);

	for (uint32_t i = 0; i < profile_nr_samples(profile); i++) {
		const struct profile_sample *sample = profile_sample_at(profile, i);
		uint64_t ns = sample->values[value] > 0 ? (uint64_t)sample->values[value] : 0;
		const char *mark;

		if (sample->user_stack == PROFILE_NONE)
			continue;
		mark = mark_of(profile, sample->user_stack);
		look->all_ns += ns;
		if (mark)
			count_mark(look, mark, ns);
		else
			look->whole_ns += ns;
	}
	qsort(look->marks, look->nr_marks, sizeof(*look->marks), by_time);
}

void process_look_stacks(struct process_look *look, uint64_t duration_ns)
{
	const struct sonde_session_options options = { .size = sizeof(options),
						       .mode = SONDE_WALL,
						       .tgids = &look->tgid,
						       .nr_tgids = 1,
						       .duration_ns = duration_ns,
						       .no_lines = true,
						       .debuginfod_timeout_ns = -1,
						       .user_only = true };
	int err = sonde_session_new(&options, &look->session);

	if (!err)
		err = sonde_session_run(look->session);
	if (err)
		snprintf(look->no_stacks, sizeof(look->no_stacks), "%s", sonde_session_error(look->session));
	else if (session_profile(look->session))
		take_profile(look, session_profile(look->session));
}
