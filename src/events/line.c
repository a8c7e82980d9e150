// SPDX-License-Identifier: Apache-2.0
#include "events/line.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/plain_text.h"

#define ERESTARTSYS 512 /* linux/errno.h: the kernel's own, of calls that a signal interrupted and that begin anew */

void line_time(struct buffer *line, uint64_t unix_ns)
{
	time_t seconds = (time_t)(unix_ns / NS_PER_S);
	struct tm local = { 0 };

	localtime_r(&seconds, &local);
	buffer_printf(line, "%02d:%02d:%02d.%03d", local.tm_hour, local.tm_min, local.tm_sec, (int)(unix_ns % NS_PER_S / NS_PER_MS));
}

static void pad_from(struct buffer *line, size_t begin, size_t width)
{
	while (!line->err && line->size - begin < width)
		buffer_text(line, " ");
}

void line_text(struct buffer *line, const char *text, size_t width)
{
	size_t begin = line->size;

	plain_text(line, text, ';');
	pad_from(line, begin, width);
}

void line_comm(struct buffer *line, const char comm[SONDE_COMM_BYTES])
{
	char text[SONDE_COMM_BYTES + 1] = "";

	memcpy(text, comm, SONDE_COMM_BYTES);
	line_text(line, text, SONDE_COMM_BYTES - 1);
}

const char *line_error_name(int err)
{
	if (err == ERESTARTSYS || (err >= ERESTARTSYS + 1 && err <= ERESTARTSYS + 4 && err != ERESTARTSYS + 3))
		return "ERESTART";
	return strerrorname_np(err);
}

void line_error(struct buffer *line, int err, size_t width)
{
	const char *name = err ? line_error_name(err) : "-";
	size_t begin = line->size;

	if (name)
		buffer_text(line, name);
	else
		buffer_printf(line, "%d", err);
	pad_from(line, begin, width);
}

void line_json_heading(struct buffer *lines, const char *format, const char *command_line)
{
	struct json json = { .buffer = lines };

	json_open(&json, '{');
	json_key_text(&json, "format", format);
	json_key_u64(&json, "version", 1);
	json_key_text(&json, "command_line", command_line ? command_line : "");
	json_close(&json, '}');
	buffer_text(lines, "\n");
}

void line_json_comm(struct json *json, const char comm[SONDE_COMM_BYTES])
{
	char text[SONDE_COMM_BYTES + 1] = "";

	memcpy(text, comm, SONDE_COMM_BYTES);
	json_key_text(json, "comm", text);
}
