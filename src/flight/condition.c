// SPDX-License-Identifier: Apache-2.0
#include "flight/condition.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "base/small_file.h"
#include "cli/output.h"
#include "flight/file_watch.h"
#include "flight/runq_watch.h"

#define FILE_BYTES 8192
#define NR_TIMES   8 /* of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal; what guests take is in user */
#define FIRST_LATE 3 /* seconds in which a file may not have answered yet */

/* Sums since ever: the mean between two readings is the difference of `sum` by that of `weight`. */
struct reading {
	double sum, weight;
};

struct condition {
	const struct trigger *trigger;
	struct file_watch *watch;   /* of TRIGGER_FILE */
	struct runq_watch *runq;    /* of TRIGGER_RUNQ_P99 */
	double limit;
	struct reading *readings;   /* a ring: one more than there are seconds */
	uint32_t max, nr, newest;
	bool holds;
	uint64_t nr_unread;
	uint32_t nr_unread_now;     /* one after the other */
	bool is_told;
};

static const char *psi_path(enum trigger_kind kind)
{
	return kind == TRIGGER_PSI_CPU ? "/proc/pressure/cpu" : kind == TRIGGER_PSI_IO ? "/proc/pressure/io" : "/proc/pressure/memory";
}

static int read_number(const char **at, uint64_t *ret_number)
{
	size_t size = strspn(*at, "0123456789");
	char digits[24];

	snprintf(digits, sizeof(digits), "%.*s", (int)size, *at);
	*at += size;
	return size < sizeof(digits) ? number_u64(digits, UINT64_MAX, ret_number) : -ERANGE;
}

/* "cpu  1 2 3 ..." */
static int read_cpu(struct reading *ret_reading)
{
	char text[FILE_BYTES];
	const char *at = text;
	struct reading reading = { 0 };
	int err = small_file_read(AT_FDCWD, "/proc/stat", text, sizeof(text));

	if (err)
		return err;
	at += strcspn(at, " \n");
	for (uint32_t i = 0; i < NR_TIMES; i++) {
		bool is_idle = i == 3 || i == 4;
		uint64_t ticks = 0;

		at += strspn(at, " ");
		err = read_number(&at, &ticks);
		if (err)
			return err;
		reading.weight += (double)ticks;
		reading.sum += is_idle ? 0 : 100.0 * (double)ticks;
	}
	*ret_reading = reading;
	return 0;
}

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=123": microseconds. */
static int read_psi(enum trigger_kind kind, struct reading *ret_reading)
{
	static const char total[] = "total=";
	char text[FILE_BYTES];
	const char *at;
	uint64_t us = 0;
	int err = small_file_read(AT_FDCWD, psi_path(kind), text, sizeof(text));

	if (err)
		return err;
	at = strstr(text, total);
	if (!at)
		return -EBADMSG;
	at += strlen(total);
	err = read_number(&at, &us);
	if (err)
		return err;
	*ret_reading = (struct reading){ .sum = 100.0 * (double)us, .weight = (double)clock_ns() / (double)NS_PER_US };
	return 0;
}

/* In percent of the waits. */
static int read_runq(struct runq_watch *watch, struct reading *ret_reading)
{
	uint64_t nr_long, nr;

	runq_watch_read(watch, &nr_long, &nr);
	*ret_reading = (struct reading){ .sum = 100.0 * (double)nr_long, .weight = (double)nr };
	return 0;
}

static int read_kernel(const struct condition *condition, struct reading *ret_reading)
{
	enum trigger_kind kind = condition->trigger->kind;

	return condition->runq	   ? read_runq(condition->runq, ret_reading) :
	       kind == TRIGGER_CPU ? read_cpu(ret_reading) :
				     read_psi(kind, ret_reading);
}

