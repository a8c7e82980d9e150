// SPDX-License-Identifier: Apache-2.0
#include "track/runtime_marks.h"

#include <stdio.h>

#include "runtime/recognised.h"

static bool is_loop(const struct runtime_image *image, uint64_t elf_vaddr)
{
	for (uint32_t i = 0; i < image->nr_loops; i++) {
		if (elf_vaddr - image->loops[i].start_pc < image->loops[i].end_pc - image->loops[i].start_pc)
			return true;
	}
	return false;
}

bool runtime_marks_is_loop(const struct runtime_image *images, uint32_t nr_images, uint64_t elf_vaddr)
{
	for (uint32_t i = 0; i < nr_images; i++) {
		if (is_loop(&images[i], elf_vaddr))
			return true;
	}
	return false;
}

void runtime_marks_unsupported(const struct runtime_image *image, char *to, size_t size)
{
	if (image->runtime == SONDE_RUNTIME_NONE)
		snprintf(to, size, "[unsupported %s]", image->reason);
	else
		snprintf(to, size, "[unsupported %s %u.%u: %s]", runtime_name(image->runtime), image->version[0], image->version[1],
			 image->reason);
}

/* Are frames of the image's runtime missing there? */
static bool is_missing(const struct runtime_image *image, const struct runtime_site *site)
{
	const struct recognised *recognised =
	    image->runtime == SONDE_RUNTIME_NONE && !image->is_supported ? recognised_find(image->reason) : NULL;
	bool is_language = recognised || image->runtime == SONDE_RUNTIME_NONE || !runtime_of(image->runtime)->called;
	bool runs = site->is_made ? image->nr_loops > 0 : is_loop(image, site->elf_vaddr);

	if (!is_language)
		return false;
	if (recognised) /* what it compiles is marked where it has no name */
		return !recognised->compiles && !site->is_made && (runs || !recognised->entries[0]);
	return image->is_supported ? !site->has_frames && runs : !site->has_frames || runs;
}

bool runtime_marks_of(const struct runtime_image *images, uint32_t nr_images, const struct runtime_site *site, char *to, size_t size)
{
	for (uint32_t i = 0; i < nr_images; i++) {
		const struct runtime_image *image = &images[i];

		if (!is_missing(image, site))
			continue;
		if (image->is_supported)
			snprintf(to, size, RUNTIME_NOT_KNOWN, runtime_name(image->runtime));
		else
			runtime_marks_unsupported(image, to, size);
		return true;
	}
	return false;
}
