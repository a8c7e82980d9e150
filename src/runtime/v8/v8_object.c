// SPDX-License-Identifier: Apache-2.0
#include "runtime/v8/v8_object.h"

#include <errno.h>
#include <string.h>

#include "base/utf8.h"

#define MAX_LINKS 8        /* from a string to the one that has its characters */
#define MAX_PARTS 32       /* of a string that is a tree */
#define MAX_CHARACTERS 1024 /* of a text */

/* Representation of a string, in its instance type: the same since V8 7 (objects/instance-type.h). */
#define STRING_KIND 7
#define STRING_SEQUENTIAL 0
#define STRING_CONS 1
#define STRING_EXTERNAL 2
#define STRING_SLICED 3
#define STRING_THIN 5
#define STRING_ONE_BYTE 8

int v8_object_read(const struct v8_heap *heap, uint64_t object, uint32_t off, void *to, size_t size)
{
	if (!v8_is_object(object))
		return -EBADMSG;
	return heap->memory->read(heap->memory->arg, object - SONDE_V8_TAG + off, to, size);
}

int v8_object_word(const struct v8_heap *heap, uint64_t object, uint32_t off, uint64_t *ret_word)
{
	return v8_object_read(heap, object, off, ret_word, sizeof(*ret_word));
}

int v8_object_type(const struct v8_heap *heap, uint64_t object, uint16_t *ret_type)
{
	uint64_t map;
	int err = v8_object_word(heap, object, 0, &map);

	return err ? err : v8_object_read(heap, map, heap->process->v8.map_type, ret_type, sizeof(*ret_type));
}

int v8_object_element(const struct v8_heap *heap, uint64_t array, uint32_t index, uint64_t *ret_word)
{
	uint32_t data = heap->process->layout.array_data;
	uint64_t length;
	int err = v8_object_word(heap, array, data - 8, &length);

	if (!err && (!v8_is_smi(length) || v8_smi(length) < 0 || index >= (uint32_t)v8_smi(length)))
		return -EBADMSG;
	if (!err)
		err = v8_object_word(heap, array, data + 8 * index, ret_word);
	if (!err && (*ret_word & 3) == 3)
		*ret_word &= ~2ULL;
	return err;
}

bool v8_is_string(const struct v8_heap *heap, uint16_t type)
{
	return !(type & heap->process->layout.not_string);
}

static int string_type(const struct v8_heap *heap, uint64_t string, uint16_t *ret_type)
{
	int err = v8_object_type(heap, string, ret_type);

	return !err && !v8_is_string(heap, *ret_type) ? -EBADMSG : err;
}

static int direct_characters(const struct v8_heap *heap, uint64_t string, uint16_t type, struct v8_characters *ret_characters)
{
	const struct v8_layout *layout = &heap->process->layout;
	struct v8_characters characters = { .is_wide = !(type & STRING_ONE_BYTE) };
	int err = v8_object_read(heap, string, layout->string_length, &characters.nr, sizeof(characters.nr));

	characters.at = string - SONDE_V8_TAG + (characters.is_wide ? layout->string_two : layout->string_one);
	if (!err && (type & STRING_KIND) == STRING_EXTERNAL)
		err = v8_object_word(heap, string, layout->external_data, &characters.at);
	if (!err && (characters.nr > INT32_MAX || !characters.at))
		err = -EBADMSG;
	*ret_characters = characters;
	return err;
}

int v8_object_characters(const struct v8_heap *heap, uint64_t string, struct v8_characters *ret_characters)
{
	const struct v8_layout *layout = &heap->process->layout;
	uint32_t from = 0, nr = UINT32_MAX;
	uint16_t type;

	for (int link = 0; link < MAX_LINKS; link++) {
		int err = string_type(heap, string, &type);
		uint64_t offset = 0;
		uint32_t length;

		if (err)
			return err;
		switch (type & STRING_KIND) {
		case STRING_SEQUENTIAL:
		case STRING_EXTERNAL:
			err = direct_characters(heap, string, type, ret_characters);
			if (!err && (from > ret_characters->nr || (nr != UINT32_MAX && nr > ret_characters->nr - from)))
				err = -EBADMSG;
			ret_characters->at += (uint64_t)from << ret_characters->is_wide;
			ret_characters->nr = nr != UINT32_MAX ? nr : ret_characters->nr - from;
			return err;
		case STRING_SLICED:
			err = v8_object_read(heap, string, layout->string_length, &length, sizeof(length));
			if (!err)
				err = v8_object_word(heap, string, layout->sliced_offset, &offset);
			if (!err)
				err = v8_object_word(heap, string, layout->sliced_parent, &string);
			if (nr == UINT32_MAX)
				nr = length;
			from += (uint32_t)v8_smi(offset);
			break;
		case STRING_THIN:
			err = v8_object_word(heap, string, layout->thin_actual, &string);
			break;
		case STRING_CONS: /* flattened: the second part is empty */
			err = v8_object_word(heap, string, layout->cons_second, &offset);
			if (!err)
				err = v8_object_read(heap, offset, layout->string_length, &length, sizeof(length));
			if (!err && length)
				err = -EBADMSG;
			if (!err)
				err = v8_object_word(heap, string, layout->cons_first, &string);
			break;
		default:
			return -EBADMSG;
		}
		if (err)
			return err;
	}
	return -EBADMSG;
}

static int append_flat(const struct v8_heap *heap, const struct v8_characters *characters, char *text, size_t size, size_t *used)
{
	uint16_t wide[MAX_CHARACTERS];
	uint8_t narrow[MAX_CHARACTERS];
	size_t nr = characters->nr < MAX_CHARACTERS ? characters->nr : MAX_CHARACTERS;
	int err = nr ? heap->memory->read(heap->memory->arg, characters->at, characters->is_wide ? (void *)wide : narrow,
					  nr << characters->is_wide)
		     : 0;

	for (size_t i = 0; !err && i < nr; i++) {
		uint32_t code = characters->is_wide ? wide[i] : narrow[i];

		if (characters->is_wide && code >> 10 == 0x36 && i + 1 < nr && wide[i + 1] >> 10 == 0x37) {
			code = 0x10000 + ((code & 0x3ff) << 10) + (wide[i + 1] & 0x3ff);
			i++;
		}
		utf8_append(text, size, used, code >= 0xd800 && code <= 0xdfff ? UTF8_REPLACEMENT : code);
	}
	return err;
}

int v8_object_text(const struct v8_heap *heap, uint64_t string, char *text, size_t size)
{
	uint64_t left[MAX_PARTS];
	size_t nr_left = 1, used = 0;

	text[0] = '\0';
	left[0] = string;
	for (int parts = 0; nr_left && parts < 2 * MAX_PARTS && used + UTF8_MAX_BYTES < size; parts++) {
		struct v8_characters characters;
		uint64_t part = left[--nr_left], second;
		uint16_t type;
		int err = string_type(heap, part, &type);

		if (!err && (type & STRING_KIND) == STRING_CONS && nr_left + 2 <= MAX_PARTS) {
			err = v8_object_word(heap, part, heap->process->layout.cons_second, &second);
			left[nr_left++] = second;
			if (!err)
				err = v8_object_word(heap, part, heap->process->layout.cons_first, &left[nr_left++]);
		} else if (!err) {
			err = v8_object_characters(heap, part, &characters);
			if (!err)
				err = append_flat(heap, &characters, text, size, &used);
		}
		if (err)
			return err;
	}
	return 0;
}
