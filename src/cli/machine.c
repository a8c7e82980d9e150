// SPDX-License-Identifier: Apache-2.0
#include "cli/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"

int machine_read(const char *path, char *text, size_t room)
{
	CLEANUP(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t size = 0;
	ssize_t nr;

	if (fd < 0)
		return -errno;
	while (size < room - 1 && (nr = read(fd, text + size, room - 1 - size)) != 0) {
		if (nr < 0)
			return -errno;
		size += (size_t)nr;
	}
	while (size > 0 && text[size - 1] == '\n')
		size--;
	text[size] = '\0';
	return 0;
}

bool machine_cpu_in_list(const char *list, uint64_t cpu)
{
	while (*list) {
		size_t length = strcspn(list, ",");
		char range[48];
		const char *dash;
		uint64_t first = 0, last = 0;

		snprintf(range, sizeof(range), "%.*s", (int)(length < sizeof(range) ? length : sizeof(range)), list);
		dash = strchr(range, '-');
		if (dash)
			range[dash - range] = '\0';
		if (!number_u64(range, UINT32_MAX, &first) && !number_u64(dash ? dash + 1 : range, UINT32_MAX, &last) && cpu >= first &&
		    cpu <= last)
			return true;
		list += length + (list[length] == ',');
	}
	return false;
}

int machine_check_cpu(uint64_t cpu, struct diag *diag)
{
	char online[1024];

	if (machine_read("/sys/devices/system/cpu/online", online, sizeof(online)) < 0 || machine_cpu_in_list(online, cpu))
		return 0;
	return diag_errno(diag, EINVAL, "CPU %" PRIu64 " is not online: -C takes one of %s", cpu, online);
}

int machine_check_freq(uint64_t freq_hz, struct diag *diag)
{
	char text[32];
	uint64_t max = 0;

	if (machine_read("/proc/sys/kernel/perf_event_max_sample_rate", text, sizeof(text)) < 0 || number_u64(text, UINT64_MAX, &max) < 0 ||
	    freq_hz <= max)
		return 0;
	return diag_errno(diag, EINVAL, "-F %" PRIu64 " is more than this kernel allows: at most %" PRIu64
			  " (kernel.perf_event_max_sample_rate)", freq_hz, max);
}

/* The process that a process's or thread's id belongs to: the line "Tgid:" of its status. 0; -ESRCH; else it cannot be known. */
static int tgid_of(uint32_t id, uint64_t *ret_tgid)
{
	char path[48], text[4096], *line, *end;
	int err;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/status", id);
	err = machine_read(path, text, sizeof(text));
	if (err < 0)
		return err == -ENOENT ? -ESRCH : err;
	line = strstr(text, "\nTgid:\t");
	if (!line)
		return -EBADMSG;
	line += strlen("\nTgid:\t");
	end = strchr(line, '\n');
	if (end)
		*end = '\0';
	return number_u64(line, UINT32_MAX, ret_tgid);
}

int machine_check_process(uint32_t tgid, struct diag *diag)
{
	uint64_t leader = tgid;
	int err = tgid_of(tgid, &leader);

	if (err == -ESRCH)
		return diag_errno(diag, ESRCH, "there is no process %" PRIu32, tgid);
	if (err < 0 || leader == tgid)
		return 0;
	return diag_errno(diag, EINVAL, "%" PRIu32 " is a thread of process %" PRIu64 ": write -L %" PRIu32 " for the thread or -p %" PRIu64
			  " for the process", tgid, leader, tgid, leader);
}

int machine_check_thread(uint32_t tid, struct diag *diag)
{
	uint64_t leader = 0;

	return tgid_of(tid, &leader) == -ESRCH ? diag_errno(diag, ESRCH, "there is no thread %" PRIu32, tid) : 0;
}
