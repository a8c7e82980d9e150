// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stddef.h>

#include "runtime/runtime.h"

static const struct runtime *const runtimes[SONDE_RUNTIME_COUNT] = {
	[SONDE_RUNTIME_PYTHON] = &runtime_python,
	[SONDE_RUNTIME_PHP] = &runtime_php,
	[SONDE_RUNTIME_PERL] = &runtime_perl,
	[SONDE_RUNTIME_GO] = &runtime_go,
};

const struct runtime *runtime_of(uint32_t kind)
{
	return kind < SONDE_RUNTIME_COUNT ? runtimes[kind] : NULL;
}

/* A symbol's size is a stranger's word: a range that wraps around would hold everything. */
static void drop_wrapped_loops(struct runtime_image *image)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < image->nr_loops; i++) {
		if (image->loops[i].start_pc < image->loops[i].end_pc)
			image->loops[nr++] = image->loops[i];
	}
	image->nr_loops = nr;
}

int runtimes_examine(const struct elf_file *elf, struct runtime_image *ret_images, uint32_t max)
{
	uint32_t nr = 0;

	for (uint32_t kind = 0; kind < SONDE_RUNTIME_COUNT && nr < max; kind++) {
		struct runtime_image image = { 0 };
		int err = runtimes[kind] ? runtimes[kind]->examine(elf, &image) : -ENOENT;

		if (err == -ENOMEM)
			return err;
		if (err)
			continue;
		drop_wrapped_loops(&image);
		ret_images[nr++] = image;
	}
	return (int)nr;
}
