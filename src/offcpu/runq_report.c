// SPDX-License-Identifier: Apache-2.0
#include "offcpu/runq_report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/cgroup.h"
#include "base/clock.h"
#include "frames/frame_text.h"
#include "show/histogram_text.h"

#define MAX_PARTS (1u << 20)

struct part {
	char *key;
	uint32_t order; /* for equal sums: the order of arrival */
	struct histogram histogram;
};

struct runq_report {
	const struct sonde_runq_options *options;
	struct profile *profile;
	struct cgroup_paths *cgroups; /* NULL: not requested */
	struct part *parts;           /* of the report in progress */
	uint32_t nr, max;
};

struct runq_report *runq_report_new(const struct sonde_runq_options *options, struct profile *profile)
{
	struct runq_report *report = calloc(1, sizeof(*report));

	if (!report)
		return NULL;
	report->options = options;
	report->profile = profile;
	if (options->by == SONDE_RUNQ_BY_CGROUP) {
		report->cgroups = cgroup_paths_new();
		if (!report->cgroups || cgroup_paths_read(report->cgroups)) { /* now, for cgroups that are removed before the end */
			runq_report_free(report);
			return NULL;
		}
	}
	return report;
}

static void forget_parts(struct runq_report *report)
{
	for (uint32_t i = 0; i < report->nr; i++)
		free(report->parts[i].key);
	report->nr = 0;
}

void runq_report_free(struct runq_report *report)
{
	if (!report)
		return;
	forget_parts(report);
	free(report->parts);
	cgroup_paths_free(report->cgroups);
	free(report);
}

static void key_text(const struct runq_report *report, const struct runq_part *part, struct buffer *key)
{
	const char *path = report->cgroups ? cgroup_paths_find(report->cgroups, part->key.id) : NULL;
	static const char *const lengths[] = { [SONDE_RUNQ_LENGTH_ALL] = "all classes", [SONDE_RUNQ_LENGTH_FAIR] = "fair class" };

	switch (report->options->by) {
	case SONDE_RUNQ_WHOLE:
		break;
	case SONDE_RUNQ_BY_PID:
	case SONDE_RUNQ_BY_TID:
		buffer_printf(key, "%s %" PRIu64 " (%.*s)", report->options->by == SONDE_RUNQ_BY_PID ? "pid" : "tid",
			      (uint64_t)part->key.id, SONDE_COMM_BYTES, part->histogram->comm);
		break;
	case SONDE_RUNQ_BY_CPU:
		buffer_printf(key, "cpu %" PRIu32, part->cpu);
		break;
	case SONDE_RUNQ_BY_CGROUP:
		if (path)
			buffer_printf(key, "cgroup %s", path);
		else
			buffer_printf(key, "cgroup [gone: id %" PRIu64 "]", (uint64_t)part->key.id);
		break;
	case SONDE_RUNQ_BY_COMM:
		buffer_printf(key, "comm %.*s", SONDE_COMM_BYTES, part->key.comm);
		break;
	}
	if (report->options->what == SONDE_RUNQ_LENGTH)
		buffer_printf(key, "%s%s", key->size ? ", " : "", lengths[part->length]);
	buffer_append(key, "", 0);
}

static uint64_t unit_ns(const struct sonde_runq_options *options)
{
	if (options->what == SONDE_RUNQ_LENGTH)
		return 1;
	return options->milliseconds ? NS_PER_MS : NS_PER_US;
}

static int take_part(void *arg, const struct runq_part *from)
{
	struct runq_report *report = arg;
	struct buffer key = BUFFER_INIT(1 << 16);
	struct part *part;

	_Static_assert(SONDE_RUNQ_SLOTS == HISTOGRAM_SLOTS, "slots are copied");
	key_text(report, from, &key);
	if (key.err || !array_grow(&report->parts, report->nr, &report->max, sizeof(*report->parts), 16, MAX_PARTS)) {
		buffer_done(&key);
		return -ENOMEM;
	}
	part = &report->parts[report->nr];
	*part = (struct part){ .key = key.data, .order = report->nr++ };
	part->histogram.scale = report->options->what == SONDE_RUNQ_LENGTH ? HISTOGRAM_LINEAR : HISTOGRAM_LOG2;
	part->histogram.sum = (from->histogram->sum + unit_ns(report->options) / 2) / unit_ns(report->options);
	memcpy(part->histogram.slots, from->histogram->slots, sizeof(part->histogram.slots));
	return 0;
}

/* The largest sum last, at the end of the report. */
static int by_sum(const void *a, const void *b)
{
	const struct part *left = a, *right = b;

	if (left->histogram.sum != right->histogram.sum)
		return left->histogram.sum < right->histogram.sum ? -1 : 1;
	return left->order < right->order ? -1 : left->order > right->order;
}

static bool is_full(const struct profile *profile)
{
	return profile_nr_histograms(profile) >= RUNQ_REPORT_MAX_HISTOGRAMS;
}

bool runq_report_is_full(const struct runq_report *report)
{
	return is_full(report->profile);
}

