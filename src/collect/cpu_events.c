// SPDX-License-Identifier: Apache-2.0
#include "collect/cpu_events.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"

/* A power of two. Room for about 500 records: with 1,000 timer interrupts a second, the most that arrive in a quarter of a second. */
#define RING_PAGES 4

/* PERF_RECORD_THROTTLE and _UNTHROTTLE, without a sample id (not requested). */
struct throttle_record {
	struct perf_event_header header;
	uint64_t time_ns, id, stream_id;
};

/* What read(2) returns for this read_format (perf_event_open(2)). */
struct reading {
	uint64_t count, enabled_ns, running_ns;
};

/* --- one CPU -------------------------------------------------------------------------------------------------------------------------- */

static void set_throttled(struct cpu_events *events, struct cpu_event *event, bool is_throttled, uint64_t time_ns)
{
	if (is_throttled && !event->throttled_since_ns) {
		events->gone.nr_throttled++;
		event->throttled_since_ns = time_ns;
	} else if (!is_throttled && event->throttled_since_ns) {
		events->gone.throttled_ns += time_ns > event->throttled_since_ns ? time_ns - event->throttled_since_ns : 0;
		event->throttled_since_ns = 0;
	}
}

static void take_record(struct cpu_events *events, struct cpu_event *event, const struct throttle_record *record)
{
	if (record->header.type == PERF_RECORD_THROTTLE || record->header.type == PERF_RECORD_UNTHROTTLE)
		set_throttled(events, event, record->header.type == PERF_RECORD_THROTTLE, record->time_ns);
}

static void read_ring(struct cpu_events *events, struct cpu_event *event)
{
	struct perf_ring_reading reading = perf_ring_begin(&event->ring);
	struct perf_event_header header;

	while (perf_ring_next(&reading, &header)) {
		struct throttle_record record = { 0 };

		perf_ring_take(&reading, &header, &record, sizeof(record));
		take_record(events, event, &record);
	}
	perf_ring_end(&reading);
}

/* Ticks that are due since the rate changed, as far as it is known: per CPU, as the remainders do not add up to a tick. */
static uint64_t nr_due(const struct cpu_events *events, const struct cpu_event *event, const struct reading *now)
{
	const struct cpu_events_options *options = &events->options;

	if (!options->period)
		return 0;
	return (options->is_clock ? now->enabled_ns - event->settled_ns : now->count) / options->period;
}

static void add_reading(const struct cpu_events *events, const struct cpu_event *event, struct cpu_events_total *total)
{
	struct reading now;

	if (read(event->fd, &now, sizeof(now)) != sizeof(now))
		return;
	total->count += now.count;
	total->unscheduled_ns += now.enabled_ns - now.running_ns;
	total->expected += nr_due(events, event, &now);
}

/* Closes one event. Its counts stay in the totals. */
static void close_one(struct cpu_events *events, struct cpu_event *event)
{
	read_ring(events, event);
	set_throttled(events, event, false, clock_ns());
	add_reading(events, event, &events->gone);
	perf_ring_unmap(&event->ring);
	close(event->fd);
}

/* 0; -ENODEV: the CPU went offline since the list was read, or does not have this PMU. */
static int open_one(struct cpu_events *events, uint32_t cpu, struct diag *diag)
{
	const struct cpu_events_options *options = &events->options;
	struct cpu_event *event;
	int fd;

	if (!array_grow(&events->list, events->nr, &events->max, sizeof(*events->list), 8, CPUS_MAX))
		return -ENOMEM;
	fd = (int)syscall(SYS_perf_event_open, &options->attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return diag_errno(errno == ENODEV && events->nr ? NULL : diag, errno, "cannot open the event '%s' on CPU %u: %s",
				  options->name, cpu, strerror(errno));
	event = &events->list[events->nr++];
	*event = (struct cpu_event){ .cpu = cpu, .fd = fd };
	if (perf_ring_map(fd, RING_PAGES * (size_t)sysconf(_SC_PAGESIZE), &event->ring))
		event->ring = (struct perf_ring){ 0 }; /* throttling then goes unreported */
	if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, options->program_fd)) /* libbpf's attach would also enable it */
		return diag_errno(diag, errno, "cannot attach to the event '%s': %s", options->name, strerror(errno));
	if (events->is_enabled && ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))
		return diag_errno(diag, errno, "cannot enable an event: %s", strerror(errno));
	return 0;
}

