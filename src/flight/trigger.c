// SPDX-License-Identifier: Apache-2.0
#include "flight/trigger.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "cli/option.h"

#define FILE_PREFIX  "file:"
#define MAX_PERCENT  100.0
#define MIN_WAIT_MS  0.1 /* shorter ones are too many to be sent one by one */
#define NAME_BYTES   32
#define NUMBER_BYTES 32

static const struct {
	const char *name, *unit; /* unit NULL: it has no condition */
} kinds[TRIGGER_KINDS] = {
	[TRIGGER_CPU] = { "cpu", "%" },
	[TRIGGER_PSI_CPU] = { "psi.cpu", "%" },
	[TRIGGER_PSI_IO] = { "psi.io", "%" },
	[TRIGGER_PSI_MEMORY] = { "psi.memory", "%" },
	[TRIGGER_RUNQ_P99] = { "runq.p99", "ms" },
	[TRIGGER_FILE] = { FILE_PREFIX, "" },
	[TRIGGER_OOM] = { "oom", NULL },
	[TRIGGER_CRASH] = { "crash", NULL },
	[TRIGGER_SIGNAL] = { "signal", NULL },
};

static const char *name_at(const void *names, size_t i)
{
	return i < TRIGGER_KINDS ? kinds[i].name : NULL;
}

/* A text under parsing, and where it is. */
struct cursor {
	const char *text, *at;
	struct diag *diag;
};

__attribute__((format(printf, 2, 3))) static int refuse(const struct cursor *cursor, const char *fmt, ...)
{
	char words[160];
	va_list args;

	va_start(args, fmt);
	vsnprintf(words, sizeof(words), fmt, args);
	va_end(args);
	return diag_errno(cursor->diag, EINVAL, "trigger '%.120s', at character %zu: %s", cursor->text,
			  (size_t)(cursor->at - cursor->text) + 1, words);
}

/* The word up to what ends a name. -EINVAL: there is no such kind. */
static int take_kind(struct cursor *cursor, enum trigger_kind *ret_kind)
{
	size_t size = strcspn(cursor->at, "><=/: ");
	char name[NAME_BYTES];
	const char *nearest;

	size += cursor->at[size] == ':';
	snprintf(name, sizeof(name), "%.*s", (int)size, cursor->at);
	for (uint32_t i = 0; i < TRIGGER_KINDS; i++) {
		if (!strcmp(name, kinds[i].name)) {
			*ret_kind = (enum trigger_kind)i;
			cursor->at += size;
			return 0;
		}
	}
	nearest = option_nearest(name, name_at, NULL);
	if (nearest)
		return refuse(cursor, "there is no '%s': did you mean %s?", name, nearest);
	return refuse(cursor, "there is no '%s': cpu, psi.cpu, psi.io, psi.memory, runq.p99, file:PATH, oom, crash and signal", name);
}

/* Up to the last '>', as a path may have one. */
static int take_path(struct cursor *cursor, char **ret_path)
{
	const char *end = strrchr(cursor->at, '>');
	size_t size = end ? (size_t)(end - cursor->at) : 0;

	if (*cursor->at != '/')
		return refuse(cursor, "a path that begins with / stands here");
	if (!end) {
		cursor->at += strlen(cursor->at);
		return refuse(cursor, "'>' and a number are missing, as in file:/run/web/p99>200/10s");
	}
	if (size >= TRIGGER_PATH_BYTES)
		return refuse(cursor, "the path is too long");
	*ret_path = strndup(cursor->at, size);
	cursor->at = end;
	return *ret_path ? 0 : -ENOMEM;
}

static int take_number(struct cursor *cursor, double *ret_number)
{
	size_t size = strspn(cursor->at, "0123456789.");
	char digits[NUMBER_BYTES];

	snprintf(digits, sizeof(digits), "%.*s", (int)size, cursor->at);
	if (size >= sizeof(digits) || number_decimal(digits, ret_number))
		return refuse(cursor, "a number stands here, as 80 or 0.5");
	cursor->at += size;
	return 0;
}

