// SPDX-License-Identifier: Apache-2.0
/* Any bytes as an ELF file: which interpreters and which C library it holds. The result must fit what the kernel side and the session
 * accept. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/runtime.h"

#define MAX_IMAGES 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct runtime_image *image)
{
	if (!runtime_image_is_sound(image))
		abort();
	if (!image->is_supported != (image->reason[0] != '\0'))
		abort(); /* the reason is shown to the user */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	struct runtime_image images[MAX_IMAGES];
	struct libc_facts libc;
	int nr;

	if (elf_file_open_memory(data, size, NULL, &elf))
		return 0;
	nr = runtimes_examine(elf, images, MAX_IMAGES);
	for (int i = 0; i < nr; i++)
		check(&images[i]);
	if (!libc_facts_read(elf, &libc) && (!libc.is_known || !libc_facts_are_sound(&libc)))
		abort();
	return 0;
}
