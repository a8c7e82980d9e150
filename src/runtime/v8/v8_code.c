// SPDX-License-Identifier: Apache-2.0
/* v8_code: the search is that of bpf/runtimes/v8/v8_code.h. Layouts: objects/code.h, deoptimization-data.h, codegen/source-position.h
 * (InliningPosition). */
#include "runtime/v8/v8_code.h"

#include <errno.h>
#include <string.h>

#include "runtime/words.h"

#define SCAN_BYTES 4096
#define SCAN_STEP 32
#define MAX_SCANS 256
#define INLINED_BYTES 16 /* InliningPosition: the position of the call, the number of the function */
#define MAX_LEVELS 64

static bool is_map(const struct v8_heap *heap, uint64_t word)
{
	uint16_t type;

	return (word & 7) == SONDE_V8_TAG && !v8_object_read(heap, word, heap->process->v8.map_type, &type, sizeof(type)) &&
	       type == heap->process->v8.code_type;
}

static int search(const struct v8_heap *heap, uint64_t pc, uint64_t *ret_object)
{
	uint64_t last = (pc & ~(uint64_t)(SCAN_STEP - 1)) - heap->process->v8.code_bytes;
	uint8_t bytes[SCAN_BYTES];

	for (int scan = 0; scan < MAX_SCANS; scan++, last -= SCAN_BYTES) {
		uint64_t from = last + SCAN_STEP - SCAN_BYTES;
		int err = heap->memory->read(heap->memory->arg, from, bytes, SCAN_BYTES - SCAN_STEP + 8);
		size_t low = 0;

		if (err == -EFAULT) { /* before the memory's start */
			low = 4096 - from % 4096;
			if (low >= SCAN_BYTES || low % 8)
				return -ESTALE;
			err = heap->memory->read(heap->memory->arg, from + low, bytes + low, SCAN_BYTES - SCAN_STEP + 8 - low);
		}
		if (err)
			return err == -EFAULT ? -ESTALE : err;
		for (size_t off = SCAN_BYTES; off >= SCAN_STEP + low; off -= SCAN_STEP) {
			if (is_map(heap, u64_at(bytes, off - SCAN_STEP))) {
				*ret_object = from + off - SCAN_STEP;
				return 0;
			}
		}
		if (low)
			return -ESTALE;
	}
	return -ESTALE;
}

int v8_code_find(const struct v8_heap *heap, uint64_t pc, struct v8_code_object *ret_code)
{
	const struct sonde_v8 *v8 = &heap->process->v8;
	struct v8_code_object code = { 0 };
	uint8_t bytes[SONDE_V8_OBJECT_BYTES + 8];
	int err = search(heap, pc, &code.object);

	if (err)
		return err;
	code.start = code.object + v8->code_bytes;
	code.code = code.object + SONDE_V8_TAG;
	if (v8->has_code)
		err = v8_object_word(heap, code.code, 8, &code.code);
	if (!err)
		err = v8_object_read(heap, code.code, 0, bytes, 72);
	if (err)
		return err;
	if (v8->has_code && u64_at(bytes, v8->code_start) != code.start)
		return -ESTALE;
	code.kind = u32_at(bytes, v8->code_flags) & SONDE_V8_KIND_MASK;
	code.size = u32_at(bytes, v8->code_size);
	code.data = u64_at(bytes, v8->code_data);
	code.positions = u64_at(bytes, heap->process->layout.code_positions);
	if (pc - code.start > code.size)
		return -ESTALE;
	if (code.kind > v8->kind_baseline && code.kind <= v8->kind_last && v8_is_object(code.data))
		err = v8_object_word(heap, code.data, v8->data_id, &code.compilation);
	*ret_code = code;
	return err;
}

/* One entry of the array of inlined functions. */
static int read_inlined(const struct v8_heap *heap, const struct v8_code_object *code, int32_t number, uint64_t *ret_shared,
			struct v8_position *ret_caller)
{
	const struct v8_layout *layout = &heap->process->layout;
	uint64_t literals, inlined, length;
	uint8_t bytes[INLINED_BYTES];
	int32_t function;
	int err = v8_object_element(heap, code->data, layout->data_inlined, &inlined);

	if (!err)
		err = v8_object_element(heap, code->data, layout->data_literals, &literals);
	if (!err)
		err = v8_object_word(heap, inlined, layout->array_data - 8, &length);
	if (!err && (!v8_is_smi(length) || ((int64_t)number + 1) * INLINED_BYTES > v8_smi(length)))
		err = -EBADMSG;
	if (!err)
		err = v8_object_read(heap, inlined, (uint32_t)(layout->array_data + number * INLINED_BYTES), bytes, sizeof(bytes));
	if (err)
		return err;
	*ret_caller = v8_lines_unpack((int64_t)u64_at(bytes, 0));
	function = (int32_t)u32_at(bytes, 8);
	return function < 0 ? -EBADMSG : v8_object_element(heap, literals, (uint32_t)function, ret_shared);
}

int v8_code_inlined(const struct v8_heap *heap, const struct v8_code_object *code, uint32_t off, uint32_t level, uint64_t *ret_shared,
		    int32_t *ret_position)
{
	struct v8_position position = { -1, -1 };
	int err = v8_lines_position(heap, code->positions, off, &position);

	*ret_shared = 0;
	*ret_position = -1;
	if (err && err != -ENOENT)
		return err;
	for (uint32_t i = 0; i < MAX_LEVELS; i++) {
		struct v8_position caller;
		uint64_t shared = 0;

		*ret_position = position.offset;
		if (position.inlined < 0)
			return level > i ? -EBADMSG : 0;
		err = read_inlined(heap, code, position.inlined, &shared, &caller);
		if (err)
			return err;
		if (i == level) {
			*ret_shared = shared;
			return 0;
		}
		if (caller.inlined >= position.inlined) /* callers are written first */
			return -EBADMSG;
		position = caller;
	}
	return -EBADMSG;
}
