// SPDX-License-Identifier: Apache-2.0
/* Names and lines of Ruby's frames, from the process's memory, which is untrusted. */
#include <errno.h>
#include <string.h>

#include "base/utf8.h"
#include "runtime/ruby/ruby_private.h"

/* RString, RArray: flags at 0. Embedded contents begin at 16; else the length is at 16. */
#define T_STRING 5
#define T_ARRAY 7
#define STRING_IS_ELSEWHERE (1u << 13)
#define STRING_LENGTH_SHIFT 14
#define STRING_LENGTH_MASK 31
#define STRING_TEXT 24
#define ARRAY_IS_EMBEDDED (1u << 13)
#define ARRAY_LENGTH_SHIFT 15
#define ARRAY_LENGTH_MASK 0x7f /* up to 3.1 only two of its bits are used */
#define ARRAY_ITEMS 32
#define CONTENTS 16
#define MAX_TEXT_BYTES 4096

#define ISEQ_EVAL 6 /* enum rb_iseq_type, the body's first word */
#define MAX_EVALS 64

/* struct succ_index_table (iseq.c): 7-bit entries for the first positions, then blocks of 512. */
#define INDEX_NEAR 54
#define INDEX_PER_WORD 9
#define INDEX_BLOCKS 48
#define INDEX_BLOCK_BYTES 80
#define INDEX_BLOCK_POSITIONS 512

/* symbol.c */
#define ID_SCOPE_SHIFT 4
#define IDS 16          /* from last_id on: an array of arrays */
#define IDS_PER_ARRAY 512
#define WORDS_PER_ID 2  /* the text, and the symbol */

struct names {
	const struct runtime_memory *memory;
	const struct sonde_ruby *ruby;
	const struct ruby_row *row;
	uint64_t symbols, last_operator;
};

static int read_at(const struct names *names, uint64_t from, void *to, size_t size)
{
	return names->memory->read(names->memory->arg, from, to, size);
}

static int read_u64(const struct names *names, uint64_t from, uint64_t *ret)
{
	return read_at(names, from, ret, sizeof(*ret));
}

static int read_u32(const struct names *names, uint64_t from, uint32_t *ret)
{
	return read_at(names, from, ret, sizeof(*ret));
}

/* Appends the text of a String. */
static int append_string(const struct names *names, uint64_t string, char *to, size_t size)
{
	char text[MAX_TEXT_BYTES];
	uint64_t flags, length, from = string + (names->row->has_plain_lengths ? STRING_TEXT : CONTENTS);
	int err = read_u64(names, string, &flags);

	if (err)
		return err;
	if ((flags & SONDE_RUBY_TYPE_MASK) != T_STRING)
		return -EBADMSG;
	length = flags >> STRING_LENGTH_SHIFT & STRING_LENGTH_MASK;
	if (flags & STRING_IS_ELSEWHERE || names->row->has_plain_lengths)
		err = read_u64(names, string + CONTENTS, &length);
	if (!err && flags & STRING_IS_ELSEWHERE)
		err = read_u64(names, string + STRING_TEXT, &from);
	if (!err && !length)
		return 0;
	length = length < sizeof(text) ? length : sizeof(text);
	err = err ? err : read_at(names, from, text, length);
	if (!err)
		utf8_append_text(to, size, text, length);
	return err;
}

/* The item of an Array. */
static int array_item(const struct names *names, uint64_t array, uint64_t i, uint64_t *ret_item)
{
	uint64_t flags, length, items = array + CONTENTS;
	int err = read_u64(names, array, &flags);

	if (err)
		return err;
	if ((flags & SONDE_RUBY_TYPE_MASK) != T_ARRAY)
		return -EBADMSG;
	if (flags & ARRAY_IS_EMBEDDED)
		return i < (flags >> ARRAY_LENGTH_SHIFT & ARRAY_LENGTH_MASK) ? read_u64(names, items + 8 * i, ret_item) : -EBADMSG;
	err = read_u64(names, array + CONTENTS, &length);
	if (!err && i >= length)
		return -EBADMSG;
	if (!err)
		err = read_u64(names, array + ARRAY_ITEMS, &items);
	return err ? err : read_u64(names, items + 8 * i, ret_item);
}

/* Appends a symbol's text, as rb_id2str finds it. */
static int append_symbol(const struct names *names, uint64_t id, char *to, size_t size)
{
	uint64_t number = id > names->last_operator ? id >> ID_SCOPE_SHIFT : id, ids, array, string;
	uint32_t last;
	int err = read_u32(names, names->symbols, &last);

	if (err)
		return err;
	if (!number || number > last)
		return -EBADMSG;
	err = read_u64(names, names->symbols + IDS, &ids);
	if (!err)
		err = array_item(names, ids, number / IDS_PER_ARRAY, &array);
	if (!err)
		err = array_item(names, array, number % IDS_PER_ARRAY * WORDS_PER_ID, &string);
	return err ? err : append_string(names, string, to, size);
}

/* --- lines ---------------------------------------------------------------------------------------------------------------------------- */

/* Number of entries of the line table up to a position (succ_index_lookup). */
static int index_of(const struct names *names, uint64_t index, uint64_t position, uint64_t *ret_nr)
{
	uint64_t block, ranks, bits, in_block = (position - INDEX_NEAR) % INDEX_BLOCK_POSITIONS, word = in_block / 64;
	uint32_t rank;
	int err;

	if (position < INDEX_NEAR) {
		err = read_u64(names, index + position / INDEX_PER_WORD * 8, &bits);
		*ret_nr = bits >> position % INDEX_PER_WORD * 7 & 0x7f;
		return err;
	}
	block = index + INDEX_BLOCKS + (position - INDEX_NEAR) / INDEX_BLOCK_POSITIONS * INDEX_BLOCK_BYTES;
	err = read_u32(names, block, &rank);
	if (!err)
		err = read_u64(names, block + 8, &ranks);
	if (!err)
		err = read_u64(names, block + 16 + word * 8, &bits);
	if (err)
		return err;
	*ret_nr = rank + (word ? ranks >> (word - 1) * 9 & 0x1ff : 0) + (uint64_t)__builtin_popcountll(bits << (63 - in_block % 64));
	return 0;
}

