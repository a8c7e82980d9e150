// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sonde/sonde.h>

#include "base/file.h"
#include "base/plain_text.h"

void output_guard_standard_fds(void)
{
	for (int fd = 0; fd <= 2; fd++) {
		/* opened with the opposite access: reading stdin and writing the others still fails, as with closed ones. open() returns
		 * the lowest free number; that is `fd`, because the smaller ones exist by now */
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) < 0)
			_exit(SONDE_EXIT_FAILED);
	}
}

int output_result(const struct buffer *buffer)
{
	int err = buffer->err;

	if (!err && buffer->size)
		err = file_write(STDOUT_FILENO, buffer->data, buffer->size);
	if (!err)
		return SONDE_EXIT_REPORT;
	output_say("cannot write to standard output: %s", strerror(-err));
	return SONDE_EXIT_FAILED;
}

int output_result_text(const char *text)
{
	const struct buffer result = { .data = (char *)(uintptr_t)text, .size = strlen(text) };

	return output_result(&result);
}

void output_talk(const char *text)
{
	if (text && file_write(STDERR_FILENO, text, strlen(text)) < 0)
		return; /* nobody listens */
}

void output_say(const char *fmt, ...)
{
	char line[1024] = "sonde: ";
	size_t prefix = strlen(line), end;
	va_list args;

	va_start(args, fmt);
	vsnprintf(line + prefix, sizeof(line) - prefix - 1, fmt, args);
	va_end(args);
	plain_make(line + prefix); /* the user's input may hold newlines and escapes */
	end = strlen(line);
	line[end] = '\n';
	line[end + 1] = '\0';
	output_talk(line);
}

bool output_progress_wanted(void)
{
	return isatty(STDERR_FILENO);
}

void output_progress(const char *fmt, ...)
{
	char line[128] = "\r\033[K"; /* go to the start of the line and erase it */
	size_t prefix = strlen(line);
	va_list args;

	va_start(args, fmt);
	vsnprintf(line + prefix, sizeof(line) - prefix, fmt, args);
	va_end(args);
	output_talk(line);
}

void output_progress_done(void)
{
	if (output_progress_wanted())
		output_talk("\r\033[K");
}

int output_no_memory(void)
{
	output_say("out of memory");
	return SONDE_EXIT_FAILED;
}

int output_usage(const struct verb *verb, const char *text)
{
	const char *name = verb && verb->name ? verb->name : NULL;

	output_say("%s (see 'sonde %s%s--help')", text, name ? name : "", name ? " " : "");
	return SONDE_EXIT_USAGE;
}

bool output_colour(int fd)
{
	const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");

	return isatty(fd) && !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
}

int output_help(const struct verb *verb, const struct option_result *result)
{
	struct buffer help = BUFFER_INIT(1 << 20);
	int code;

	if (result->version)
		buffer_printf(&help, "sonde %s\n", sonde_version());
	else
		option_help(verb, output_colour(STDOUT_FILENO), &help);
	code = output_result(&help);
	buffer_done(&help);
	return code;
}
