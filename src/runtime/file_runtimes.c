// SPDX-License-Identifier: Apache-2.0
#include "runtime/file_runtimes.h"

#include <errno.h>
#include <string.h>

int file_runtimes_make(const struct elf_file *elf, struct buffer *to)
{
	struct file_runtimes runtimes = { 0 };
	int nr = runtimes_examine(elf, runtimes.images, FILE_RUNTIMES_MAX);

	if (nr < 0)
		return nr;
	runtimes.nr_images = (uint32_t)nr;
	if (libc_facts_read(elf, &runtimes.libc))
		runtimes.libc = (struct libc_facts){ 0 };
	buffer_append(to, &runtimes, sizeof(runtimes));
	return to->err;
}

int file_runtimes_read(const void *bytes, size_t size, struct file_runtimes *ret_runtimes)
{
	struct file_runtimes runtimes;

	if (size != sizeof(runtimes))
		return -EBADMSG;
	memcpy(&runtimes, bytes, sizeof(runtimes));
	if (runtimes.nr_images > FILE_RUNTIMES_MAX || !libc_facts_are_sound(&runtimes.libc))
		return -EBADMSG;
	for (uint32_t i = 0; i < runtimes.nr_images; i++) {
		if (!runtime_image_is_sound(&runtimes.images[i]))
			return -EBADMSG;
	}
	*ret_runtimes = runtimes;
	return 0;
}