/* NULL: *reading goes on from the one before; else why it does not. */
static const char *read_next(struct condition *condition, struct reading *reading)
{
	double value;
	const char *trouble;
	int err;

	if (condition->watch) {
		trouble = file_watch_take(condition->watch, &value);
		if (!trouble)
			*reading = (struct reading){ .sum = reading->sum + value, .weight = reading->weight + 1 };
		return trouble;
	}
	err = read_kernel(condition, reading);
	return err ? strerror(-err) : NULL;
}

static void tell(struct condition *condition, const char *trouble)
{
	if (!trouble) {
		if (condition->is_told)
			output_say("trigger %s: it can be read again", condition->trigger->text);
		condition->nr_unread_now = 0;
		condition->is_told = false;
		return;
	}
	condition->nr_unread++;
	if (++condition->nr_unread_now < FIRST_LATE || condition->is_told)
		return;
	output_say("trigger %s: %s", condition->trigger->text, trouble);
	condition->is_told = true;
}

/* -ENODATA: not yet, or too little of the time could be read. */
static int mean(const struct condition *condition, double *ret_mean)
{
	const struct reading *newest = &condition->readings[condition->newest],
			     *oldest = &condition->readings[(condition->newest + 1) % condition->max];
	double weight = newest->weight - oldest->weight;

	if (condition->nr < condition->max || weight <= 0 || (condition->watch && 2 * weight < condition->trigger->over_s))
		return -ENODATA;
	*ret_mean = (newest->sum - oldest->sum) / weight;
	return 0;
}

bool condition_look(struct condition *condition, double *ret_value)
{
	struct reading reading = condition->readings[condition->newest];
	bool held = condition->holds;
	double value;

	tell(condition, read_next(condition, &reading));
	condition->newest = (condition->newest + 1) % condition->max;
	condition->readings[condition->newest] = reading;
	condition->nr += condition->nr < condition->max;
	if (mean(condition, &value))
		return false;
	condition->holds = value > condition->limit;
	if (!condition->holds || held)
		return false;
	*ret_value = value;
	return true;
}

/* Can it be read at all? */
static int check(struct condition *condition, struct diag *diag)
{
	const struct trigger *trigger = condition->trigger;
	struct reading reading = { 0 };
	int err;

	if (trigger->kind == TRIGGER_FILE)
		return file_watch_start(trigger->path, diag, &condition->watch);
	if (trigger->kind == TRIGGER_RUNQ_P99)
		return runq_watch_start((uint64_t)(trigger->limit * (double)NS_PER_MS), diag, &condition->runq);
	err = read_kernel(condition, &reading);
	if (err && trigger->kind != TRIGGER_CPU)
		return diag_errno(diag, EOPNOTSUPP,
				  "trigger '%.120s': %s cannot be read (%s): the kernel needs CONFIG_PSI, and psi=1 on its command line",
				  trigger->text, psi_path(trigger->kind), strerror(-err));
	return err ? diag_errno(diag, EOPNOTSUPP, "trigger '%.120s': /proc/stat cannot be read: %s", trigger->text, strerror(-err)) : 0;
}

int condition_new(const struct trigger *trigger, struct diag *diag, struct condition **ret_condition)
{
	struct condition *condition = calloc(1, sizeof(*condition));
	int err;

	if (!condition)
		return -ENOMEM;
	condition->trigger = trigger;
	condition->limit = trigger->kind == TRIGGER_RUNQ_P99 ? 1 : trigger->limit; /* of a hundred waits one is longer */
	condition->max = trigger->over_s + 1;
	condition->readings = calloc(condition->max, sizeof(*condition->readings));
	err = condition->readings ? check(condition, diag) : -ENOMEM;
	if (err)
		condition_free(condition);
	else
		*ret_condition = condition;
	return err;
}

void condition_free(struct condition *condition)
{
	if (!condition)
		return;
	file_watch_end(condition->watch);
	runq_watch_end(condition->runq);
	free(condition->readings);
	free(condition);
}

uint64_t condition_nr_unread(const struct condition *condition)
{
	return condition->nr_unread;
}
