// SPDX-License-Identifier: Apache-2.0
/* Names and lines of Lua functions, from the process's memory, which is untrusted. A function has no name of its own in LuaJIT: it is
 * called by its chunk and first line, as LuaJIT's own profiler does. Layouts: lj_obj.h; lines as in lj_debug_line (lj_debug.c). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "runtime/luajit/luajit_private.h"

#define STRING_LENGTH 20 /* GCstr: len, and behind it the text with a NUL */
#define STRING_TEXT 24
#define MAX_SHOWN 40     /* of a chunk that is the text of a program */

struct proto {
	__u64 words[SONDE_LUAJIT_PROTO_BYTES / 8];
	uint32_t size, first_line, nr_lines; /* size: number of instructions */
};

static int read_at(const struct runtime_memory *memory, uint64_t from, void *to, size_t size)
{
	return memory->read(memory->arg, from, to, size);
}

static int read_proto(const struct runtime_memory *memory, const struct sonde_runtime_frame *frame, struct proto *ret_proto)
{
	__u64 chunk[SONDE_LUAJIT_CHUNK_BYTES / 8];
	int err = read_at(memory, frame->code, ret_proto->words, sizeof(ret_proto->words));

	if (!err)
		err = read_at(memory, ret_proto->words[SONDE_LUAJIT_PROTO_CHUNK] + SONDE_LUAJIT_CHUNK_OFF, chunk, sizeof(chunk));
	if (err)
		return err;
	if ((ret_proto->words[SONDE_LUAJIT_PROTO_SIZE] >> 8 & 0xff) != SONDE_LUAJIT_IS_PROTO ||
	    luajit_cookie(ret_proto->words, chunk) != frame->cookie)
		return -ESTALE;
	ret_proto->size = (uint32_t)(ret_proto->words[SONDE_LUAJIT_PROTO_SIZE] >> 32);
	ret_proto->first_line = (uint32_t)ret_proto->words[SONDE_LUAJIT_PROTO_LINES];
	ret_proto->nr_lines = (uint32_t)(ret_proto->words[SONDE_LUAJIT_PROTO_LINES] >> 32);
	return 0;
}

/* Reads a string's text up to its first `size - 1` bytes. */
static int read_string(const struct runtime_memory *memory, uint64_t string, char *to, size_t size)
{
	uint32_t length;
	int err = read_at(memory, string + STRING_LENGTH, &length, sizeof(length));

	if (!err && length > INT32_MAX)
		err = -EBADMSG;
	if (!err && length >= size)
		length = (uint32_t)size - 1;
	if (!err)
		err = read_at(memory, string + STRING_TEXT, to, length);
	if (!err)
		to[length] = '\0';
	return err;
}

/* The line of an instruction; 0: not known. */
static uint32_t line_of(const struct runtime_memory *memory, const struct proto *proto, uint64_t where)
{
	uint64_t position = where - 1, lines = proto->words[SONDE_LUAJIT_PROTO_LINEINFO];
	uint32_t width = proto->nr_lines < 256 ? 1 : proto->nr_lines < 65536 ? 2 : 4, delta = 0;

	if (where == SONDE_LUAJIT_NO_POSITION || !lines)
		return 0;
	if (!where || !position)
		return proto->first_line;
	if (position > proto->size)
		return 0;
	if (position == proto->size)
		return proto->first_line + proto->nr_lines;
	if (read_at(memory, lines + (position - 1) * width, &delta, width))
		return 0;
	return proto->first_line + delta;
}

/* "@FILE", "=NAME", or the text of the program itself, of which the first line is shown as Lua does. */
static void take_chunk(const char *chunk, struct runtime_function *function)
{
	char shown[MAX_SHOWN + 32];
	size_t length = strcspn(chunk, "\n");

	if (chunk[0] == '@' || chunk[0] == '=') {
		utf8_append_text(function->file, sizeof(function->file), chunk + 1, strlen(chunk + 1));
		return;
	}
	snprintf(shown, sizeof(shown), "[string \"%.*s%s\"]", (int)(length < MAX_SHOWN ? length : MAX_SHOWN), chunk,
		 length > MAX_SHOWN || chunk[length] ? "..." : "");
	utf8_append_text(function->file, sizeof(function->file), shown, strlen(shown));
}

static int describe_proto(const struct runtime_memory *memory, const struct sonde_runtime_frame *frame, struct runtime_function *function)
{
	char chunk[RUNTIME_FILE_BYTES];
	const char *slash;
	struct proto proto;
	int err = read_proto(memory, frame, &proto);

	if (!err)
		err = read_string(memory, proto.words[SONDE_LUAJIT_PROTO_CHUNK], chunk, sizeof(chunk));
	if (err)
		return err;
	take_chunk(chunk, function);
	slash = chunk[0] == '@' ? strrchr(function->file, '/') : NULL;
	if (proto.first_line)
		snprintf(function->name, sizeof(function->name), "%.400s:%u", slash ? slash + 1 : function->file, proto.first_line);
	else
		snprintf(function->name, sizeof(function->name), "main chunk of %.400s", slash ? slash + 1 : function->file);
	function->start_line = proto.first_line;
	function->line = line_of(memory, &proto, frame->where);
	return 0;
}

int luajit_describe(const struct runtime_image *image, const void *process, const struct runtime_memory *memory,
		    const struct sonde_runtime_frame *frame, struct runtime_function *ret_function)
{
	struct runtime_function function;
	int err = 0;

	memset(&function, 0, sizeof(function));
	if (frame->code == SONDE_LUAJIT_TRACE) {
		snprintf(function.name, sizeof(function.name), "[luajit: calls in trace not known]");
		function.is_mark = true;
	} else if (frame->code & SONDE_LUAJIT_BUILTIN) {
		snprintf(function.name, sizeof(function.name), "builtin#%u", (uint32_t)(frame->code & 0xff));
	} else {
		err = describe_proto(memory, frame, &function);
	}
	if (!err)
		*ret_function = function;
	return err;
}
