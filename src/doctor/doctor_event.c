// SPDX-License-Identifier: Apache-2.0
/* perf events, opened like sonde's collector opens them: for the whole system, on the first online CPU. */
#include "doctor/doctor.h"

#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/cpus.h"

static int first_cpu(void)
{
	CLEANUP(cpus_done) struct cpus online = { 0 };

	return cpus_read("online", NULL, &online) ? 0 : (int)online.ids[0];
}

static int open_event(struct perf_event_attr *attr)
{
	int fd;

	attr->size = sizeof(*attr);
	attr->disabled = 1;
	fd = (int)syscall(SYS_perf_event_open, attr, -1, first_cpu(), -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static void say(struct doctor_finding *finding, int err)
{
	if (err >= 0)
		doctor_say(finding, DOCTOR_YES, "%s", "");
	else if (err == -EPERM || err == -EACCES)
		doctor_say(finding, DOCTOR_DENIED, "%s", strerror(-err));
	else
		doctor_say(finding, DOCTOR_NO, "%s", err == -ENOENT ? "this machine has no such event" : strerror(-err));
}

/* check->number: 0 for the CPU clock, else the PMU's cycles. */
void doctor_event(const struct doctor_check *check, struct doctor_finding *finding)
{
	struct perf_event_attr attr = {
		.type = check->number ? PERF_TYPE_HARDWARE : PERF_TYPE_SOFTWARE,
		.config = check->number ? PERF_COUNT_HW_CPU_CYCLES : PERF_COUNT_SW_CPU_CLOCK,
		.sample_freq = 49,
		.freq = 1,
	};
	CLEANUP(closep) int fd = open_event(&attr);

	say(finding, fd);
}

void doctor_sideband(const struct doctor_check *check, struct doctor_finding *finding)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU,
		.sample_id_all = 1,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
	CLEANUP(closep) int fd = open_event(&attr);

	say(finding, fd);
}

void doctor_attach(const struct doctor_check *check, struct doctor_finding *finding)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK, .sample_freq = 49, .freq = 1 };
	CLEANUP(closep) int program_fd = doctor_load_perf_program();
	CLEANUP(closep) int event_fd = open_event(&attr);
	int err = program_fd < 0 ? program_fd : event_fd;

	if (err >= 0 && ioctl(event_fd, PERF_EVENT_IOC_SET_BPF, program_fd) < 0)
		err = -errno;
	say(finding, err);
}
