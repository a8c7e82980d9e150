// SPDX-License-Identifier: Apache-2.0
#include "cli/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
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

/* Is the CPU in a list like "0-3,8"? */
static bool cpu_in_list(const char *list, uint64_t cpu)
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

	if (machine_read("/sys/devices/system/cpu/online", online, sizeof(online)) < 0 || cpu_in_list(online, cpu))
		return 0;
	return diag_errno(diag, EINVAL, "CPU %" PRIu64 " is not online: -C takes one of %s", cpu, online);
}
