// SPDX-License-Identifier: Apache-2.0
/* v8_layout: the table's facts are from V8's sources of each version (objects/code.h, deoptimization-data.h, script.tq,
 * bytecode-array.tq, code-kind.h), and were compared with the memory of running processes. */
#include "runtime/v8/v8_layout.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#define SMI_SHIFT_SIZE 31 /* of small integers in whole words */
#define MAX_OFF 120 /* less than SONDE_V8_OBJECT_BYTES, with a word */

/* What V8 states. Names end with the field's type, which changes with the version, so they are prefixes. */
struct stated {
	const char *prefix;
	uint16_t off, size; /* of the field in struct v8_process */
};

#define V8(field) offsetof(struct v8_process, v8.field), sizeof(((struct v8_process *)0)->v8.field)
#define LAYOUT(field) offsetof(struct v8_process, layout.field), sizeof(((struct v8_process *)0)->layout.field)

static const struct stated stated[] = {
	{ "v8dbg_class_JSFunction__shared__", V8(function_shared) },
	{ "v8dbg_class_SharedFunctionInfo__name_or_scope_info__", V8(shared_name) },
	{ "v8dbg_class_SharedFunctionInfo__flags__", V8(shared_flags) },
	{ "v8dbg_class_Map__instance_type__", V8(map_type) },
	{ "v8dbg_class_Script__name__", LAYOUT(script_name) },
	{ "v8dbg_class_Script__line_ends__", LAYOUT(script_line_ends) },
	{ "v8dbg_class_String__length__", LAYOUT(string_length) },
	{ "v8dbg_class_SeqOneByteString__chars__", LAYOUT(string_one) },
	{ "v8dbg_class_SeqTwoByteString__chars__", LAYOUT(string_two) },
	{ "v8dbg_class_ConsString__first__", LAYOUT(cons_first) },
	{ "v8dbg_class_ConsString__second__", LAYOUT(cons_second) },
	{ "v8dbg_class_SlicedString__parent__", LAYOUT(sliced_parent) },
	{ "v8dbg_class_SlicedString__offset__", LAYOUT(sliced_offset) },
	{ "v8dbg_class_ThinString__actual__", LAYOUT(thin_actual) },
	{ "v8dbg_class_FixedArray__data__", LAYOUT(array_data) },
	{ "v8dbg_scopeinfo_idx_ncontextlocals", LAYOUT(scope_locals) },
	{ "v8dbg_scopeinfo_idx_first_vars", LAYOUT(scope_first) },
	{ "v8dbg_type_Script__SCRIPT_TYPE", V8(script_type) },
	{ "v8dbg_type_ScopeInfo__SCOPE_INFO_TYPE", LAYOUT(type_scope) },
	{ "v8dbg_type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE", LAYOUT(type_shared) },
	{ "v8dbg_type_BytecodeArray__BYTECODE_ARRAY_TYPE", V8(bytecodes_type) },
	{ "v8dbg_frametype_WasmFrame", V8(wasm_marker) },
};

/* Layouts of code, oldest first; each holds from its version on. */
struct version {
	uint8_t major, minor, last_minor;
	uint8_t has_code, code_start, code_flags, code_size, code_data, code_positions;
	uint8_t data_id, data_literals, data_inlined; /* indexes in deoptimization data */
	uint8_t has_wrapper;
	uint8_t kind_baseline, kind_last;
	uint8_t bytecode_data, bytecode_positions;
	uint8_t shared_script;
	uint8_t position_bits;
};

static const struct version versions[] = {
	/* Node 16 */ { 9, 4, 4, 0, 0, 48, 40, 16, 24, 5, 2, 7, 0, 11, 13, 54, 32, 32, 1 },
	/* Node 18 */ { 10, 2, 2, 0, 0, 48, 40, 16, 24, 5, 2, 7, 0, 11, 13, 56, 32, 32, 1 },
	/* Node 20 */ { 11, 3, 3, 1, 40, 48, 56, 16, 24, 5, 2, 7, 0, 11, 13, 54, 32, 32, 1 },
	/* Node 22 */ { 12, 4, 4, 1, 40, 48, 52, 8, 16, 5, 2, 7, 0, 10, 12, 64, 24, 32, 1 },
	/* Node 24 */ { 13, 6, 6, 1, 40, 52, 56, 8, 16, 6, 3, 8, 1, 10, 12, 64, 24, 40, 1 },
	/* Node 26 */ { 14, 6, 6, 1, 40, 52, 56, 8, 16, 6, 3, 8, 1, 11, 13, 64, 24, 40, 2 },
};
#define NR_VERSIONS (sizeof(versions) / sizeof(*versions))

