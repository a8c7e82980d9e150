// SPDX-License-Identifier: Apache-2.0
#include "programs/call_args.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COMMON "common_"      /* fields of every event */
#define NUMBER "__syscall_nr" /* the call's own number */

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
	at += strlen("field:");
	snprintf(args->list[args->nr].type, sizeof(args->list[0].type), "%.*s", (int)(name - at), at);
	args->list[args->nr++].is_text = strstr(at, "char *") && strstr(at, "char *") < name;
}

void call_args_read(int tracefs_fd, const char *call, struct call_args *ret_args)
{
	CLEANUP(closep) int fd = -1;
	CLEANUP(freep) char *line = NULL;
	char path[256];
	size_t size = 0;
	FILE *file;

	*ret_args = (struct call_args){ 0 };
	snprintf(path, sizeof(path), "events/syscalls/sys_enter_%s/format", call);
	fd = openat(tracefs_fd, path, O_RDONLY | O_CLOEXEC);
	file = fd >= 0 ? fdopen(fd, "re") : NULL;
	if (!file)
		return;
	fd = -1; /* the file's */
	while (getline(&line, &size, file) > 0)
		take_field(line, ret_args);
	fclose(file);
}
