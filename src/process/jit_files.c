// SPDX-License-Identifier: Apache-2.0
#include "process/jit_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "process/maps_line.h"
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

/* jit-PID.dump */
bool jit_files_is_dump(const char *path, uint32_t number)
{
	const char *slash = strrchr(path, '/');
	char name[32];

	snprintf(name, sizeof(name), "jit-%u.dump", number);
	return slash && strcmp(slash + 1, name) == 0;
}

static void add_dump(struct jit_files *files, struct proxy *proxy, uint32_t tgid, uint32_t number, bool is_ours, const char *path)
{
	if (files->nr < JIT_FILES_MAX && jit_files_is_dump(path, number))
		add(files, proxy_open_own(proxy, tgid, is_ours, path, JIT_FILES_MAX_DUMP_BYTES));
}

void jit_files_add_dump(struct jit_files *files, struct proxy *proxy, uint32_t tgid, bool is_ours, const char *path)
{
	add_dump(files, proxy, tgid, jit_files_number(tgid), is_ours, path);
}

static void add_mapped_dumps(struct jit_files *files, struct proxy *proxy, uint32_t tgid, uint32_t number)
{
	CLEANUP(fclosep) FILE *file = NULL;
	CLEANUP(freep) char *line = NULL;
	char last[PATH_MAX] = "";
	struct mapping_event event;
	size_t capacity = 0;
	int err = proxy_maps(proxy, tgid, tgid, &file);

	while (!err && getline(&line, &capacity, file) > 0) {
		if (!maps_line_parse(line, &event) || !jit_files_is_dump(event.path, number) || strcmp(event.path, last) == 0)
			continue;
		/* The next line may be another mapping of the same file. */
		snprintf(last, sizeof(last), "%s", event.path);
		add_dump(files, proxy, tgid, number, false, event.path);
	}
}

void jit_files_open(struct proxy *proxy, uint32_t tgid, bool is_ours, struct jit_files *ret_files)
{
	uint32_t number = jit_files_number(tgid);
	char path[64];

	*ret_files = (struct jit_files){ 0 };
	snprintf(path, sizeof(path), "/tmp/perf-%u.map", number);
	add(ret_files, proxy_open_own(proxy, tgid, is_ours, path, JIT_FILES_MAX_MAP_BYTES));
	add_mapped_dumps(ret_files, proxy, tgid, number);
}

void jit_files_done(struct jit_files *files)
{
	for (uint32_t i = 0; i < files->nr; i++)
		closep(&files->fds[i]);
	files->nr = 0;
}