static int read_stated(const struct v8_file *file, const struct stated *one, struct v8_process *process)
{
	int32_t value;
	uint8_t byte;
	uint16_t word;

	if (v8_file_constant(file, one->prefix, &value) || value < 0 || value > (one->size == 1 ? MAX_OFF : UINT16_MAX))
		return -ENOENT;
	byte = (uint8_t)value;
	word = (uint16_t)value;
	if (one->size == sizeof(byte))
		memcpy((char *)process + one->off, &byte, sizeof(byte));
	else if (one->size == sizeof(word))
		memcpy((char *)process + one->off, &word, sizeof(word));
	else
		memcpy((char *)process + one->off, &value, sizeof(value));
	return 0;
}

/* The object that contains instructions, and the offset of these in it. */
static int read_code(const struct v8_file *file, const struct version *version, struct v8_process *process)
{
	const char *type = version->has_code ? "v8dbg_type_InstructionStream__INSTRUCTION_STREAM_TYPE" : "v8dbg_type_Code__CODE_TYPE";
	const char *start = version->has_code ? "v8dbg_class_InstructionStream__instruction_start__"
					      : "v8dbg_class_Code__instruction_start__";
	int32_t value;

	if (v8_file_constant(file, type, &value) || value <= 0 || value > UINT16_MAX)
		return -ENOENT;
	process->v8.code_type = (uint16_t)value;
	if (v8_file_constant(file, start, &value) || value <= 0 || value > 128 || value % 16)
		return -ENOENT;
	process->v8.code_bytes = (uint8_t)value;
	return 0;
}

static const struct version *version_of(const uint8_t version[3])
{
	for (size_t i = 0; i < NR_VERSIONS; i++) {
		if (versions[i].major == version[0] && versions[i].minor <= version[1] && versions[i].last_minor >= version[1])
			return &versions[i];
	}
	return NULL;
}

static void take_version(const struct version *from, struct v8_process *process)
{
	struct sonde_v8 *v8 = &process->v8;
	struct v8_layout *layout = &process->layout;

	v8->has_code = from->has_code;
	v8->code_start = from->code_start;
	v8->code_flags = from->code_flags;
	v8->code_size = from->code_size;
	v8->code_data = from->code_data;
	v8->data_id = (uint8_t)(layout->array_data + 8 * from->data_id);
	v8->has_wrapper = from->has_wrapper;
	v8->kind_baseline = from->kind_baseline;
	v8->kind_last = from->kind_last;
	v8->bytecode_data = from->bytecode_data;
	v8->shared_script = from->shared_script;
	v8->script_id = (uint8_t)(layout->script_line_ends + 8);
	layout->script_source = 8;
	layout->external_data = 24; /* behind the resource, ExternalString::resource_data */
	layout->code_positions = from->code_positions;
	layout->bytecode_positions = from->bytecode_positions;
	layout->position_bits = from->position_bits;
	layout->data_literals = from->data_literals;
	layout->data_inlined = from->data_inlined;
	layout->version = (uint8_t)(from - versions);
}

int v8_layout_read(const struct v8_file *file, const uint8_t version[3], struct v8_process *process, const char **ret_why)
{
	const struct version *known = version_of(version);
	int32_t mask, shift;

	*ret_why = "a version that is not known";
	if (!known)
		return -EOPNOTSUPP;
	*ret_why = "its constants (v8dbg_*) are not exported";
	for (size_t i = 0; i < sizeof(stated) / sizeof(*stated); i++) {
		if (read_stated(file, &stated[i], process))
			return -EOPNOTSUPP;
	}
	if (read_code(file, known, process) || v8_file_constant(file, "v8dbg_IsNotStringMask", &mask))
		return -EOPNOTSUPP;
	*ret_why = "its pointers are compressed";
	if (!v8_file_constant(file, "v8dbg_SmiShiftSize", &shift) && shift != SMI_SHIFT_SIZE)
		return -EOPNOTSUPP;
	process->layout.not_string = (uint16_t)mask;
	process->v8.wasm_marker *= 2; /* StackFrame::TypeToMarker */
	take_version(known, process);
	*ret_why = "its constants make no sense";
	return v8_layout_is_sound(process) ? 0 : -EOPNOTSUPP;
}

bool v8_layout_is_sound(const struct v8_process *process)
{
	const struct v8_layout *layout = &process->layout;
	const struct sonde_v8 *v8 = &process->v8;
	struct v8_process again = *process;

	if (layout->version >= NR_VERSIONS)
		return false;
	for (size_t i = 0; i < sizeof(stated) / sizeof(*stated); i++) {
		if (stated[i].size == 1 && *((const uint8_t *)process + stated[i].off) > MAX_OFF)
			return false;
	}
	take_version(&versions[layout->version], &again);
	return !memcmp(&again, process, sizeof(again)) && v8->function_shared <= 32 && !(v8->function_shared % 8) &&
	       v8->shared_flags <= 64 && !(v8->shared_name % 8) && !(v8->shared_flags % 8) && v8->code_bytes <= 128 && v8->map_type < 128 &&
	       layout->array_data == 16 && layout->script_line_ends <= 100;
}