static int put_parts(struct runq_report *report, struct profile *profile)
{
	static const char *const names[] = {
		[SONDE_RUNQ_LATENCY] = "run queue latency", [SONDE_RUNQ_ON_CPU] = "time on CPU", [SONDE_RUNQ_LENGTH] = "run queue length"
	};
	const struct sonde_runq_options *options = report->options;
	const char *unit = options->what == SONDE_RUNQ_LENGTH ? "threads" : options->milliseconds ? "ms" : "us";

	for (uint32_t i = 0; i < report->nr; i++) {
		const struct profile_histogram histogram = {
			.name = profile_string(profile, names[options->what]),
			.unit = profile_string(profile, unit),
			.key = profile_string(profile, is_full(profile) ? "[others]" : report->parts[i].key ? report->parts[i].key : ""),
			.user_stack = PROFILE_NONE,
			.kernel_stack = PROFILE_NONE,
			.histogram = report->parts[i].histogram,
		};

		if (histogram.name == PROFILE_NONE || histogram.unit == PROFILE_NONE || histogram.key == PROFILE_NONE ||
		    profile_histogram(profile, &histogram) == PROFILE_NONE)
			return -ENOMEM;
	}
	return 0;
}

static int print_parts(struct runq_report *report, struct buffer *lines)
{
	CLEANUP(profile_freep) struct profile *profile = profile_new();
	int err = profile ? put_parts(report, profile) : -ENOMEM;

	if (!err)
		histogram_print_whole(lines, profile);
	return err;
}

int runq_report_take(struct runq_report *report, struct runq_programs *programs, struct buffer *lines)
{
	int err = report->cgroups ? cgroup_paths_read(report->cgroups) : 0;

	if (!err)
		err = runq_programs_take(programs, take_part, report);
	if (!err && report->nr && report->options->by != SONDE_RUNQ_BY_CPU)
		qsort(report->parts, report->nr, sizeof(*report->parts), by_sum);
	if (!err)
		err = put_parts(report, report->profile);
	if (!err && lines)
		err = print_parts(report, lines);
	forget_parts(report);
	return err;
}

static void time_text(struct buffer *lines, uint64_t unix_ns)
{
	time_t seconds = (time_t)(unix_ns / NS_PER_S);
	struct tm local;

	if (localtime_r(&seconds, &local))
		buffer_printf(lines, "%02d:%02d:%02d", local.tm_hour, local.tm_min, local.tm_sec);
}

void runq_report_time(struct buffer *lines, uint64_t unix_ns)
{
	time_text(lines, unix_ns);
	buffer_text(lines, "\n");
}

#define WAIT_COLUMNS "%-8s %-16s %-7s %14s %-16s %-8s %3s %-8s %4s %-10s %9s\n"

void runq_report_waits_heading(struct buffer *lines, uint64_t slower_ns)
{
	buffer_printf(lines, "Tracing run queue latency higher than %" PRIu64 " us\n", slower_ns / NS_PER_US);
	buffer_printf(lines, WAIT_COLUMNS, "TIME", "COMM", "PID", "LAT(us)", "PREV", "PREV-TID", "CPU", "CLASS", "PRIO", "PREV-CLASS",
		      "PREV-PRIO");
}

/* A name of at most 15 bytes, made safe for the line and the terminal. */
static void comm_text(char to[64], const char comm[SONDE_COMM_BYTES])
{
	struct buffer text = BUFFER_INIT(64);
	char whole[SONDE_COMM_BYTES + 1] = "";

	memcpy(whole, comm, SONDE_COMM_BYTES);
	plain_text(&text, whole, ';');
	snprintf(to, 64, "%s", text.data ? text.data : "");
	buffer_done(&text);
}

/* As users set it: nice for the fair class, 1 to 99 for real time; the idle thread has none. */
static void class_text(char to_class[16], char to_priority[16], const struct sonde_runq_thread *thread)
{
	static const char *const names[] = { "other", "fifo", "rr", "batch", "?", "idle", "deadline", "ext" };

	snprintf(to_class, 16, "%s", !thread->tid ? "-" : thread->policy < ARRAY_SIZE(names) ? names[thread->policy] : "?");
	if (!thread->tid)
		snprintf(to_priority, 16, "-");
	else if (thread->rt_priority)
		snprintf(to_priority, 16, "%" PRIu32, (uint32_t)thread->rt_priority);
	else
		snprintf(to_priority, 16, "%" PRId32, (int32_t)thread->nice);
}

void runq_report_wait(struct buffer *lines, const struct sonde_runq_record *record, uint64_t unix_offset_ns)
{
	char comm[64], prev_comm[64], tid[16], prev_tid[16], wait[24], cpu[16], class[16], priority[16], prev_class[16], prev_priority[16];
	struct buffer when = BUFFER_INIT(64);

	time_text(&when, record->time_ns + unix_offset_ns);
	comm_text(comm, record->next.comm);
	comm_text(prev_comm, record->prev.comm);
	class_text(class, priority, &record->next);
	class_text(prev_class, prev_priority, &record->prev);
	snprintf(tid, sizeof(tid), "%" PRIu32, (uint32_t)record->next.tid);
	snprintf(prev_tid, sizeof(prev_tid), "%" PRIu32, (uint32_t)record->prev.tid);
	snprintf(wait, sizeof(wait), "%" PRIu64, (uint64_t)record->wait_ns / NS_PER_US);
	snprintf(cpu, sizeof(cpu), "%" PRIu32, (uint32_t)record->cpu);
	buffer_printf(lines, WAIT_COLUMNS, when.data ? when.data : "", comm, tid, wait, prev_comm, prev_tid, cpu, class, priority,
		      prev_class, prev_priority);
	buffer_done(&when);
}
