// SPDX-License-Identifier: Apache-2.0
#include "process/maps_line.h"

#include <string.h>
#include <sys/sysmacros.h>

#include "base/number.h"

/* The kernel writes a line break in a path as \012, and escapes nothing else. */
static void undo_escapes(char *path)
{
	char *to = path;

	for (const char *from = path; *from; to++) {
		if (!strncmp(from, "\\012", 4)) {
			*to = '\n';
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
}

bool maps_line_parse(char *line, struct mapping_event *ret_event)
{
	struct mapping_event event = { 0 };
	size_t size = strcspn(line, "\n");
	const char *pos = line, *end = line + size;
	uint64_t end_pc, major, minor;
	bool executable;

	line[size] = '\0';
	if (number_hex(&pos, end, &event.start_pc) || *pos++ != '-' || number_hex(&pos, end, &end_pc) || *pos++ != ' ')
		return false;
	if (end - pos < 5 || pos[4] != ' ')
		return false;
	executable = pos[2] == 'x';
	pos += 5;
	if (number_hex(&pos, end, &event.file_off) || *pos != ' ')
		return false;
	pos++;
	if (number_hex(&pos, end, &major) || *pos++ != ':' || number_hex(&pos, end, &minor) || *pos != ' ')
		return false;
	event.device = makedev((unsigned)major, (unsigned)minor);
	for (pos++; *pos >= '0' && *pos <= '9'; pos++)
		event.inode = event.inode * 10 + (uint64_t)(*pos - '0');
	pos += strspn(pos, " ");
	undo_escapes(line + (pos - line));
	event.path = pos;
	event.size_bytes = end_pc - event.start_pc;
	*ret_event = event;
	return executable && end_pc > event.start_pc && strcmp(event.path, "[vsyscall]");
}