/* --- all of them ---------------------------------------------------------------------------------------------------------------------- */

static bool is_wanted(const struct cpu_events *events, uint32_t cpu)
{
	if (events->options.cpu != CPU_EVENTS_ALL && cpu != (uint64_t)events->options.cpu)
		return false;
	for (uint32_t i = 0; i < events->nr; i++) {
		if (events->list[i].cpu == cpu)
			return false;
	}
	return true;
}

static int open_new(struct cpu_events *events, const struct cpus *online, struct diag *diag)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < online->nr; i++) {
		if (is_wanted(events, online->ids[i]))
			err = open_one(events, online->ids[i], diag);
		if (err == -ENODEV && events->options.cpu == CPU_EVENTS_ALL && events->nr)
			err = 0;
	}
	return err;
}

void cpu_events_close(struct cpu_events *events)
{
	while (events->nr)
		close_one(events, &events->list[--events->nr]);
	free(events->list);
	*events = (struct cpu_events){ 0 };
}

int cpu_events_open(const struct cpu_events_options *options, struct diag *diag, struct cpu_events *ret_events)
{
	CLEANUP(cpu_events_close) struct cpu_events events = { .options = *options };
	CLEANUP(cpus_done) struct cpus online = { 0 };
	int err = cpus_read("online", diag, &online);

	events.options.attr.disabled = 1;
	events.options.attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	events.options.attr.use_clockid = 1;
	events.options.attr.clockid = CLOCK_MONOTONIC;
	if (!err)
		err = open_new(&events, &online, diag);
	if (err)
		return err;
	if (!events.nr)
		return diag_errno(diag, EINVAL, "there is no CPU %lld online", (long long)options->cpu);
	events.nr_most = events.nr;
	*ret_events = events;
	events = (struct cpu_events){ 0 };
	return 0;
}

int cpu_events_enable(struct cpu_events *events, struct diag *diag)
{
	for (uint32_t i = 0; i < events->nr; i++) {
		if (ioctl(events->list[i].fd, PERF_EVENT_IOC_ENABLE, 0))
			return diag_errno(diag, errno, "cannot enable an event: %s", strerror(errno));
	}
	events->is_enabled = events->nr > 0; /* if no event was wanted, none is opened later */
	return 0;
}

void cpu_events_disable(struct cpu_events *events)
{
	for (uint32_t i = 0; i < events->nr; i++) {
		ioctl(events->list[i].fd, PERF_EVENT_IOC_DISABLE, 0);
		read_ring(events, &events->list[i]);
		set_throttled(events, &events->list[i], false, clock_ns());
	}
	events->is_enabled = false;
}

/* The kernel does not restore an event when its CPU returns, so the event is opened again. */
int cpu_events_follow(struct cpu_events *events, const struct cpus *online, struct diag *diag)
{
	uint32_t nr_before;
	int err;

	if (!events->is_enabled)
		return 0;
	for (uint32_t i = events->nr; i-- > 0;) {
		read_ring(events, &events->list[i]);
		if (cpus_has(online, events->list[i].cpu))
			continue;
		close_one(events, &events->list[i]);
		events->list[i] = events->list[--events->nr];
	}
	nr_before = events->nr;
	err = open_new(events, online, diag);
	events->nr_late += events->nr - nr_before;
	events->nr_most = events->nr > events->nr_most ? events->nr : events->nr_most;
	return err;
}

int cpu_events_set_rate(struct cpu_events *events, uint64_t freq_hz)
{
	uint64_t period_ns = NS_PER_S / freq_hz;

	for (uint32_t i = 0; i < events->nr; i++) {
		struct cpu_event *event = &events->list[i];
		struct reading now;

		if (ioctl(event->fd, PERF_EVENT_IOC_PERIOD, &period_ns) || read(event->fd, &now, sizeof(now)) != sizeof(now))
			return -errno;
		events->gone.expected += nr_due(events, event, &now);
		event->settled_ns = now.enabled_ns;
	}
	events->options.period = period_ns;
	events->options.attr.sample_freq = freq_hz;
	return 0;
}

struct cpu_events_total cpu_events_total(const struct cpu_events *events)
{
	struct cpu_events_total total = events->gone;

	for (uint32_t i = 0; i < events->nr; i++)
		add_reading(events, &events->list[i], &total);
	return total;
}
