// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "model/profile.h"
#include "runtime/recognised.h"
#include "runtime/runtime.h"
#include "runtime/tls_access.h"

static const struct runtime *const runtimes[SONDE_RUNTIME_COUNT] = {
#define X(id, name, ...) [SONDE_RUNTIME_##id] = &runtime_##name,
	SONDE_RUNTIME_LIST(X, X, X)
#undef X
};

const struct runtime *runtime_of(uint32_t kind)
{
	return kind < SONDE_RUNTIME_COUNT ? runtimes[kind] : NULL;
}

const struct runtime *runtime_of_frame(uint32_t frame_kind)
{
	static const struct runtime *const of_frames[FRAME_KIND_COUNT] = {
#define X(id, name, ...) [FRAME_##id] = &runtime_##name,
		SONDE_RUNTIME_LIST(X, X, SONDE_NO_RUNTIME)
#undef X
	};

	return frame_kind < FRAME_KIND_COUNT ? of_frames[frame_kind] : NULL;
}

const char *runtime_name(uint32_t kind)
{
	static const char *const names[SONDE_RUNTIME_COUNT] = {
		[SONDE_RUNTIME_NONE] = "",
#define X(id, name, ...) [SONDE_RUNTIME_##id] = #name,
		SONDE_RUNTIME_LIST(X, X, X)
#undef X
	};

	return kind < SONDE_RUNTIME_COUNT ? names[kind] : "";
}

/* A symbol's size is untrusted: a range that wraps around would contain every address. */
static void drop_wrapped_loops(struct runtime_image *image)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < image->nr_loops; i++) {
		if (image->loops[i].start_pc < image->loops[i].end_pc)
			image->loops[nr++] = image->loops[i];
	}
	memset(image->loops + nr, 0, (SONDE_MAX_LOOPS - nr) * sizeof(*image->loops));
	image->nr_loops = nr;
}

static bool are_loops_sound(const struct runtime_image *image)
{
	if (image->nr_loops > SONDE_MAX_LOOPS)
		return false;
	for (uint32_t i = 0; i < SONDE_MAX_LOOPS; i++) {
		bool is_one = image->loops[i].start_pc < image->loops[i].end_pc,
		     is_none = !image->loops[i].start_pc && !image->loops[i].end_pc;

		if (i < image->nr_loops ? !is_one : !is_none)
			return false;
	}
	return true;
}

/* The reason appears in messages and in frame names. */
static bool is_reason_plain(const struct runtime_image *image)
{
	const char *end = memchr(image->reason, '\0', sizeof(image->reason));

	for (const char *at = image->reason; end && at < end; at++) {
		if (*at < ' ' || *at > '~')
			return false;
	}
	return end;
}

bool runtime_image_is_sound(const struct runtime_image *image)
{
	const struct runtime *runtime = runtime_of(image->runtime);
	const struct sonde_runtime_process *process = &image->known.process;

	if (image->is_supported > 1 || !are_loops_sound(image) || !is_reason_plain(image) ||
	    image->is_supported != !image->reason[0])
		return false;
	if (!image->is_supported) /* nothing else in it is used */
		return runtime || (image->runtime == SONDE_RUNTIME_NONE && recognised_find(image->reason));
	return runtime && !process->generation && !process->serial && !process->load_bias && tls_access_is_sound(&process->root) &&
	       runtime->is_sound(image);
}

/* The runtime of this kind in the file, or with SONDE_RUNTIME_NONE one that is only recognised. 0, -ENOENT or -ENOMEM. */
static int examine_for(uint32_t kind, const struct elf_file *elf, struct runtime_image *ret_image)
{
	int err = runtimes[kind] ? runtimes[kind]->examine(elf, ret_image) : recognised_examine(elf, ret_image);

	if (err)
		return err == -ENOMEM ? err : -ENOENT;
	drop_wrapped_loops(ret_image);
	return runtime_image_is_sound(ret_image) ? 0 : -ENOENT; /* not true for some hostile files */
}

int runtimes_examine(const struct elf_file *elf, struct runtime_image *ret_images, uint32_t max)
{
	uint32_t nr = 0;

	for (uint32_t kind = 0; kind < SONDE_RUNTIME_COUNT && nr < max; kind++) {
		struct runtime_image image = { 0 };
		int err = examine_for(kind, elf, &image);

		if (err == -ENOMEM)
			return err;
		if (!err)
			ret_images[nr++] = image;
	}
	return (int)nr;
}
