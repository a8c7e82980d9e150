// SPDX-License-Identifier: Apache-2.0
#include "process/jit_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "proxy/credentials.h"

static void add(struct jit_files *files, int fd)
{
	if (fd >= 0) {
		files->fds[files->nr++] = fd;
	} else if (fd != -ENOENT && fd != -ESRCH) {
		files->nr_refused++;
		files->refusal = fd;
	}
}

uint32_t jit_files_number(uint32_t tgid)
{
	CLEANUP(credentials_done) struct credentials credentials = { 0 };
	CLEANUP(closep) int fd = -1;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%u", tgid);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || credentials_read(fd, &credentials) || !credentials.has_root || !credentials.inner_tgid)
		return tgid;
	return credentials.inner_tgid;
}

void jit_files_open(const struct jit_process *process, struct jit_files *ret_files)
{
	const char *dumps[JIT_FILES_MAX - 1];
	uint32_t nr_dumps = process->processes
				? process_table_dumps(process->processes, process->tgid, process->number, dumps, JIT_FILES_MAX - 1)
				: 0;
	char path[64];

	*ret_files = (struct jit_files){ 0 };
	snprintf(path, sizeof(path), "/tmp/perf-%u.map", process->number);
	add(ret_files, proxy_open_own(process->proxy, process->tgid, process->is_ours, path, JIT_FILES_MAX_MAP_BYTES));
	for (uint32_t i = 0; i < nr_dumps; i++)
		add(ret_files, proxy_open_own(process->proxy, process->tgid, process->is_ours, dumps[i], JIT_FILES_MAX_DUMP_BYTES));
}

void jit_files_done(struct jit_files *files)
{
	for (uint32_t i = 0; i < files->nr; i++)
		closep(&files->fds[i]);
	files->nr = 0;
}
