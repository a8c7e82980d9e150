// SPDX-License-Identifier: Apache-2.0
/* python_tables: the tables. tools/python_tables.py printed each from the headers of the version that is noted there, for x86-64. The
 * layouts of a minor version do not change with its patches. From 3.8 on they are the same with Py_DEBUG (`--debug` prints the same). */
#include "runtime/python/python_tables.h"

#include <string.h>

#define NONE SONDE_PYTHON_NONE

static const struct python_table tables[] = {
	{ /* the headers of 3.6.15 */
		.minor = 6,
		.type_basicsize = 32, .code_basicsize = 144, .runtime_key = 0,
		.python = {
			.tstate_frame = 24, .tstate_thread_id = 152, .tstate_cframe = NONE, .cframe_frame = NONE, .cframe_previous = NONE,
			.frame_code = 32, .frame_back = 24, .frame_position = 120, .frame_owner = NONE, .code_firstlineno = 36,
			.code_flags = 32,
			.code_argcount = 16, .code_kwonlyargcount = 20, .code_code = 40,
		},
		.layout = {
			.code_type_off = 8, .code_filename = 96, .code_name = 104, .code_qualname = 0, .code_linetable = 112,
			.code_version = 0,
			.unicode_length = 16, .unicode_state = 32, .unicode_ascii_bytes = 48, .unicode_compact_bytes = 72, .bytes_size = 16,
			.bytes_data = 32,
		},
	},
	{ /* the headers of 3.7.16 */
		.minor = 7,
		.type_basicsize = 32, .code_basicsize = 144, .runtime_key = 1508,
		.python = {
			.tstate_frame = 24, .tstate_thread_id = 176, .tstate_cframe = NONE, .cframe_frame = NONE, .cframe_previous = NONE,
			.frame_code = 32, .frame_back = 24, .frame_position = 104, .frame_owner = NONE, .code_firstlineno = 36,
			.code_flags = 32,
			.code_argcount = 16, .code_kwonlyargcount = 20, .code_code = 40,
		},
		.layout = {
			.code_type_off = 8, .code_filename = 96, .code_name = 104, .code_qualname = 0, .code_linetable = 112,
			.code_version = 0,
			.unicode_length = 16, .unicode_state = 32, .unicode_ascii_bytes = 48, .unicode_compact_bytes = 72, .bytes_size = 16,
			.bytes_data = 32,
		},
	},
	{ /* the headers of 3.8.18 */
		.minor = 8,
		.type_basicsize = 32, .code_basicsize = 176, .runtime_key = 1396,
		.python = {
			.tstate_frame = 24, .tstate_thread_id = 176, .tstate_cframe = NONE, .cframe_frame = NONE, .cframe_previous = NONE,
			.frame_code = 32, .frame_back = 24, .frame_position = 104, .frame_owner = NONE, .code_firstlineno = 40,
			.code_flags = 36,
			.code_argcount = 16, .code_kwonlyargcount = 24, .code_code = 48,
		},
		.layout = {
			.code_type_off = 8, .code_filename = 104, .code_name = 112, .code_qualname = 0, .code_linetable = 120,
			.code_version = 0,
			.unicode_length = 16, .unicode_state = 32, .unicode_ascii_bytes = 48, .unicode_compact_bytes = 72, .bytes_size = 16,
			.bytes_data = 32,
		},
	},
	{ /* the headers of 3.9.18 */
		.minor = 9,
		.type_basicsize = 32, .code_basicsize = 176, .runtime_key = 588,
		.python = {
			.tstate_frame = 24, .tstate_thread_id = 176, .tstate_cframe = NONE, .cframe_frame = NONE, .cframe_previous = NONE,
			.frame_code = 32, .frame_back = 24, .frame_position = 104, .frame_owner = NONE, .code_firstlineno = 40,
			.code_flags = 36,
			.code_argcount = 16, .code_kwonlyargcount = 24, .code_code = 48,
		},
		.layout = {
			.code_type_off = 8, .code_filename = 104, .code_name = 112, .code_qualname = 0, .code_linetable = 120,
			.code_version = 0,
			.unicode_length = 16, .unicode_state = 32, .unicode_ascii_bytes = 48, .unicode_compact_bytes = 72, .bytes_size = 16,
			.bytes_data = 32,
		},
	},
	{ /* the headers of 3.10.13 */
		.minor = 10,
		.type_basicsize = 32, .code_basicsize = 176, .runtime_key = 588,
		.python = {
			.tstate_frame = 24, .tstate_thread_id = 176, .tstate_cframe = 48, .cframe_frame = NONE, .cframe_previous = 8,
			.frame_code = 32, .frame_back = 24, .frame_position = 96, .frame_owner = NONE, .code_firstlineno = 40,
			.code_flags = 36,
			.code_argcount = 16, .code_kwonlyargcount = 24, .code_code = 48,
		},
		.layout = {
			.code_type_off = 8, .code_filename = 104, .code_name = 112, .code_qualname = 0, .code_linetable = 120,
			.code_version = 0,
			.unicode_length = 16, .unicode_state = 32, .unicode_ascii_bytes = 48, .unicode_compact_bytes = 72, .bytes_size = 16,
			.bytes_data = 32,
		},
	},
	{ /* the headers of 3.11.7 */
		.minor = 11,
		.type_basicsize = 32, .code_basicsize = 184, .runtime_key = 596,
		.python = {
			.tstate_frame = 56, .tstate_thread_id = 152, .tstate_cframe = 56, .cframe_frame = 8, .cframe_previous = 16,
			.frame_code = 32, .frame_back = 48, .frame_position = 56, .frame_owner = 68, .code_firstlineno = 72,
			.code_flags = 48,
			.code_argcount = 56, .code_kwonlyargcount = 64, .code_code = 184,
		},
		.layout = {
			.code_type_off = 8, .code_filename = 112, .code_name = 120, .code_qualname = 128, .code_linetable = 136,
			.code_version = 0,
			.unicode_length = 16, .unicode_state = 32, .unicode_ascii_bytes = 48, .unicode_compact_bytes = 72, .bytes_size = 16,
			.bytes_data = 32,
		},
	},
	{ /* the headers of 3.12.1 */
		.minor = 12,
		.type_basicsize = 32, .code_basicsize = 192, .runtime_key = 1548,
		.python = {
			.tstate_frame = 56, .tstate_thread_id = 136, .tstate_cframe = 56, .cframe_frame = 0, .cframe_previous = 8,
			.frame_code = 0, .frame_back = 8, .frame_position = 56, .frame_owner = 70, .code_firstlineno = 68, .code_flags = 48,
			.code_argcount = 52, .code_kwonlyargcount = 60, .code_code = 192,
		},
		.layout = {
			.code_type_off = 8, .code_filename = 112, .code_name = 120, .code_qualname = 128, .code_linetable = 136,
			.code_version = 92,
			.unicode_length = 16, .unicode_state = 32, .unicode_ascii_bytes = 40, .unicode_compact_bytes = 56, .bytes_size = 16,
			.bytes_data = 32,
		},
	},
};

