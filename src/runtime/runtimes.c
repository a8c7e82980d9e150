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

/* Adds what was found, if it makes sense: in some hostile files it does not. 0 or -ENOMEM. */
static int add_found(int err, struct runtime_image *image, struct runtime_image *images, uint32_t *nr)
{
	if (err)
		return err == -ENOMEM ? err : 0;
	drop_wrapped_loops(image);
	if (runtime_image_is_sound(image))
		images[(*nr)++] = *image;
	return 0;
}

int runtimes_examine(const struct elf_file *elf, struct runtime_image *ret_images, uint32_t max)
{
	struct runtime_image image = { 0 };
	bool has_walked = false;
	uint32_t nr = 0;
	int err = 0;

	for (uint32_t kind = SONDE_RUNTIME_NONE + 1; !err && kind < SONDE_RUNTIME_COUNT && nr < max; kind++) {
		image = (struct runtime_image){ 0 };
		err = add_found(runtimes[kind]->examine(elf, &image), &image, ret_images, &nr);
		has_walked |= nr && ret_images[nr - 1].runtime == kind && !(SONDE_RUNTIMES_WITH_LABELS >> kind & 1);
	}
	image = (struct runtime_image){ 0 };
	if (!err && nr < max)
		err = add_found(recognised_examine(elf, has_walked, &image), &image, ret_images, &nr);
	return err ? err : (int)nr;
}
