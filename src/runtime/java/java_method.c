// SPDX-License-Identifier: Apache-2.0
/* java_method: layouts from method.hpp, constMethod.hpp, constantPool.hpp, symbol.hpp. */
#include "runtime/java/java_method.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "runtime/java/java_lines.h"
#include "runtime/words.h"

#define MIN_ADDRESS 4096
#define ENTRY_BYTES 8 /* of a constant pool */
#define HAS_LINES 1   /* ConstMethod: _has_linenumber_table, the same bit in all versions */
#define LINES_STEP_BYTES 1024
#define LINES_MAX_BYTES (64 * 1024)
#define MAX_SYMBOL_BYTES 1024

static int read_u64(const struct runtime_memory *memory, uint64_t from, void *ret_value)
{
	return from < MIN_ADDRESS ? -EBADMSG : memory->read(memory->arg, from, ret_value, sizeof(uint64_t));
}

/* What the kernel side makes the cookie of (java_method in bpf/runtimes/java.h). */
static int read_words(const struct java_process *process, const struct runtime_memory *memory, uint64_t method,
		      struct sonde_java_method *ret_words, uint32_t *ret_flags)
{
	const struct sonde_java *java = &process->java;
	struct sonde_java_method words = { 0 };
	uint8_t bytes[64 + 8];
	uint64_t symbol;
	int err = read_u64(memory, method + java->method_const, &words.const_method);

	if (!err)
		err = words.const_method < MIN_ADDRESS ? -EBADMSG : memory->read(memory->arg, words.const_method, bytes, sizeof(bytes));
	if (err)
		return err;
	words.constants = u64_at(bytes, java->const_constants);
	words.code_size = u16_at(bytes, java->const_code_size);
	words.name = u16_at(bytes, java->const_name);
	words.signature = u16_at(bytes, java->const_signature);
	*ret_flags = u16_at(bytes, process->layout.const_flags);
	err = read_u64(memory, words.constants + java->pool_holder, &words.holder);
	if (!err)
		err = read_u64(memory, words.holder + java->klass_name, &symbol);
	if (!err)
		err = read_u64(memory, symbol, &words.class_name);
	if (!err)
		err = read_u64(memory, words.constants + java->pool_bytes + (uint64_t)words.name * ENTRY_BYTES, &words.method_symbol);
	if (!err)
		err = read_u64(memory, words.method_symbol, &words.method_name);
	words.class_name &= java->symbol_mask;
	words.method_name &= java->symbol_mask;
	*ret_words = words;
	return err;
}

/* Appends a symbol as UTF-8 to the text. Class names have slashes between packages. HotSpot writes characters above U+FFFF as pairs of
 * surrogates, which are no UTF-8 and are replaced. */
static int append_symbol(const struct java_process *process, const struct runtime_memory *memory, uint64_t symbol, char *text, size_t size)
{
	const struct java_layout *layout = &process->layout;
	char bytes[MAX_SYMBOL_BYTES];
	const char *pos = bytes, *end;
	size_t used = strlen(text);
	uint16_t length;
	int err;

	if (symbol < MIN_ADDRESS)
		return -EBADMSG;
	err = memory->read(memory->arg, symbol + layout->symbol_length, &length, sizeof(length));
	if (err)
		return err;
	length = length < sizeof(bytes) ? length : sizeof(bytes);
	err = memory->read(memory->arg, symbol + layout->symbol_body, bytes, length);
	end = bytes + length;
	for (bool has_room = true; !err && has_room && pos < end;) {
		uint32_t code = utf8_next(&pos, end);

		has_room = utf8_append(text, size, &used, code == '/' ? '.' : code);
	}
	return err;
}

/* The symbol at an index of a constant pool. */
static int pool_symbol(const struct java_process *process, const struct runtime_memory *memory, uint64_t pool, uint16_t index,
		       uint64_t *ret_symbol)
{
	uint32_t length;
	int err = memory->read(memory->arg, pool + process->layout.pool_length, &length, sizeof(length));

	if (!err && (!index || index >= length))
		return -EBADMSG;
	return err ? err : read_u64(memory, pool + process->java.pool_bytes + (uint64_t)index * ENTRY_BYTES, ret_symbol);
}