const struct python_table *python_table_of(uint32_t minor)
{
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		if (tables[i].minor == minor)
			return &tables[i];
	}
	return NULL;
}

/* Returns the end of the last field; -1: a field is misaligned, or too far behind to be read with the rest. */
static int end_of(const uint16_t *offsets, const uint8_t *sizes, size_t nr)
{
	int end = 0;

	for (size_t i = 0; i < nr; i++) {
		if (offsets[i] == NONE)
			continue;
		if (offsets[i] + sizes[i] > SONDE_PYTHON_MAX_BYTES || offsets[i] % sizes[i])
			return -1;
		if (offsets[i] + sizes[i] > end)
			end = offsets[i] + sizes[i];
	}
	return end;
}

#define END_OF(...) end_of((const uint16_t[]){ __VA_ARGS__ }, sizes, sizeof((const uint16_t[]){ __VA_ARGS__ }) / sizeof(uint16_t))

static bool measure(struct python_table *table)
{
	struct sonde_python *p = &table->python;
	const uint8_t position = p->position == SONDE_PYTHON_ADDRESS ? 8 : 4;
	int tstate, frame, code;

	{
		static const uint8_t sizes[] = { 8, 8, 8 };
		tstate = END_OF(p->tstate_frame, p->tstate_cframe, p->tstate_thread_id);
	}
	{
		const uint8_t sizes[] = { 8, 8, position, 1, 4 };
		frame = END_OF(p->frame_code, p->frame_back, p->frame_position, p->frame_owner, p->frame_tlbc);
	}
	{
		static const uint8_t sizes[] = { 8, 4, 4, 4, 4, 8, 8, 8, 4 };
		code = END_OF(p->code_type_off, p->code_firstlineno, p->code_flags, p->code_argcount, p->code_kwonlyargcount,
			      p->code_linetable, p->code_name, p->code_filename, p->code_version);
	}
	if (tstate < 0 || frame < 0 || code < 0)
		return false;
	p->tstate_bytes = (uint16_t)tstate;
	p->frame_bytes = (uint16_t)frame;
	p->code_bytes = (uint16_t)code;
	return true;
}

