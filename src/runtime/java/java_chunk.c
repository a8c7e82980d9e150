// SPDX-License-Identifier: Apache-2.0
#include "runtime/java/java_chunk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/words.h"

#define MAX_FLAGS 4096
#define MAX_FLAG_BYTES 64
#define MAX_NAME_BYTES 24
#define MAX_FIELD 112 /* of the offsets: what is read of an object, see JAVA_OBJECT_BYTES of the kernel side */

/* The VM's options that say how references are stored. */
enum option { COMPRESSED, Z, GENERATIONS, NR_OPTIONS };

struct options {
	bool has[NR_OPTIONS], is_on[NR_OPTIONS];
};

static int read_u64(const struct runtime_memory *memory, uint64_t from, void *ret_value)
{
	return !from || memory->read(memory->arg, from, ret_value, sizeof(uint64_t)) ? -EFAULT : 0;
}

static int take_option(const struct java_chunk_layout *layout, const struct runtime_memory *memory, const uint8_t *flag,
		       struct options *options)
{
	static const char *const names[] = { [COMPRESSED] = "UseCompressedOops", [Z] = "UseZGC", [GENERATIONS] = "ZGenerational" };
	char name[MAX_NAME_BYTES];

	if (memory->read(memory->arg, u64_at(flag, layout->flag_name), name, sizeof(name)))
		return 0; /* the last one */
	for (size_t i = 0; i < NR_OPTIONS; i++) {
		uint8_t value;

		if (strncmp(name, names[i], sizeof(name)))
			continue;
		if (memory->read(memory->arg, u64_at(flag, layout->flag_value), &value, sizeof(value)))
			return -EFAULT;
		options->has[i] = true;
		options->is_on[i] = value;
	}
	return 0;
}

static int read_options(const struct java_chunk_layout *layout, const struct runtime_memory *memory, struct options *ret_options)
{
	CLEANUP(freep) uint8_t *flags = NULL;
	uint64_t at, nr;
	int err = 0;

	if (read_u64(memory, layout->flags, &at) || read_u64(memory, layout->nr_flags, &nr) || nr > MAX_FLAGS || !layout->flag_bytes ||
	    layout->flag_bytes > MAX_FLAG_BYTES || layout->flag_name + 8 > layout->flag_bytes ||
	    layout->flag_value + 8 > layout->flag_bytes)
		return -EFAULT;
	flags = malloc(nr * layout->flag_bytes + 1);
	if (!flags)
		return -ENOMEM;
	if (memory->read(memory->arg, at, flags, nr * layout->flag_bytes))
		return -EFAULT;
	for (uint64_t i = 0; !err && i < nr; i++)
		err = take_option(layout, memory, flags + i * layout->flag_bytes, ret_options);
	return err;
}

/* ZGC's references: with generations, an address is shifted; without (until 23), it is mapped once for each kind of reference. */
static int take_colors(const struct java_chunk_layout *layout, const struct runtime_memory *memory, bool has_generations,
		       struct sonde_java_chunk *chunk)
{
	uint64_t colors;

	if (!has_generations)
		return read_u64(memory, layout->old_colors, &colors) || read_u64(memory, colors + layout->old_bad_mask, &chunk->bad_mask) ||
			       !chunk->bad_mask
			   ? -EFAULT
			   : 0;
	return read_u64(memory, layout->colors, &colors) || read_u64(memory, colors + layout->bad_mask, &chunk->bad_mask) ||
		       read_u64(memory, colors + layout->shift, &chunk->shift) || !chunk->bad_mask || !chunk->shift
		   ? -EFAULT
		   : 0;
}

/* How references are stored. */
static int take_references(const struct java_chunk_layout *layout, const struct runtime_memory *memory, struct sonde_java_chunk *chunk)
{
	struct options options = { 0 };
	uint64_t shift;
	int err = read_options(layout, memory, &options);

	if (err)
		return err;
	if (!options.has[COMPRESSED])
		return -EOPNOTSUPP;
	chunk->oop_bytes = options.is_on[COMPRESSED] ? 4 : 8;
	if (options.is_on[Z])
		return take_colors(layout, memory, options.is_on[GENERATIONS] || !options.has[GENERATIONS], chunk);
	if (read_u64(memory, layout->narrow_base, &chunk->narrow_base) || read_u64(memory, layout->narrow_shift, &shift))
		return -EFAULT;
	chunk->narrow_shift = (uint8_t)shift; /* an int */
	return 0;
}

static int take_field(const struct java_chunk_layout *layout, const struct runtime_memory *memory, uint64_t class, const char *name,
		      uint16_t *ret_off)
{
	int err = java_class_field(&layout->classes, memory, class, name, ret_off);

	return !err && *ret_off > MAX_FIELD ? -EOPNOTSUPP : err;
}

static int take_fields(const struct java_chunk_layout *layout, const struct runtime_memory *memory, struct sonde_java_chunk *chunk)
{
	const struct {
		const char *name;
		uint16_t *off;
	} fields[] = { { "parent", &chunk->parent }, { "cont", &chunk->cont }, { "sp", &chunk->sp },
		       { "bottom", &chunk->bottom }, { "flags", &chunk->flags } };
	uint64_t class, continuation, vthread;
	uint32_t bytes;
	int err = java_class_find(&layout->classes, memory, "jdk/internal/vm/StackChunk", &class);

	if (!err)
		err = java_class_find(&layout->classes, memory, "java/lang/VirtualThread", &vthread);
	if (!err)
		err = java_class_field(&layout->classes, memory, vthread, "cont", &chunk->vthread_cont);
	if (!err)
		err = java_class_find(&layout->classes, memory, "jdk/internal/vm/Continuation", &continuation);
	if (!err)
		err = take_field(layout, memory, continuation, "tail", &chunk->tail);
	for (size_t i = 0; !err && i < ARRAY_SIZE(fields); i++)
		err = take_field(layout, memory, class, fields[i].name, fields[i].off);
	if (!err)
		err = java_class_bytes(&layout->classes, memory, class, &bytes);
	if (!err && bytes > MAX_FIELD)
		err = -EOPNOTSUPP;
	if (!err)
		chunk->words = (uint16_t)((bytes + 7) & ~7U);
	return err;
}

void java_chunk_read(const struct java_chunk_layout *layout, const struct runtime_memory *memory, struct sonde_java_chunk *ret_chunk)
{
	struct sonde_java_chunk chunk = { .thread_entry = layout->thread_entry, .thread_vthread = layout->thread_vthread };

	if (!take_references(layout, memory, &chunk) && !take_fields(layout, memory, &chunk))
		*ret_chunk = chunk;
}