static int take_unit(struct cursor *cursor, struct trigger *trigger)
{
	const char *unit = kinds[trigger->kind].unit;

	if (strncmp(cursor->at, unit, strlen(unit)) != 0)
		return refuse(cursor, "%s stands here", unit);
	if (trigger->kind == TRIGGER_RUNQ_P99 && trigger->limit < MIN_WAIT_MS)
		return refuse(cursor, "the least is %g ms", MIN_WAIT_MS);
	if (*unit == '%' && trigger->limit >= MAX_PERCENT)
		return refuse(cursor, "it is never above %g %%", trigger->limit);
	cursor->at += strlen(unit);
	return 0;
}

static int take_time(struct cursor *cursor, uint32_t *ret_seconds)
{
	size_t size = strspn(cursor->at, "0123456789");
	char digits[NUMBER_BYTES];
	uint64_t number = 0, times = cursor->at[size] == 'm' ? 60 : 1;

	snprintf(digits, sizeof(digits), "%.*s", (int)size, cursor->at);
	if (!size || size >= sizeof(digits) || number_u64(digits, TRIGGER_MAX_OVER_S / times, &number) || !number ||
	    (cursor->at[size] != 's' && cursor->at[size] != 'm'))
		return refuse(cursor, "a time from 1s to 10m stands here");
	cursor->at += size + 1;
	*ret_seconds = (uint32_t)(number * times);
	return 0;
}

/* ">80%/10s" */
static int take_condition(struct cursor *cursor, struct trigger *trigger)
{
	int err;

	if (*cursor->at != '>')
		return refuse(cursor, "'>' stands here, as in %s>80%s/10s", kinds[trigger->kind].name, kinds[trigger->kind].unit);
	cursor->at++;
	err = take_number(cursor, &trigger->limit) ?: take_unit(cursor, trigger);
	if (err)
		return err;
	if (*cursor->at != '/')
		return refuse(cursor, "'/' and the time over which it holds stand here, as /10s");
	cursor->at++;
	return take_time(cursor, &trigger->over_s);
}

int triggers_add(struct triggers *triggers, const char *text, struct diag *diag)
{
	struct cursor cursor = { .text = text, .at = text, .diag = diag };
	struct trigger *trigger = &triggers->list[triggers->nr];
	int err;

	if (triggers->nr == TRIGGER_MAX)
		return diag_errno(diag, EINVAL, "there are %d triggers at most", TRIGGER_MAX);
	*trigger = (struct trigger){ .text = text };
	err = take_kind(&cursor, &trigger->kind);
	if (!err && trigger->kind == TRIGGER_FILE)
		err = take_path(&cursor, &trigger->path);
	if (!err && kinds[trigger->kind].unit)
		err = take_condition(&cursor, trigger);
	if (!err && trigger->kind == TRIGGER_RUNQ_P99 && triggers_have(triggers, TRIGGER_RUNQ_P99))
		err = diag_errno(diag, EINVAL, "trigger '%.120s': there is one runq.p99 already", text);
	if (!err && *cursor.at)
		err = refuse(&cursor, "nothing stands here any more");
	if (err)
		free(trigger->path);
	else
		triggers->nr++;
	return err;
}

void triggers_done(struct triggers *triggers)
{
	for (uint32_t i = 0; i < triggers->nr; i++)
		free(triggers->list[i].path);
	triggers->nr = 0;
}

bool triggers_have(const struct triggers *triggers, enum trigger_kind kind)
{
	for (uint32_t i = 0; i < triggers->nr; i++) {
		if (triggers->list[i].kind == kind)
			return true;
	}
	return false;
}

const char *trigger_unit(enum trigger_kind kind)
{
	return kind == TRIGGER_RUNQ_P99 ? "% of the waits are longer" : kinds[kind].unit ?: "";
}