bool python_table_finish(struct python_table *table)
{
	struct sonde_python *p = &table->python;
	struct python_layout *layout = &table->layout;

	if (table->minor < 11) {
		p->kind = SONDE_PYTHON_FRAMES;
		p->position = table->minor < 10 ? SONDE_PYTHON_BYTES : SONDE_PYTHON_UNITS;
	} else {
		p->kind = table->minor == 11 ? SONDE_PYTHON_CFRAMES : SONDE_PYTHON_SHIMS;
		p->position = SONDE_PYTHON_ADDRESS;
		p->shim_owner = 3; /* FRAME_OWNED_BY_CSTACK; in 3.14 and newer that is 4, and 3 is FRAME_OWNED_BY_INTERPRETER */
	}
	p->code_tags = table->minor >= 14 ? 3 : 0;
	if (table->minor <= 12)
		p->frame_tlbc = p->code_tlbc = NONE;
	p->code_type_off = layout->code_type_off;
	p->code_linetable = layout->code_linetable;
	p->code_name = layout->code_qualname ? layout->code_qualname : layout->code_name;
	p->code_filename = layout->code_filename;
	p->code_version = layout->code_version ? layout->code_version : NONE;
	layout->code_argcount = p->code_argcount;
	layout->code_kwonlyargcount = p->code_kwonlyargcount;
	layout->code_flags = p->code_flags;
	layout->code_firstlineno = p->code_firstlineno;
	layout->code_code = p->code_code;
	layout->code_tlbc = p->code_tlbc == NONE ? 0 : p->code_tlbc;
	layout->lines = table->minor < 10 ? PYTHON_LINES_LNOTAB : table->minor == 10 ? PYTHON_LINES_310 : PYTHON_LINES_311;
	layout->minor = table->minor;
	return measure(table);
}

bool python_tables_have(uint32_t minor, const struct sonde_python *python, const struct python_layout *layout)
{
	const struct python_table *known = python_table_of(minor);
	struct python_table table = {
		.minor = (uint8_t)minor, .is_free_threaded = layout->code_type_off != 8, .python = *python, .layout = *layout
	};

	if (known) {
		table.python = known->python;
		table.layout = known->layout;
	} else if (minor < PYTHON_OLDEST_MINOR || minor > PYTHON_NEWEST_MINOR || !python_offsets_fit(&table)) {
		return false;
	}
	table.python.process = python->process; /* files of one version differ in these */
	table.python.current = python->current;
	table.python.interpreter_made = python->interpreter_made;
	table.python.code_type = table.layout.code_type = layout->code_type;
	return python_table_finish(&table) && !memcmp(&table.python, python, sizeof(*python)) &&
	       !memcmp(&table.layout, layout, sizeof(*layout));
}
