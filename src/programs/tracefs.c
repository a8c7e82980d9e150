// SPDX-License-Identifier: Apache-2.0
#include "programs/tracefs.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define COMMON "common_"      /* fields of every event */
#define NUMBER "__syscall_nr" /* the call's own number */

/* A mount without a place: it is gone with its descriptor (Linux 5.2). */
static int mount_for_us(void)
{
	int fs = (int)syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC), fd = -1;

	if (fs < 0)
		return -1;
	if (!syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		fd = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, 0);
	close(fs);
	return fd;
}

void tracefs_open(struct tracefs *ret_tracefs)
{
	static const char *const places[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		int fd = open(places[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (fd >= 0 && !faccessat(fd, "events", F_OK, 0)) {
			*ret_tracefs = (struct tracefs){ fd, places[i] };
			return;
		}
		if (fd >= 0)
			close(fd);
	}
	ret_tracefs->fd = mount_for_us();
	ret_tracefs->where = ret_tracefs->fd >= 0 ? "tracefs, mounted for sonde alone" : "BTF alone, as there is no tracefs";
}

void tracefs_done(struct tracefs *tracefs)
{
	if (tracefs->fd >= 0)
		close(tracefs->fd);
	tracefs->fd = -1;
}

/* A line: "\tfield:const char * filename;\toffset:24;\tsize:8;\tsigned:0;". */
static void take_field(const char *line, struct call_args *args)
{
	const char *at = strstr(line, "field:"), *end = at ? strchr(at, ';') : NULL, *name = end;

	if (!end || args->nr == CALL_ARGS)
		return;
	while (name > at && name[-1] != ' ' && name[-1] != '*')
		name--;
	if (!strncmp(name, COMMON, strlen(COMMON)) || !strncmp(name, NUMBER, strlen(NUMBER)))
		return;
	snprintf(args->list[args->nr].name, sizeof(args->list[0].name), "%.*s", (int)(end - name), name);
	args->list[args->nr++].is_text = strstr(at, "char *") && strstr(at, "char *") < name;
}

void tracefs_call_args(const struct tracefs *tracefs, const char *call, struct call_args *ret_args)
{
	char path[256];
	char *line = NULL;
	size_t size = 0;
	FILE *file;
	int fd;

	*ret_args = (struct call_args){ 0 };
	snprintf(path, sizeof(path), "events/syscalls/sys_enter_%s/format", call);
	fd = tracefs->fd >= 0 ? openat(tracefs->fd, path, O_RDONLY | O_CLOEXEC) : -1;
	file = fd >= 0 ? fdopen(fd, "re") : NULL;
	while (file && getline(&line, &size, file) > 0)
		take_field(line, ret_args);
	free(line);
	if (file)
		fclose(file);
	else if (fd >= 0)
		close(fd);
}
