// SPDX-License-Identifier: Apache-2.0
/* Names and lines of Erlang functions, from the process's memory, which is untrusted. Atoms are never freed, so a function has its name
 * even if its code was replaced meanwhile; then it has no line. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "runtime/beam/beam_private.h"

/* atom.h and index.h: in the table's segments of 1,024, pointers to: hash bucket (16), index (8), int16 length, ..., at 32 the text. */
#define ATOM_SHIFT 6
#define ATOM_TAG 0x0b /* _TAG_IMMED2_ATOM */
#define ATOM_TAG_MASK 0x3f
#define SEGMENT_SHIFT 10
#define ATOM_LENGTH 24
#define ATOM_TEXT 32
#define BINARY_TAG 2  /* of a pointer to ErlHeapBits: its header, its size, the bytes */
#define BINARY_TAG_MASK 3
#define BINARY_BYTES 16
#define ATOM_MAX_BYTES 1020 /* 255 characters */
/* erl_term.h: lists and small integers */
#define LIST_TAG 1
#define SMALL_TAG 0x0f
#define NIL 0x3b
#define MAX_FILE_CHARACTERS 255

int beam_append_atom(const struct beam_memory *of, uint64_t atoms, uint64_t term, char *to, size_t size)
{
	uint64_t index = term >> ATOM_SHIFT, segments, segment, atom, text;
	size_t used = strlen(to);
	char bytes[ATOM_MAX_BYTES];
	int16_t length;
	int err;

	if ((term & ATOM_TAG_MASK) != ATOM_TAG)
		return -EBADMSG;
	err = beam_read(of, atoms, &segments, sizeof(segments));
	if (!err)
		err = beam_read(of, segments + 8 * (index >> SEGMENT_SHIFT), &segment, sizeof(segment));
	if (!err)
		err = beam_read(of, segment + 8 * (index & ((1u << SEGMENT_SHIFT) - 1)), &atom, sizeof(atom));
	if (!err)
		err = beam_read(of, atom + ATOM_LENGTH, &length, sizeof(length));
	if (!err)
		err = beam_read(of, atom + ATOM_TEXT, &text, sizeof(text));
	if (!err && (length < 0 || (size_t)length > sizeof(bytes) || (of->row->has_binaries && (text & BINARY_TAG_MASK) != BINARY_TAG)))
		err = -EBADMSG;
	if (!err && length)
		err = beam_read(of, of->row->has_binaries ? text - BINARY_TAG + BINARY_BYTES : text, bytes, (size_t)length);
	if (err)
		return err;
	for (const char *pos = bytes; pos < bytes + length;)
		utf8_append(to, size, &used, utf8_next(&pos, bytes + length));
	return 0;
}

/* A file's name is a list of characters. */
static int append_list(const struct beam_memory *of, uint64_t list, char *to, size_t size)
{
	size_t used = strlen(to);
	uint64_t cell[2];

	for (int i = 0; i < MAX_FILE_CHARACTERS && (list & 3) == LIST_TAG; i++) {
		int err = beam_read(of, list - LIST_TAG, cell, sizeof(cell));

		if (err)
			return err;
		if ((cell[0] & 15) != SMALL_TAG || cell[0] >> 4 > 0x10ffff || (cell[0] >> 4 >= 0xd800 && cell[0] >> 4 < 0xe000))
			return -EBADMSG;
		utf8_append(to, size, &used, (uint32_t)(cell[0] >> 4));
		list = cell[1];
	}
	return list == NIL ? 0 : -EBADMSG;
}

/* Line and file, if the code is still the one that was sampled. */
static void describe_place(const struct beam_memory *of, uint64_t atoms, const struct sonde_runtime_frame *frame,
			   struct runtime_function *function)
{
	uint64_t pc = (frame->where & SONDE_BEAM_PC_MASK) - !(frame->where & SONDE_BEAM_EXACT), file = 0;
	uint32_t line = 0, start = 0;
	struct beam_found found;
	bool is_named;

	if (beam_code_find(of, pc, &found) || sonde_beam_cookie(found.header, found.info, found.next) != frame->cookie ||
	    frame->code != ((found.mfa[0] & 0xffffffff) | found.mfa[1] << 32) || beam_code_line(of, &found, pc, &line, &start, &file))
		return;
	is_named = file ? !append_list(of, file, function->file, sizeof(function->file))
			: !beam_append_atom(of, atoms, found.mfa[0], function->file, sizeof(function->file) - 4);
	if (!is_named || !function->file[0]) {
		function->file[0] = '\0';
		return;
	}
	if (!file)
		strncat(function->file, ".erl", sizeof(function->file) - strlen(function->file) - 1);
	function->line = line;
	function->start_line = start;
}

static int describe_function(const struct beam_memory *of, uint64_t atoms, const struct sonde_runtime_frame *frame,
			     struct runtime_function *function)
{
	size_t size = sizeof(function->name) - 8, used;
	int err = beam_append_atom(of, atoms, frame->code & 0xffffffff, function->name, size);

	utf8_append_text(function->name, size, ":", 1);
	if (!err)
		err = beam_append_atom(of, atoms, frame->code >> 32, function->name, size);
	if (err)
		return err;
	used = strlen(function->name);
	snprintf(function->name + used, sizeof(function->name) - used, "/%u",
		 (unsigned int)(frame->where >> SONDE_BEAM_ARITY_SHIFT & 0xff));
	describe_place(of, atoms, frame, function);
	return 0;
}

int beam_describe(const struct runtime_image *image, const void *process, const struct runtime_memory *memory,
		  const struct sonde_runtime_frame *frame, struct runtime_function *ret_function)
{
	struct beam_memory of = { .memory = memory, .beam = process, .row = beam_row_of(image->version[0]) };
	uint64_t atoms = RUNTIME_OWN(const struct beam_naming, image->naming)->atoms + of.beam->process.load_bias;
	struct runtime_function function;
	int err = -EBADMSG;

	memset(&function, 0, sizeof(function));
	switch (frame->where >> SONDE_BEAM_CODE_SHIFT) {
	case SONDE_BEAM_FUNCTION:
		err = describe_function(&of, atoms, frame, &function);
		break;
	case SONDE_BEAM_SHARED: /* as in the runtime's own perf map */
		snprintf(function.name, sizeof(function.name), "$global");
		err = 0;
		break;
	case SONDE_BEAM_MAIN:
		snprintf(function.name, sizeof(function.name), "process_main");
		err = 0;
		break;
	}
	if (!err)
		*ret_function = function;
	return err;
}
