// SPDX-License-Identifier: Apache-2.0
#include "symbolize/line_reader.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

int line_reader_init_fd(struct line_reader *reader, int fd, uint64_t max_bytes)
{
	*reader = (struct line_reader){ .fd = fd, .left_bytes = max_bytes };
	reader->room = malloc(LINE_READER_MAX);
	reader->pos = reader->end = reader->room;
	return reader->room ? 0 : -ENOMEM;
}

void line_reader_init_memory(struct line_reader *reader, const char *bytes, size_t size)
{
	*reader = (struct line_reader){ .fd = -1, .pos = bytes, .end = bytes + size };
}

void line_reader_done(struct line_reader *reader)
{
	free(reader->room);
	reader->room = NULL;
}

/* Moves the incomplete line to the front and reads more behind it. 1; 0 at the end; negative errno. */
static int fill(struct line_reader *reader)
{
	size_t have = (size_t)(reader->end - reader->pos), want = LINE_READER_MAX - have;
	ssize_t got;

	if (reader->fd < 0)
		return 0;
	if (have == LINE_READER_MAX) {
		reader->nr_too_long += !reader->skipping;
		reader->skipping = true;
		have = 0;
		want = LINE_READER_MAX;
	}
	if (want > reader->left_bytes)
		want = reader->left_bytes;
	memmove(reader->room, reader->pos, have);
	reader->pos = reader->room;
	reader->end = reader->room + have;
	do
		got = pread(reader->fd, reader->room + have, want, (off_t)reader->read_bytes);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	if (got == 0) {
		reader->fd = -1;
		return 0;
	}
	reader->end += got;
	reader->read_bytes += (uint64_t)got;
	reader->left_bytes -= (uint64_t)got;
	return 1;
}

int line_reader_next(struct line_reader *reader, const char **ret_line, const char **ret_end)
{
	for (;;) {
		const char *line = reader->pos;
		const char *newline = line < reader->end ? memchr(line, '\n', (size_t)(reader->end - line)) : NULL;
		bool skip = reader->skipping;
		int err;

		if (newline) {
			reader->pos = newline + 1;
			reader->skipping = false;
			if (skip)
				continue;
			*ret_line = line;
			*ret_end = newline;
			return 1;
		}
		err = fill(reader);
		if (err <= 0)
			return err;
	}
}