/* The line of a position; 0: it is not known. The pc is behind the instruction that it belongs to (calc_pos in vm_backtrace.c). */
static uint32_t line_of(const struct names *names, uint64_t body, uint64_t position)
{
	uint64_t lines, index, nr = 1;
	uint32_t nr_lines, line;

	if (position == SONDE_RUBY_NO_POSITION)
		return 0;
	position -= position > 0;
	if (read_u64(names, body + names->row->body_lines, &lines) || read_u32(names, body + names->row->body_nr_lines, &nr_lines) ||
	    !nr_lines)
		return 0;
	if (nr_lines > 1 && (read_u64(names, body + names->row->body_index, &index) || index_of(names, index, position, &nr)))
		return 0;
	if (!nr || nr > nr_lines || read_u32(names, lines + (nr - 1) * names->row->line_bytes, &line) || line > INT32_MAX)
		return 0;
	return line;
}

/* --- frames --------------------------------------------------------------------------------------------------------------------------- */

static int describe_c(const struct names *names, const struct sonde_runtime_frame *frame, struct runtime_function *function)
{
	uint64_t me = frame->code & ~(uint64_t)SONDE_RUBY_CODE_C, words[SONDE_RUBY_ME_BYTES / 8], id;
	int err = read_at(names, me, words, sizeof(words));

	if (err)
		return err;
	if (ruby_cookie(words[SONDE_RUBY_ME_DEF / 8], words[SONDE_RUBY_ME_CALLED_ID / 8], 0) != frame->cookie)
		return -ESTALE;
	err = read_u64(names, words[SONDE_RUBY_ME_DEF / 8] + names->row->def_id, &id);
	return err ? err : append_symbol(names, id, function->name, sizeof(function->name));
}

/* Code that eval() compiles is a part of the code around it, and is named as that. From 3.4 on its own label is "<compiled>". */
static int label_of(const struct names *names, uint64_t body, uint64_t *ret_label)
{
	for (int depth = 0; depth < MAX_EVALS; depth++) {
		uint64_t words[SONDE_RUBY_BODY_BYTES / 8], iseq = 0;
		int err = read_at(names, body, words, sizeof(words));

		if (!err && (uint32_t)words[0] != ISEQ_EVAL) {
			*ret_label = words[SONDE_RUBY_BODY_LABEL / 8];
			return 0;
		}
		if (!err)
			err = read_u64(names, body + names->row->body_parent, &iseq);
		if (!err)
			err = read_u64(names, iseq + SONDE_RUBY_ISEQ_BODY, &body);
		if (err)
			return err;
	}
	return -EBADMSG;
}

/* The path is a String, or an Array of the path as it was given and the real one. */
static int append_path(const struct names *names, uint64_t path, char *to, size_t size)
{
	uint64_t flags;
	int err = read_u64(names, path, &flags);

	if (!err && (flags & SONDE_RUBY_TYPE_MASK) == T_ARRAY)
		err = array_item(names, path, 0, &path);
	return err ? err : append_string(names, path, to, size);
}

static int describe_iseq(const struct names *names, const struct sonde_runtime_frame *frame, struct runtime_function *function)
{
	uint64_t body, words[SONDE_RUBY_BODY_BYTES / 8], first_line = 0, label = 0;
	int err = read_u64(names, frame->code + SONDE_RUBY_ISEQ_BODY, &body);

	if (!err)
		err = read_at(names, body, words, sizeof(words));
	if (err)
		return err;
	if (ruby_cookie(body, words[SONDE_RUBY_BODY_ENCODED / 8], words[SONDE_RUBY_BODY_LABEL / 8]) != frame->cookie)
		return -ESTALE;
	err = label_of(names, body, &label);
	if (!err)
		err = append_string(names, label, function->name, sizeof(function->name));
	if (!err)
		err = append_path(names, words[SONDE_RUBY_BODY_PATH / 8], function->file, sizeof(function->file));
	if (err)
		return err;
	function->line = line_of(names, body, frame->where);
	if (read_u64(names, body + names->row->body_first_line, &first_line))
		return 0;
	if (names->row->has_plain_lengths)
		first_line = (uint32_t)first_line;
	else
		first_line = first_line & 1 ? first_line >> 1 : 0;
	function->start_line = first_line <= INT32_MAX ? (uint32_t)first_line : 0;
	return 0;
}

int ruby_describe(const struct runtime_image *image, const void *process, const struct runtime_memory *memory,
		  const struct sonde_runtime_frame *frame, struct runtime_function *ret_function)
{
	const struct sonde_ruby *ruby = process;
	struct names names = { .memory = memory, .ruby = ruby, .row = ruby_row_of(image->version[0], image->version[1]) };
	struct runtime_function function;
	int err;

	memset(&function, 0, sizeof(function));
	names.symbols = RUNTIME_OWN(const struct ruby_naming, image->naming)->symbols + ruby->process.load_bias;
	names.last_operator = RUNTIME_OWN(const struct ruby_naming, image->naming)->last_operator;
	err = frame->code & SONDE_RUBY_CODE_C ? describe_c(&names, frame, &function) : describe_iseq(&names, frame, &function);
	if (!err && !function.name[0])
		err = -EBADMSG;
	if (err)
		return err;
	*ret_function = function;
	return 0;
}
