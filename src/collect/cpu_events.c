// SPDX-License-Identifier: Apache-2.0
#include "collect/cpu_events.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cpus.h"

void cpu_events_close(struct cpu_events *events)
{
	for (uint32_t i = 0; i < events->nr; i++)
		close(events->fds[i]);
	free(events->fds);
	*events = (struct cpu_events){ 0 };
}

static int open_on(const struct cpus *cpus, const struct perf_event_attr *attr, const char *name, int64_t cpu, int program_fd, struct diag *diag, struct cpu_events *events)
{
	for (uint32_t i = 0; i < cpus->nr; i++) {
		int fd;

		if (cpu != CPU_EVENTS_ALL && cpus->ids[i] != (uint64_t)cpu)
			continue;
		fd = (int)syscall(SYS_perf_event_open, attr, -1, (int)cpus->ids[i], -1, PERF_FLAG_FD_CLOEXEC);
		if (fd < 0 && errno == ENODEV && cpu == CPU_EVENTS_ALL && events->nr)
			continue; /* went offline since the list was read, or has not this PMU */
		if (fd < 0)
			return diag_errno(diag, errno, "cannot open the event '%s' on CPU %u: %s", name, cpus->ids[i], strerror(errno));
		events->fds[events->nr++] = fd;
		if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, program_fd)) /* libbpf's attach would enable it, too */
			return diag_errno(diag, errno, "cannot attach to the event '%s': %s", name, strerror(errno));
	}
	return events->nr ? 0 : diag_errno(diag, EINVAL, "there is no CPU %lld online", (long long)cpu);
}

int cpu_events_open(const struct perf_event_attr *attr, const char *name, int64_t cpu, int program_fd, struct diag *diag, struct cpu_events *ret_events)
{
	CLEANUP(cpu_events_close) struct cpu_events events = { 0 };
	CLEANUP(cpus_done) struct cpus online = { 0 };
	struct perf_event_attr disabled = *attr;
	int err = cpus_read("online", diag, &online);

	if (err)
		return err;
	events.fds = calloc(online.nr, sizeof(*events.fds));
	if (!events.fds)
		return -ENOMEM;
	disabled.disabled = 1;
	err = open_on(&online, &disabled, name, cpu, program_fd, diag, &events);
	if (err)
		return err;
	*ret_events = events;
	events = (struct cpu_events){ 0 };
	return 0;
}

int cpu_events_enable(const struct cpu_events *events, struct diag *diag)
{
	for (uint32_t i = 0; i < events->nr; i++) {
		if (ioctl(events->fds[i], PERF_EVENT_IOC_ENABLE, 0))
			return diag_errno(diag, errno, "cannot enable an event: %s", strerror(errno));
	}
	return 0;
}

void cpu_events_disable(const struct cpu_events *events)
{
	for (uint32_t i = 0; i < events->nr; i++)
		ioctl(events->fds[i], PERF_EVENT_IOC_DISABLE, 0);
}

uint64_t cpu_events_count(const struct cpu_events *events)
{
	uint64_t sum = 0, count;

	for (uint32_t i = 0; i < events->nr; i++) {
		if (read(events->fds[i], &count, sizeof(count)) == sizeof(count))
			sum += count;
	}
	return sum;
}
