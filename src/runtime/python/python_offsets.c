// SPDX-License-Identifier: Apache-2.0
/* python_offsets: the debug offsets of CPython 3.13 and newer: struct _Py_DebugOffsets at the start of _PyRuntime, initialised in the file.
 * It has 64-bit words only, in an order that differs between minor versions (Include/internal/pycore_runtime.h of 3.13.0,
 * pycore_debug_offsets.h of 3.14; 3.15.2 by its values). Values are used only if they are consistent. */
#include <errno.h>
#include <stdio.h>

#include "elf/dynamic_symbol.h"
#include "runtime/python/python_tables.h"

#define COOKIE 0x7970677562656478ULL /* "xdebugpy" */
#define MAX_WORDS 93

struct words {
	uint64_t at[MAX_WORDS];
};

/* Word numbers; the first word of each struct is its size. */
struct order {
	uint8_t minor;
	uint8_t thread, thread_frame, thread_id;
	uint8_t frame;       /* size, previous, executable, instr_ptr, localsplus, owner */
	uint8_t frame_tlbc;  /* 0: none */
	uint8_t
	    code; /* size, filename, name, qualname, linetable, firstlineno, argcount, localsplusnames, localspluskinds, co_code_adaptive */
	uint8_t code_tlbc;
	uint8_t object;      /* size, ob_type */
	uint8_t type;
	uint8_t bytes;       /* size, ob_size, ob_sval */
	uint8_t unicode;     /* size, state, length, asciiobject_size */
};

static const struct order orders[] = {
	{ .minor = 13,
	  .thread = 19,
	  .thread_frame = 23,
	  .thread_id = 24,
	  .frame = 28,
	  .code = 34,
	  .object = 44,
	  .type = 46,
	  .bytes = 64,
	  .unicode = 67 },
	{ .minor = 14,
	  .thread = 22,
	  .thread_frame = 26,
	  .thread_id = 27,
	  .frame = 31,
	  .frame_tlbc = 38,
	  .code = 39,
	  .code_tlbc = 49,
	  .object = 50,
	  .type = 52,
	  .bytes = 74,
	  .unicode = 77 },
	{ .minor = 15,
	  .thread = 22,
	  .thread_frame = 26,
	  .thread_id = 30,
	  .frame = 39,
	  .frame_tlbc = 46,
	  .code = 47,
	  .code_tlbc = 57,
	  .object = 58,
	  .type = 60,
	  .bytes = 86,
	  .unicode = 89 },
};

static const struct order *order_of(uint32_t minor)
{
	for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
		if (orders[i].minor == minor)
			return &orders[i];
	}
	return NULL;
}

/* The offset in word `i`, of a field of `field_bytes` in a struct whose size is in word `size`. NONE: not within the struct, or not
 * aligned. */
static uint16_t field(const struct words *words, uint32_t size, uint32_t i, uint32_t field_bytes)
{
	uint64_t value = words->at[i], limit = words->at[size];

	if (value % field_bytes || limit > SONDE_PYTHON_NONE || value > limit || field_bytes > limit - value)
		return SONDE_PYTHON_NONE;
	return (uint16_t)value;
}

static void take_python(const struct words *words, const struct order *o, struct python_table *table)
{
	struct sonde_python *python = &table->python;

	python->tstate_frame = field(words, o->thread, o->thread_frame, 8);
	python->tstate_thread_id = field(words, o->thread, o->thread_id, 8);
	python->tstate_cframe = python->cframe_frame = python->cframe_previous = SONDE_PYTHON_NONE;
	python->frame_back = field(words, o->frame, o->frame + 1, 8);
	python->frame_code = field(words, o->frame, o->frame + 2, 8);
	python->frame_position = field(words, o->frame, o->frame + 3, 8);
	python->frame_owner = field(words, o->frame, o->frame + 5, 1);
	python->code_firstlineno = field(words, o->code, o->code + 5, 4);
	python->code_argcount = field(words, o->code, o->code + 6, 4);
	python->code_code = field(words, o->code, o->code + 9, 8);
	/* int co_flags, co_argcount, co_posonlyargcount, co_kwonlyargcount, co_stacksize, co_firstlineno: in this order, checked below */
	python->code_flags = (uint16_t)(python->code_argcount - 4);
	python->code_kwonlyargcount = (uint16_t)(python->code_argcount + 8);
	python->frame_tlbc = python->code_tlbc = SONDE_PYTHON_NONE;
	if (table->is_free_threaded && o->frame_tlbc) {
		python->frame_tlbc = field(words, o->frame, o->frame_tlbc, 4);
		python->code_tlbc = field(words, o->code, o->code_tlbc, 8);
	}
}

