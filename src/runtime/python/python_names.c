// SPDX-License-Identifier: Apache-2.0
/* python_names: layouts from Include/cpython/code.h (before 3.8: Include/code.h) and Include/bytesobject.h. A code object never changes, so
 * it needs no lock; the cookie tells whether it is the one that the frame ran. Resolving a frame of usual size takes five reads: the
 * object, its name, its file's name, its line table, and the object again; before 3.12 the hash of its name with the object. */
#include "runtime/python/python_names.h"

#include <errno.h>
#include <stdio.h>

#include "base/reader.h"
#include "runtime/python/python_lines.h"
#include "runtime/python/python_text.h"

#define MAX_CODE_BYTES 512
#define MAX_BYTES_HEADER 256
#define MAX_TABLE_BYTES (1 << 20)   /* bytes of a table that are searched: over 100,000 lines */
#define MAX_SIZE (1LL << 40)
#define TABLE_PIECE_BYTES 16384

/* The fields of a code object that are read. */
struct code {
	uint64_t type, count, name; /* count: reference count; name: co_name, whose hash is known */
	struct sonde_python_code words;
};

struct code_bytes {
	uint8_t bytes[MAX_CODE_BYTES];
	size_t size;
	bool is_bad; /* a field was outside of them */
};

static uint64_t field(struct code_bytes *from, uint16_t off, size_t size)
{
	uint64_t value = 0;

	if (from->size < size || off > from->size - size)
		from->is_bad = true;
	else
		memcpy(&value, from->bytes + off, size);
	return value;
}

static size_t code_size(const struct python_layout *layout)
{
	const uint16_t words[] = { layout->code_type_off,  layout->code_filename,      layout->code_name,	 layout->code_qualname,
				   layout->code_linetable, layout->code_version,       layout->code_firstlineno, layout->code_flags,
				   layout->code_argcount,  layout->code_kwonlyargcount };
	size_t last = 0;

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		last = words[i] > last ? words[i] : last;
	return last + sizeof(uint64_t);
}

static int code_read(const struct python_layout *layout, const struct runtime_memory *memory, uint64_t object, struct code *ret_code)
{
	struct code_bytes from = { .size = code_size(layout) };
	int err;

	if (object < PYTHON_PAGE_BYTES || from.size > sizeof(from.bytes))
		return -EBADMSG;
	err = memory->read(memory->arg, object, from.bytes, from.size);
	if (err)
		return err;
	*ret_code = (struct code){
		.count = field(&from, 0, sizeof(uint64_t)),
		.type = field(&from, layout->code_type_off, sizeof(uint64_t)),
		.name = field(&from, layout->code_name, sizeof(uint64_t)),
		.words = {
			.filename = field(&from, layout->code_filename, sizeof(uint64_t)),
			.name = field(&from, layout->code_qualname ? layout->code_qualname : layout->code_name, sizeof(uint64_t)),
			.linetable = field(&from, layout->code_linetable, sizeof(uint64_t)),
			.firstlineno = (uint32_t)field(&from, layout->code_firstlineno, sizeof(uint32_t)),
			.flags = (uint32_t)field(&from, layout->code_flags, sizeof(uint32_t)),
			.argcount = (uint32_t)field(&from, layout->code_argcount, sizeof(uint32_t)),
			.kwonlyargcount = (uint32_t)field(&from, layout->code_kwonlyargcount, sizeof(uint32_t)),
			.version = layout->code_version ? (uint32_t)field(&from, layout->code_version, sizeof(uint32_t)) : 0,
		},
	};
	return from.is_bad ? -EBADMSG : 0;
}

/* Feeds the line table at `object` to the search. 0, also if the table is invalid: the search records that. */
static int search_table(const struct python_layout *layout, const struct runtime_memory *memory, uint64_t object,
			struct python_line_search *search)
{
	uint8_t bytes[MAX_BYTES_HEADER + TABLE_PIECE_BYTES];
	struct reader header;
	size_t got;
	uint64_t size;
	int err;

