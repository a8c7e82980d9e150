// SPDX-License-Identifier: Apache-2.0
/* Why a call with an open set failed. Other threads may be reading such a line, so each one lives as long as the set; it is kept once. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "counter/set.h"

struct failure {
	struct failure *next;
	char text[sizeof((struct diag){ 0 }.text)];
};

static struct failure *find(struct failure *failure, const char *text)
{
	while (failure && strcmp(failure->text, text))
		failure = failure->next;
	return failure;
}

int counters_fail(struct sonde_counters *set, int err, const char *fmt, ...)
{
	struct failure *failure, fresh = { .next = set->failures };
	va_list args;

	va_start(args, fmt);
	vsnprintf(fresh.text, sizeof(fresh.text), fmt, args);
	va_end(args);
	failure = find(set->failures, fresh.text);
	if (!failure) {
		failure = malloc(sizeof(*failure));
		if (failure) {
			*failure = fresh;
			set->failures = failure;
		}
	}
	atomic_store(&set->error, failure ? failure->text : "out of memory");
	return err;
}

void counters_forget_failures(struct sonde_counters *set)
{
	while (set->failures) {
		struct failure *failure = set->failures;

		set->failures = failure->next;
		free(failure);
	}
}
