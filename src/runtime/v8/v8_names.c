// SPDX-License-Identifier: Apache-2.0
/* v8_names: layouts: objects/shared-function-info.tq, scope-info.tq, script.tq. A moving collector may move any object meanwhile: what
 * tells the function and its code (struct sonde_v8_identity) is read before and after the rest. */
#include "runtime/v8/v8_names.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "runtime/v8/v8_builtins.h"
#include "runtime/v8/v8_code.h"

#define PC_MASK ((1ULL << 48) - 1)
#define SHARED_DATA 8        /* SharedFunctionInfo: its code */
#define PEELING_VERSION 4    /* of the table: from Node 24 on, Maglev gives the second copy of a loop the position of its head */
#define SCOPE_WORDS 12       /* of a ScopeInfo behind its local variables */
#define MAX_INLINED_LOCALS 75 /* ScopeInfo: more names are in a table of their own */
#define MAX_LOCALS (1 << 16)

static int read_identity(const struct v8_heap *heap, uint64_t shared, struct sonde_v8_identity *ret_identity)
{
	const struct sonde_v8 *v8 = &heap->process->v8;
	struct sonde_v8_identity of = { 0 };
	uint64_t words[SONDE_V8_OBJECT_BYTES / 8];
	int err = v8_object_read(heap, shared, 0, words, v8->shared_flags + 8u);

	if (err)
		return err;
	of.map = words[0];
	of.name = words[v8->shared_name / 8];
	of.script = words[v8->shared_script / 8];
	of.number = words[v8->shared_flags / 8] >> 32;
	err = v8_object_read(heap, of.script, v8->script_id, &of.script_id, sizeof(of.script_id));
	*ret_identity = of;
	return err;
}

/* The text that a word of an object leads to. A collector changes the word before another object gets the old one's place: while it is
 * the same, what was read was the text. */
static int read_text(const struct v8_heap *heap, uint64_t object, uint32_t off, char *text, size_t size)
{
	uint64_t string, again;
	int err = v8_object_word(heap, object, off, &string);

	if (!err)
		err = v8_object_text(heap, string, text, size);
	if (!err)
		err = v8_object_word(heap, object, off, &again);
	return !err && again != string ? -ESTALE : err;
}

/* Words behind the local variables: [function name, its slot], [inferred name], [start and end position], ... What there is differs, so it
 * is told by the words: the first text that is not empty is the name, the last two numbers before another object are the positions. */
static int read_scope(const struct v8_heap *heap, uint64_t scope, struct runtime_function *function, int32_t *ret_start)
{
	const struct v8_layout *layout = &heap->process->layout;
	uint64_t nr_locals, word;
	uint32_t at;
	int32_t last[2] = { -1, -1 };
	int err = v8_object_word(heap, scope, 8u + 8u * layout->scope_locals, &nr_locals);

	if (err)
		return err;
	if (!v8_is_smi(nr_locals) || v8_smi(nr_locals) < 0 || v8_smi(nr_locals) > MAX_LOCALS)
		return -EBADMSG;
	at = 8u + 8u * layout->scope_first + 8u * (uint32_t)v8_smi(nr_locals);
	at += v8_smi(nr_locals) < MAX_INLINED_LOCALS ? 8u * (uint32_t)v8_smi(nr_locals) : 8u;
	for (uint32_t i = 0; i < SCOPE_WORDS; i++) {
		uint16_t type;

		err = v8_object_word(heap, scope, at + 8 * i, &word);
		if (err)
			return err;
		if (v8_is_smi(word)) {
			last[0] = last[1];
			last[1] = v8_smi(word);
			continue;
		}
		if (v8_object_type(heap, word, &type))
			break;
		if (v8_is_string(heap, type)) {
			if (!function->name[0])
				err = read_text(heap, scope, at + 8 * i, function->name, sizeof(function->name));
			if (err)
				return err;
			last[0] = last[1] = -1;
		} else if (last[0] >= 0) {
			break;
		}
	}
	*ret_start = last[0];
	if (layout->scope_first >= 5) { /* the positions are before the local variables */
		err = v8_object_word(heap, scope, 8u + 8u * (layout->scope_first - 2u), &word);
		*ret_start = !err && v8_is_smi(word) ? v8_smi(word) : -1;
	}
	return err;
}

