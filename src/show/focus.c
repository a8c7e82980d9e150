// SPDX-License-Identifier: Apache-2.0
#include "show/focus.h"

#include <errno.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "frames/functions.h"

/* By function: whether its name matches. NULL: no memory, or the pattern is wrong. */
static bool *matching_functions(const struct profile *profile, const char *pattern, struct diag *diag, int *err)
{
	uint32_t nr = profile_nr_functions(profile);
	bool *matches = calloc((size_t)nr + 1, sizeof(*matches));
	char why[128];
	regex_t compiled;

	*err = matches ? regcomp(&compiled, pattern, REG_EXTENDED | REG_NOSUB) : -ENOMEM;
	if (*err > 0) {
		regerror(*err, &compiled, why, sizeof(why));
		*err = diag_errno(diag, EINVAL, "'%.80s' is no regular expression: %s", pattern, why);
	}
	if (*err) {
		free(matches);
		return NULL;
	}
	for (uint32_t i = 0; i < nr; i++)
		matches[i] = !regexec(&compiled, profile_string_text(profile, profile_function_at(profile, i)->name), 0, NULL, 0);
	regfree(&compiled);
	return matches;
}

static bool has_match(const struct profile *profile, const struct profile_sample *sample, const bool *matches)
{
	struct whole_stack stack = whole_stack_of(profile, sample);

	for (uint32_t i = 0; i < stack.nr; i++) {
		if (matches[profile_location_at(profile, whole_stack_at(&stack, i))->function])
			return true;
	}
	return false;
}

static int keep(struct profile *profile, const char *pattern, bool wanted, struct diag *diag)
{
	int err;
	CLEANUP(freep) bool *matches = matching_functions(profile, pattern, diag, &err);

	for (uint32_t i = 0; matches && i < profile_nr_samples(profile); i++) {
		if (has_match(profile, profile_sample_at(profile, i), matches) != wanted)
			memset(profile_sample_values(profile, i), 0, PROFILE_MAX_VALUES * sizeof(int64_t));
	}
	return err;
}

int focus_samples(struct profile *profile, const char *focus, const char *ignore, struct diag *diag)
{
	int err = focus ? keep(profile, focus, true, diag) : 0;

	return err || !ignore ? err : keep(profile, ignore, false, diag);
}
