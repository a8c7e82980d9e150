// SPDX-License-Identifier: Apache-2.0
/* java_class: layouts from vmClasses.hpp, instanceKlass.hpp, fieldInfo.hpp (FieldInfoStream). */
#include "runtime/java/java_class.h"

#include <errno.h>
#include <string.h>

#include "base/reader.h"
#include "runtime/java/java_lines.h"

#define MAX_CLASSES 256 /* of which the VM has about 115; behind them are other variables */
#define MAX_NAME_BYTES 64
#define MAX_STREAM_BYTES 4096
#define MIN_ADDRESS 4096
#define ENTRY_BYTES 8 /* of a constant pool */
#define SLOW_PATH 1   /* bit of a class's size: objects are allocated in a way of their own */
#define IS_STATIC 8   /* access flag */
/* Flags of a field (FieldInfo::FieldFlags). Each of the optional ones has a number behind them. */
#define IS_INITIALIZED 1
#define IS_INJECTED 2
#define IS_GENERIC 4
#define IS_CONTENDED 16

static int read_bytes(const struct runtime_memory *memory, uint64_t from, void *to, size_t size)
{
	return from < MIN_ADDRESS || memory->read(memory->arg, from, to, size) ? -EFAULT : 0;
}

/* Is this the symbol's text? */
static bool is_symbol(const struct java_class_layout *layout, const struct runtime_memory *memory, uint64_t symbol, const char *text)
{
	char bytes[MAX_NAME_BYTES];
	uint16_t length;

	return !read_bytes(memory, symbol + layout->symbol_length, &length, sizeof(length)) && length == strlen(text) &&
	       length <= sizeof(bytes) && !read_bytes(memory, symbol + layout->symbol_body, bytes, length) && !memcmp(bytes, text, length);
}

int java_class_find(const struct java_class_layout *layout, const struct runtime_memory *memory, const char *name, uint64_t *ret_class)
{
	uint64_t classes[MAX_CLASSES], symbol;

	if (read_bytes(memory, layout->classes, classes, sizeof(classes)))
		return -ENOENT;
	for (size_t i = 0; i < MAX_CLASSES; i++) {
		if (read_bytes(memory, classes[i] + layout->name, &symbol, sizeof(symbol)) || !is_symbol(layout, memory, symbol, name))
			continue;
		*ret_class = classes[i];
		return 0;
	}
	return -ENOENT;
}

int java_class_bytes(const struct java_class_layout *layout, const struct runtime_memory *memory, uint64_t class, uint32_t *ret_bytes)
{
	uint32_t size;

	if (read_bytes(memory, class + layout->size, &size, sizeof(size)))
		return -EFAULT;
	*ret_bytes = size & ~SLOW_PATH;
	return 0;
}

struct field {
	uint32_t name, offset, access, flags;
};

static struct field read_field(struct reader *reader)
{
	struct field field = { .name = java_number(reader, true) };

	java_number(reader, true); /* the signature */
	field.offset = java_number(reader, true);
	field.access = java_number(reader, true);
	field.flags = java_number(reader, true);
	for (uint32_t bit = IS_INITIALIZED; bit <= IS_CONTENDED; bit <<= 1) {
		if (field.flags & bit & (IS_INITIALIZED | IS_GENERIC | IS_CONTENDED))
			java_number(reader, true);
	}
	return field;
}

/* Is this the field's name? */
static bool is_named(const struct java_class_layout *layout, const struct runtime_memory *memory, uint64_t constants,
		     const struct field *field, const char *name)
{
	uint64_t at = field->flags & IS_INJECTED ? layout->symbols : constants + layout->pool_bytes, symbol;

	return !read_bytes(memory, at + (uint64_t)field->name * ENTRY_BYTES, &symbol, sizeof(symbol)) &&
	       is_symbol(layout, memory, symbol, name);
}

int java_class_field(const struct java_class_layout *layout, const struct runtime_memory *memory, uint64_t class, const char *name,
		     uint16_t *ret_off)
{
	uint8_t stream[MAX_STREAM_BYTES];
	uint64_t constants, fields;
	struct reader reader;
	uint32_t size, nr;

	if (read_bytes(memory, class + layout->constants, &constants, sizeof(constants)) ||
	    read_bytes(memory, class + layout->fields, &fields, sizeof(fields)) || read_bytes(memory, fields, &size, sizeof(size)))
		return -EFAULT;
	if (size > sizeof(stream))
		return -EBADMSG;
	if (read_bytes(memory, fields + sizeof(size), stream, size))
		return -EFAULT;
	reader = reader_of(stream, size);
	nr = java_number(&reader, true); /* in the class file */
	nr += java_number(&reader, true);
	for (uint32_t i = 0; i < nr && i < MAX_STREAM_BYTES; i++) {
		struct field field = read_field(&reader);

		if (reader.bad)
			return -EBADMSG;
		if (field.access & IS_STATIC || !is_named(layout, memory, constants, &field, name))
			continue;
		*ret_off = (uint16_t)field.offset;
		return field.offset <= UINT16_MAX ? 0 : -EBADMSG;
	}
	return -ENOENT;
}