static void take_layout(const struct words *words, const struct order *o, struct python_layout *layout)
{
	layout->code_type_off = field(words, o->object, o->object + 1, 8);
	layout->code_filename = field(words, o->code, o->code + 1, 8);
	layout->code_name = field(words, o->code, o->code + 2, 8);
	layout->code_qualname = field(words, o->code, o->code + 3, 8);
	layout->code_linetable = field(words, o->code, o->code + 4, 8);
	/* uint32_t co_version; PyObject *co_localsplusnames: in this order, checked below */
	layout->code_version = (uint16_t)(words->at[o->code + 7] - 4);
	layout->unicode_state = field(words, o->unicode, o->unicode + 1, 4);
	layout->unicode_length = field(words, o->unicode, o->unicode + 2, 8);
	layout->unicode_ascii_bytes = field(words, o->unicode, o->unicode + 3, 8);
	layout->unicode_compact_bytes = (uint16_t)(layout->unicode_ascii_bytes + 16); /* Py_ssize_t utf8_length; char *utf8 */
	layout->bytes_size = field(words, o->bytes, o->bytes + 1, 8);
	layout->bytes_data = field(words, o->bytes, o->bytes + 2, 1);
}

bool python_offsets_fit(const struct python_table *table)
{
	const struct python_layout *layout = &table->layout;
	const struct sonde_python *python = &table->python;
	uint32_t head = layout->code_type_off + 8u;
	bool has_tlbc = python->frame_tlbc != SONDE_PYTHON_NONE || python->code_tlbc != SONDE_PYTHON_NONE;

	if (python->tstate_cframe != SONDE_PYTHON_NONE || python->cframe_frame != SONDE_PYTHON_NONE ||
	    python->cframe_previous != SONDE_PYTHON_NONE)
		return false;
	/* fields with a fixed position: ob_type at the end of the object's head, the line number behind the argument counts, the text
	 * behind the string's head */
	if (python->tstate_frame == SONDE_PYTHON_NONE || python->tstate_thread_id == SONDE_PYTHON_NONE ||
	    python->frame_code == SONDE_PYTHON_NONE || python->frame_back == SONDE_PYTHON_NONE ||
	    python->frame_position == SONDE_PYTHON_NONE || python->frame_owner == SONDE_PYTHON_NONE ||
	    python->code_code == SONDE_PYTHON_NONE || layout->code_linetable == SONDE_PYTHON_NONE)
		return false;
	return head == (table->is_free_threaded ? 32 : 16) && python->code_firstlineno == python->code_argcount + 16 &&
	       layout->code_version == python->code_firstlineno + 24 && layout->unicode_length == head && layout->bytes_size == head &&
	       layout->bytes_data == head + 16 && layout->unicode_ascii_bytes == head + 24 && layout->unicode_compact_bytes == head + 40 &&
	       layout->code_name == layout->code_filename + 8 && layout->code_qualname == layout->code_name + 8 &&
	       python->frame_back > python->frame_code && python->frame_owner > python->frame_position &&
	       (!has_tlbc || (table->is_free_threaded && python->frame_tlbc > python->frame_position && python->code_tlbc > head));
}

/* Checks the sizes of the structs. */
static bool are_of_size(const struct words *words, const struct order *o, const struct python_table *table)
{
	return words->at[o->object] == table->layout.code_type_off + 8u && words->at[o->code] == table->python.code_code + 8u &&
	       (!table->is_free_threaded || !o->frame_tlbc || table->python.frame_tlbc != SONDE_PYTHON_NONE);
}

int python_offsets_read(const struct elf_file *elf, uint64_t runtime_vaddr, uint32_t minor, struct python_table *ret_table, char *reason,
			size_t reason_bytes)
{
	struct python_table table = { .minor = (uint8_t)minor };
	const struct order *o = order_of(minor);
	struct words words;

	if (elf_file_read_vaddr(elf, runtime_vaddr, &words, sizeof(words)) || words.at[0] != COOKIE)
		return -ENOENT;
	if (!o || (words.at[1] >> 16 & 0xff) != minor || words.at[1] >> 24 != 3) {
		snprintf(reason, reason_bytes, "its debug offsets are of version %u.%u", (uint32_t)(words.at[1] >> 24 & 0xff),
			 (uint32_t)(words.at[1] >> 16 & 0xff));
		return -EOPNOTSUPP;
	}
	table.is_free_threaded = words.at[2] == 1;
	take_python(&words, o, &table);
	take_layout(&words, o, &table.layout);
	table.code_basicsize = table.python.code_code;
	table.type_basicsize = (uint16_t)(words.at[o->object] + 16); /* Py_ssize_t ob_size, const char *tp_name */
	if (words.at[2] > 1 || !are_of_size(&words, o, &table) || !python_offsets_fit(&table) || !python_table_finish(&table)) {
		snprintf(reason, reason_bytes, "its debug offsets make no sense");
		return -EOPNOTSUPP;
	}
	*ret_table = table;
	return 0;
}