static int read_name(const struct v8_heap *heap, const struct sonde_v8_identity *of, struct runtime_function *function, int32_t *ret_start)
{
	uint16_t type;
	int err = v8_object_type(heap, of->name, &type);

	*ret_start = -1;
	function->name[0] = '\0';
	if (err)
		return err;
	if (v8_is_string(heap, type))
		err = v8_object_text(heap, of->name, function->name, sizeof(function->name));
	else if (type == heap->process->layout.type_scope)
		err = read_scope(heap, of->name, function, ret_start);
	else
		err = -EBADMSG;
	return err;
}

/* The Script of a function; 0: it has none (API functions). A function that is debugged leads to it by its DebugInfo. */
static int read_script(const struct v8_heap *heap, const struct sonde_v8_identity *of, uint64_t *ret_script)
{
	uint16_t type;
	int err = v8_object_type(heap, of->script, &type);

	*ret_script = !err && type == heap->process->v8.script_type ? of->script : 0;
	return err;
}

/* Eval's code has no file. A string that cannot be read now is being moved: that is an error, else the function would stay without it. */
static int read_file(const struct v8_heap *heap, uint64_t script, struct runtime_function *function)
{
	uint32_t off = heap->process->layout.script_name;
	uint64_t name;
	uint16_t type;
	int err = v8_object_word(heap, script, off, &name);

	function->file[0] = '\0';
	if (!err && v8_is_smi(name))
		return 0;
	if (!err)
		err = v8_object_type(heap, name, &type);
	if (!err && v8_is_string(heap, type))
		err = read_text(heap, script, off, function->file, sizeof(function->file));
	return err;
}

static int describe_shared(const struct v8_heap *heap, uint64_t shared, int32_t position, struct runtime_function *function)
{
	struct sonde_v8_identity of;
	uint64_t script;
	int32_t start;
	uint16_t type;
	int err = v8_object_type(heap, shared, &type);

	if (!err && type != heap->process->layout.type_shared)
		err = -ESTALE;
	if (!err)
		err = read_identity(heap, shared, &of);
	if (!err)
		err = read_name(heap, &of, function, &start);
	if (!err)
		err = read_script(heap, &of, &script);
	if (err)
		return err;
	function->file[0] = '\0';
	function->line = function->start_line = 0;
	if (script) {
		err = read_file(heap, script, function);
		function->start_line = v8_lines_line(heap, script, start);
		function->line = v8_lines_line(heap, script, position);
	}
	if (!function->name[0])
		snprintf(function->name, sizeof(function->name), "(anonymous)");
	return err;
}

/* The bytecodes of a function; -ENOENT: it has none now. Baseline code leads to them. */
static int find_bytecodes(const struct v8_heap *heap, uint64_t shared, uint64_t *ret_bytecodes)
{
	uint64_t data;
	uint16_t type;
	int err = v8_object_word(heap, shared, SHARED_DATA, &data);

	for (int link = 0; !err && link < 2; link++) {
		err = v8_object_type(heap, data, &type);
		if (!err && type == heap->process->v8.bytecodes_type) {
			*ret_bytecodes = data;
			return 0;
		}
		if (!err)
			err = v8_object_word(heap, data, heap->process->v8.code_data, &data);
	}
	return -ENOENT;
}

/* The position in the script of a bytecode; -1: not known: V8 makes the table when it first needs it. */
static int32_t bytecode_position(const struct v8_heap *heap, uint64_t shared, int32_t off)
{
	struct v8_position position = { -1, -1 };
	uint64_t bytecodes, table;

	if (off < 0 || find_bytecodes(heap, shared, &bytecodes) ||
	    v8_object_word(heap, bytecodes, heap->process->layout.bytecode_positions, &table) ||
	    v8_lines_position(heap, table, (uint32_t)off, &position))
		return -1;
	return position.offset;
}

