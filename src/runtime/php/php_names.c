// SPDX-License-Identifier: Apache-2.0
/* php_names: resolves PHP's functions from the zend_function: "Class::method"; closures as PHP writes them. Code outside of functions is
 * "<main>" (the script), "<include FILE>" or "<eval>". */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "runtime/php/php_private.h"

#define MAX_STRING_BYTES (1u << 20) /* a longer string is not a name */
#define STRING_TYPE 6               /* IS_STRING, low bits of the byte at 4 of every zend_string (zend_refcounted_h) */
#define STRING_TYPE_MASK 0xf

/* Appends the zend_string at `from`, up to a NUL: behind it PHP keeps the file and line of an anonymous class. 0; -EBADMSG: it is not a
 * zend_string; or the result of memory->read. */
static int append_string(const struct runtime_memory *memory, uint64_t from, char *to, size_t size)
{
	char bytes[RUNTIME_FILE_BYTES];
	uint8_t head[SONDE_PHP_STRING_TEXT];
	uint64_t length;
	int err = memory->read(memory->arg, from, head, sizeof(head));

	if (err)
		return err;
	memcpy(&length, head + SONDE_PHP_STRING_LENGTH, sizeof(length));
	if ((head[4] & STRING_TYPE_MASK) != STRING_TYPE || length > MAX_STRING_BYTES)
		return -EBADMSG;
	if (length > sizeof(bytes))
		length = sizeof(bytes);
	err = length ? memory->read(memory->arg, from + SONDE_PHP_STRING_TEXT, bytes, (size_t)length) : 0;
	if (!err)
		utf8_append_text(to, size, bytes, strnlen(bytes, (size_t)length));
	return err;
}

struct function_words { /* fields of a zend_function */
	uint64_t name, scope, filename;
	uint32_t line_start, flags;
	uint8_t type;
};

static int read_function(const struct sonde_php *php, const struct runtime_memory *memory, uint64_t from,
			 struct function_words *ret_function)
{
	struct function_words function = { 0 };
	uint8_t bytes[SONDE_PHP_OP_ARRAY_BYTES];
	int err = memory->read(memory->arg, from, bytes, SONDE_PHP_FN_BYTES);

	if (err)
		return err;
	function.type = bytes[0];
	if (function.type == SONDE_PHP_USER || function.type == SONDE_PHP_EVAL) {
		err = memory->read(memory->arg, from, bytes, sizeof(bytes));
		if (err)
			return err;
		memcpy(&function.filename, bytes + php->op_array_filename, sizeof(function.filename));
		memcpy(&function.line_start, bytes + php->op_array_line_start, sizeof(function.line_start));
	} else if (function.type != SONDE_PHP_INTERNAL) {
		return -EBADMSG;
	}
	memcpy(&function.flags, bytes + SONDE_PHP_FN_FLAGS, sizeof(function.flags));
	memcpy(&function.name, bytes + SONDE_PHP_FN_NAME, sizeof(function.name));
	memcpy(&function.scope, bytes + SONDE_PHP_FN_SCOPE, sizeof(function.scope));
	*ret_function = function;
	return 0;
}

static void name_code(const struct function_words *words, const struct sonde_runtime_frame *frame, struct runtime_function *function)
{
	const char *slash = strrchr(function->file, '/');

	if (words->type == SONDE_PHP_EVAL)
		snprintf(function->name, sizeof(function->name), "<eval>");
	else if (frame->where & SONDE_PHP_WHERE_INCLUDED)
		snprintf(function->name, sizeof(function->name), "<include %.400s>", slash ? slash + 1 : function->file);
	else
		snprintf(function->name, sizeof(function->name), "<main>");
}

static int name_function(const struct function_words *words, const struct runtime_memory *memory, struct runtime_function *function)
{
	char *name = function->name;
	size_t size = sizeof(function->name);
	uint64_t class_name;
	int err;

	if (words->scope) {
		err = memory->read(memory->arg, words->scope + SONDE_PHP_CLASS_NAME, &class_name, sizeof(class_name));
		if (!err)
			err = append_string(memory, class_name, name, size);
		if (err)
			return err;
		utf8_append_text(name, size, "::", 2);
	}
	err = append_string(memory, words->name, name, size);
	if (!err && !name[0])
		err = -EBADMSG;
	return err;
}

/* Do the words say that the function is still the one that the names were read of? A closure that was freed keeps its words for a while,
 * when its name's memory is another string's already. */
static bool is_still(const struct sonde_php *php, const struct runtime_memory *memory, uint64_t from, const struct function_words *words,
		     const char *name)
{
	struct function_words again;

	if (read_function(php, memory, from, &again) || again.type != words->type || again.name != words->name ||
	    again.scope != words->scope || again.filename != words->filename || again.line_start != words->line_start)
		return false;
	return !(words->flags & php->fn_closure) || words->flags & php->fn_closure << 1 || strstr(name, "{closure");
}

int php_describe(const struct runtime_image *image, const void *process, const struct runtime_memory *memory,
		 const struct sonde_runtime_frame *frame, struct runtime_function *ret_function)
{
	struct runtime_function function = { 0 };
	const struct sonde_php *php = process;
	struct function_words words;
	int err;

	err = read_function(php, memory, frame->code, &words);
	if (err)
		return err;
	if (php_cookie(words.name, words.filename, words.line_start) != frame->cookie)
		return -ESTALE;
	if (words.type != SONDE_PHP_INTERNAL) {
		err = append_string(memory, words.filename, function.file, sizeof(function.file));
		if (err)
			return err;
		function.start_line = words.line_start;
		function.line = (uint32_t)(frame->where & SONDE_PHP_LINE_MASK);
	}
	if (!words.name)
		name_code(&words, frame, &function);
	else
		err = name_function(&words, memory, &function);
	if (!err && !is_still(php, memory, frame->code, &words, function.name))
		err = -ESTALE;
	if (!err)
		*ret_function = function;
	return err;
}
