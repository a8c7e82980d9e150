// SPDX-License-Identifier: Apache-2.0
#include "show/source_lines.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/plain_text.h"

#define MAX_SOURCE_BYTES ((off_t)16 << 20)
#define MAX_LINE_BYTES 400

void source_lines_done(struct source_lines *lines)
{
	buffer_done(&lines->text);
}

bool source_may_be_shown(const struct stat *st)
{
	return st->st_mode & S_IROTH || (getuid() && st->st_uid == getuid());
}

/* NULL, or why it cannot be shown; "": it is not here, as most are. */
static const char *read_file(struct source_lines *lines, const char *path)
{
	struct stat st;
	CLEANUP(closep) int fd = file_open_regular(path, &st);
	ssize_t got = 1;

	if (fd < 0)
		return fd == -ENOENT ? "" : fd == -ENOEXEC ? "it is no regular file" : strerror(-fd);
	if (!source_may_be_shown(&st))
		return "it is not for everybody to read";
	if (st.st_size > MAX_SOURCE_BYTES)
		return "it is larger than any source";
	lines->changed_s = st.st_mtime > 0 ? (uint64_t)st.st_mtime : 0;
	while (got > 0 && lines->text.size < (size_t)st.st_size) {
		size_t want = (size_t)st.st_size - lines->text.size;
		char *room = buffer_reserve(&lines->text, want);

		if (!room)
			return "there is no memory for it";
		got = read(fd, room, want);
		lines->text.size -= want - (got > 0 ? (size_t)got : 0);
	}
	return got < 0 ? strerror(errno) : NULL;
}

static void take_file(struct source_lines *lines, const char *path)
{
	if (!strcmp(lines->path, path))
		return;
	buffer_done(&lines->text);
	lines->text = (struct buffer)BUFFER_INIT((size_t)MAX_SOURCE_BYTES + 1);
	lines->changed_s = 0;
	snprintf(lines->path, sizeof(lines->path), "%s", path);
	lines->missing = strlen(path) < sizeof(lines->path) ? read_file(lines, path) : "its path is too long";
}

void source_line_text(const char *from, size_t size, struct buffer *buffer)
{
	char text[MAX_LINE_BYTES + 1];
	size_t nr = 0;

	for (size_t i = 0; i < size && nr < MAX_LINE_BYTES; i++) {
		if (from[i] == '\t') { /* plain_text would replace a tab */
			do
				text[nr++] = ' ';
			while (nr % 8 && nr < MAX_LINE_BYTES);
		} else {
			text[nr++] = from[i] ? from[i] : '?';
		}
	}
	text[nr] = '\0';
	plain_text(buffer, text, ';');
}

static void write_line(const char *from, size_t size, uint64_t number, bool is_the_one, const char *indent, struct buffer *buffer)
{
	buffer_printf(buffer, "%s%s %6" PRIu64 "  ", indent, is_the_one ? ">" : " ", number);
	source_line_text(from, size, buffer);
	buffer_text(buffer, "\n");
}

void source_lines_write(struct source_lines *lines, const char *path, uint32_t line, uint32_t nr_around, uint64_t at_s,
			const char *indent, struct buffer *buffer)
{
	const char *text, *end;
	uint64_t number = 1;

	take_file(lines, path);
	if (lines->missing) {
		if (*lines->missing)
			buffer_printf(buffer, "%s[no source: %s]\n", indent, lines->missing);
		return;
	}
	if (at_s && lines->changed_s > at_s)
		buffer_printf(buffer, "%s[the source was changed since: lines may have moved]\n", indent);
	text = lines->text.data ? lines->text.data : "";
	end = text + lines->text.size;
	for (; text < end && number <= (uint64_t)line + nr_around; number++) {
		const char *line_end = memchr(text, '\n', (size_t)(end - text));
		size_t size = (size_t)((line_end ? line_end : end) - text);

		if (number + nr_around >= line)
			write_line(text, size, number, number == line, indent, buffer);
		text += size + (line_end != NULL);
	}
	if (number <= line)
		buffer_printf(buffer, "%s[the source has no line %" PRIu32 "]\n", indent, line);
	buffer_settle(buffer);
}