static int append_name(const struct java_process *process, const struct runtime_memory *memory, const struct sonde_java_method *words,
		       struct runtime_function *function)
{
	uint64_t symbol;
	size_t used;
	int err = read_u64(memory, words->holder + process->java.klass_name, &symbol);

	function->name[0] = '\0';
	if (!err)
		err = append_symbol(process, memory, symbol, function->name, sizeof(function->name) / 2);
	used = strlen(function->name);
	if (!err && !used)
		err = -EBADMSG;
	if (!err)
		err = pool_symbol(process, memory, words->constants, words->name, &symbol);
	if (err)
		return err;
	snprintf(function->name + used, sizeof(function->name) - used, ".");
	err = append_symbol(process, memory, symbol, function->name, sizeof(function->name));
	return !err && !function->name[used + 1] ? -EBADMSG : err;
}

/* "" if the class does not say it. */
static int read_file(const struct java_process *process, const struct runtime_memory *memory, const struct sonde_java_method *words,
		     struct runtime_function *function)
{
	const struct java_layout *layout = &process->layout;
	uint64_t symbol, from = layout->pool_source_file != JAVA_NONE ? words->constants + layout->pool_source_file
								      : words->holder + layout->klass_source_file;
	uint16_t index;
	int err = memory->read(memory->arg, from, &index, sizeof(index));

	function->file[0] = '\0';
	if (err || !index)
		return err;
	err = pool_symbol(process, memory, words->constants, index, &symbol);
	if (err == -EBADMSG) /* the pool of a method that the VM itself makes, as MethodHandle.invokeBasic */
		return 0;
	return err ? err : append_symbol(process, memory, symbol, function->file, sizeof(function->file));
}

/* The line table is behind the bytecodes. Its end is known when it is reached. */
static int read_line(const struct java_process *process, const struct runtime_memory *memory, const struct sonde_java_method *words,
		     uint32_t bci, struct runtime_function *function)
{
	uint64_t from = words->const_method + process->java.const_bytes + words->code_size;
	uint8_t table[LINES_MAX_BYTES];
	size_t size = 0;
	int err;

	for (size_t step = LINES_STEP_BYTES; size < sizeof(table); step *= 2) {
		size_t more = step < sizeof(table) - size ? step : sizeof(table) - size, in_page = 4096 - (from + size) % 4096;

		more = more < in_page ? more : in_page; /* the next page may not exist */
		err = memory->read(memory->arg, from + size, table + size, more);
		if (err)
			return err;
		size += more;
		if (java_line_of(table, size, process->layout.is_sparse, bci, &function->line, &function->start_line))
			return 0;
	}
	return -EBADMSG;
}

int java_method_describe(const struct java_process *process, const struct runtime_memory *memory, uint64_t method, uint32_t bci,
			 const uint32_t *cookie, struct runtime_function *ret_function)
{
	struct runtime_function function = *ret_function;
	struct sonde_java_method words, again;
	uint32_t flags = 0;
	int err = method < MIN_ADDRESS || method % 8 ? -EBADMSG : read_words(process, memory, method, &words, &flags);

	if (!err && cookie && sonde_java_cookie(&words) != *cookie)
		err = -ESTALE;
	if (!err)
		err = append_name(process, memory, &words, &function);
	if (!err)
		err = read_file(process, memory, &words, &function);
	if (err)
		return err;
	function.line = function.start_line = 0;
	if (flags & HAS_LINES && words.code_size) {
		err = read_line(process, memory, &words, bci == SONDE_JAVA_NO_BCI ? 0 : bci, &function);
		if (bci == SONDE_JAVA_NO_BCI)
			function.line = 0;
	}
	if (!err)
		err = read_words(process, memory, method, &again, &flags);
	if (!err && memcmp(&words, &again, sizeof(words)) != 0)
		err = -ESTALE;
	if (!err)
		*ret_function = function;
	return err;
}