	if (object < PYTHON_PAGE_BYTES || layout->bytes_data > MAX_BYTES_HEADER)
		return -EBADMSG;
	err = python_read_ahead(memory, object, bytes, layout->bytes_data, sizeof(bytes), &got);
	if (err)
		return err;
	header = reader_of(bytes, layout->bytes_data);
	reader_skip(&header, layout->bytes_size);
	size = reader_u64(&header);
	if (header.bad || size > MAX_SIZE)
		return -EBADMSG;
	size = size < MAX_TABLE_BYTES ? size : MAX_TABLE_BYTES;
	got -= layout->bytes_data;
	got = got < size ? got : size;
	if (python_lines_feed(search, bytes + layout->bytes_data, got))
		return 0;
	for (uint64_t at = got; at < size; at += got) {
		got = size - at < TABLE_PIECE_BYTES ? size - at : TABLE_PIECE_BYTES;
		err = memory->read(memory->arg, object + layout->bytes_data + at, bytes, got);
		if (err)
			return err;
		if (python_lines_feed(search, bytes, got))
			return 0;
	}
	return 0;
}

/* Finds the line of a position; *ret_line 0: none. */
static int line_of(const struct python_layout *layout, const struct runtime_memory *memory, const struct code *code, uint64_t where,
		   uint32_t start_line, uint32_t *ret_line)
{
	struct python_line_search search;
	int32_t line;
	int err;

	*ret_line = start_line;
	if (where > INT32_MAX) /* nothing has run yet: f_lasti is negative */
		return 0;
	python_lines_start(&search, layout->lines, start_line, (uint32_t)where);
	err = search_table(layout, memory, code->words.linetable, &search);
	if (err)
		return err;
	line = python_lines_line(&search);
	if (line != PYTHON_NO_LINE)
		*ret_line = (uint32_t)line;
	else if (!python_lines_is_before_first(&search))
		*ret_line = 0;
	return 0;
}

/* Checks that the object is alive and the one that the frame ran. A freed object keeps its bytes except the first word: there free memory
 * has the address of the next block (or 0). A reference count never uses bits 32 to 47 (3.14 has flags above 48). Free-threaded objects
 * begin with the thread's id. */
static int code_check(const struct runtime_image *image, const struct sonde_python *python, const struct runtime_memory *memory,
		      const struct sonde_runtime_frame *frame, struct code *code)
{
	const struct python_layout *layout = RUNTIME_OWN(const struct python_layout, image->naming);
	struct sonde_python_code *words = &code->words;
	uint64_t hash_at = code->name + layout->code_type_off + SONDE_PYTHON_HASH_OFF; /* as in bpf/runtimes/python.h */
	int err;

	if (layout->code_type && code->type != layout->code_type + python->process.load_bias)
		return -EBADMSG;
	err = layout->code_version ? 0 : memory->read(memory->arg, hash_at, &words->name_hash, sizeof(words->name_hash));
	if (err)
		return err;
	if (sonde_python_cookie(words) != frame->cookie)
		return -ESTALE;
	return layout->code_type_off == 8 && (!code->count || (uint16_t)(code->count >> 32)) ? -ESTALE : 0;
}

int python_describe(const struct runtime_image *image, const void *process, const struct runtime_memory *memory,
		    const struct sonde_runtime_frame *frame, struct runtime_function *ret_function)
{
	const struct python_layout *layout = RUNTIME_OWN(const struct python_layout, image->naming);
	const struct sonde_python *python = process;
	struct runtime_function function;
	struct code code;
	int err = code_read(layout, memory, frame->code, &code);

	if (!err)
		err = code_check(image, python, memory, frame, &code);
	if (err)
		return err;
	err = python_text_read(layout, memory, code.words.name, function.name, sizeof(function.name));
	if (!err)
		err = python_text_read(layout, memory, code.words.filename, function.file, sizeof(function.file));
	if (err)
		return err;
	if (!function.name[0]) /* code.replace() allows an empty name */
		snprintf(function.name, sizeof(function.name), "<no name>");
	function.start_line = code.words.firstlineno > INT32_MAX ? 0 : code.words.firstlineno;
	err = line_of(layout, memory, &code, frame->where, function.start_line, &function.line);
	if (err == -ENODATA) {
		function.line = 0;
		err = 0;
	}
	if (!err)
		err = code_read(layout, memory, frame->code, &code);
	function.is_lasting = code.words.version;
	if (!err)
		err = code_check(image, python, memory, frame, &code); /* it may have been freed meanwhile, with its name and table */
	if (!err)
		*ret_function = function;
	return err;
}
