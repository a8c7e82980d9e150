// SPDX-License-Identifier: Apache-2.0
#include "cli/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>

#include "base/cpus.h"
#include "base/small_file.h"

int machine_check_cpu(uint64_t cpu, struct diag *diag)
{
	CLEANUP(cpus_done) struct cpus cpus = { 0 };
	char online[1024];

	if (small_file_read(AT_FDCWD, "/sys/devices/system/cpu/online", online, sizeof(online)) || cpus_parse(online, &cpus))
		return 0;
	for (uint32_t i = 0; i < cpus.nr; i++) {
		if (cpus.ids[i] == cpu)
			return 0;
	}
	return diag_errno(diag, EINVAL, "CPU %" PRIu64 " is not online: -C takes one of %s", cpu, online);
}