static int describe_bytecode(const struct v8_heap *heap, const struct sonde_runtime_frame *frame, struct runtime_function *function)
{
	int32_t position = bytecode_position(heap, frame->code, (int32_t)(uint32_t)frame->where);

	return describe_shared(heap, frame->code, position, function);
}

/* The function at a place in code, and the position there. *ret_shared 0: it is the one that was compiled, not one that is inlined. */
static int find_function(const struct v8_heap *heap, const struct sonde_runtime_frame *frame, struct sonde_v8_identity *of, uint32_t level,
			 uint64_t *ret_shared, int32_t *ret_position)
{
	uint64_t pc = frame->where & PC_MASK;
	struct v8_code_object code;
	int err = v8_code_find(heap, pc, &code);

	*ret_shared = 0;
	*ret_position = -1;
	if (err)
		return err;
	of->code = code.code;
	of->data = code.data;
	of->compilation = code.compilation;
	if (sonde_v8_cookie(of) != frame->cookie)
		return -ESTALE;
	if (frame->where >> SONDE_V8_CODE_SHIFT != SONDE_V8_OPTIMIZED)
		return 0;
	err = v8_code_inlined(heap, &code, (uint32_t)(pc - code.start) - !(frame->where & SONDE_V8_EXACT), level, ret_shared, ret_position);
	if (heap->process->layout.version >= PEELING_VERSION && code.kind != heap->process->v8.kind_last)
		*ret_position = -1;
	return err;
}

static int describe_code(const struct v8_heap *heap, const struct sonde_runtime_frame *frame, struct sonde_v8_identity *of,
			 struct runtime_function *function)
{
	uint64_t shared, again;
	int32_t position;
	int err = find_function(heap, frame, of, function->level, &shared, &position);

	if (!err)
		err = describe_shared(heap, shared ? shared : frame->code, position, function);
	if (err || !shared)
		return err;
	function->has_caller = true;
	err = find_function(heap, frame, of, function->level, &again, &position);
	return !err && again != shared ? -ESTALE : err;
}

/* A function, interpreted or compiled. */
static int describe_function(const struct v8_heap *heap, const struct sonde_runtime_frame *frame, struct runtime_function *function)
{
	bool is_code = frame->where >> SONDE_V8_CODE_SHIFT != SONDE_V8_BYTECODE;
	struct sonde_v8_identity of, again;
	int err = read_identity(heap, frame->code, &of);

	if (!err && !is_code && sonde_v8_cookie(&of) != frame->cookie)
		err = -ESTALE;
	again = of;
	if (!err)
		err = is_code ? describe_code(heap, frame, &of, function) : describe_bytecode(heap, frame, function);
	if (err)
		return err;
	err = read_identity(heap, frame->code, &of);
	return !err && memcmp(&of, &again, sizeof(of)) != 0 ? -ESTALE : err;
}

static int mark(struct runtime_function *function, const char *text)
{
	snprintf(function->name, sizeof(function->name), "%s", text);
	function->is_mark = true;
	return 0;
}

int v8_describe(const struct runtime_image *image, const void *of, const struct runtime_memory *memory,
		const struct sonde_runtime_frame *frame, struct runtime_function *ret_function)
{
	const struct v8_heap heap = { .process = of, .memory = memory };
	struct runtime_function function = { .level = ret_function->level, .is_lasting = true };
	int err = -EBADMSG;

	switch (frame->where >> SONDE_V8_CODE_SHIFT) {
	case SONDE_V8_BYTECODE:
	case SONDE_V8_BASELINE:
	case SONDE_V8_OPTIMIZED:
		err = describe_function(&heap, frame, &function);
		break;
	case SONDE_V8_BUILTIN:
		err = v8_builtins_name(heap.process, memory, (uint32_t)(frame->where & PC_MASK) - !(frame->where & SONDE_V8_EXACT),
				       function.name, sizeof(function.name));
		break;
	case SONDE_V8_OTHER:
		err = mark(&function, "[v8: other code]");
		break;
	case SONDE_V8_WASM:
		err = mark(&function, "[WebAssembly]");
		break;
	case SONDE_V8_UNKNOWN:
		err = mark(&function, "[v8: function not known]");
		break;
	}
	if (!err)
		*ret_function = function;
	return err;
}
