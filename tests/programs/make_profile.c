// SPDX-License-Identifier: Apache-2.0
/* make_profile DIRECTORY [threads | heap | waits | wall | STACKS [timed|diff]]: writes a made-up profile in every format (profile.text,
 * profile.pprof, ...) as input for foreign readers. By default the small hostile one; with STACKS one of about that many stacks, with times
 * or as a difference; or one of the others. Needs no BPF and no privileges. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/number.h"
#include "output/export.h"
#include "made_up_profile.h"

#define MAX_FILE_BYTES ((size_t)1 << 30)
#define MAX_STACKS     10000000

static int write_file(const char *path, const struct buffer *buffer)
{
	FILE *file = fopen(path, "we");
	size_t written;

	if (!file)
		return -errno;
	written = fwrite(buffer->data, 1, buffer->size, file);
	return fclose(file) || written != buffer->size ? -EIO : 0;
}

static uint64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static int write_formats(const struct profile *profile, const char *directory)
{
	struct export_options options = { 0 };

	for (enum export_format format = 0; format < EXPORT_FORMAT_COUNT; format++) {
		CLEANUP(buffer_done) struct buffer buffer = BUFFER_INIT(MAX_FILE_BYTES);
		struct diag diag = { 0 };
		uint64_t began_us = now_us(), took_us;
		char path[4096];
		int err = export_write(profile, format, &options, &buffer, &diag);

		took_us = now_us() - began_us;
		snprintf(path, sizeof(path), "%s/profile.%s", directory, export_format_name(format));
		if (!err)
			err = write_file(path, &buffer);
		if (err) {
			fprintf(stderr, "%s: %s\n", path, diag.err ? diag.text : strerror(-err));
			return err;
		}
		printf("%s: %zu bytes in %llu us\n", path, buffer.size, (unsigned long long)took_us);
	}
	return 0;
}

/* STACKS and EXTRA from the command line, or NULL. */
static struct profile *make(const char *stacks, const char *extra)
{
	uint64_t nr_stacks;

	if (!stacks)
		return made_up_profile();
	if (!strcmp(stacks, "threads"))
		return made_up_threads_profile();
	if (!strcmp(stacks, "heap"))
		return made_up_heap_profile();
	if (!strcmp(stacks, "waits"))
		return made_up_waits_profile();
	if (!strcmp(stacks, "wall"))
		return made_up_wall_profile();
	if (number_u64(stacks, MAX_STACKS, &nr_stacks))
		return NULL;
	if (!extra)
		return made_up_big_profile((uint32_t)nr_stacks);
	if (!strcmp(extra, "timed"))
		return made_up_timed_profile((uint32_t)nr_stacks);
	return strcmp(extra, "diff") ? NULL : made_up_diff_profile((uint32_t)nr_stacks);
}

int main(int argc, char **argv)
{
	CLEANUP(profile_freep) struct profile *profile = NULL;

	if (argc < 2 || argc > 4) {
		fprintf(stderr, "usage: make_profile DIRECTORY [threads | heap | waits | wall | STACKS [timed|diff]]\n");
		return 2;
	}
	profile = make(argv[2], argc > 3 ? argv[3] : NULL);
	return !profile || write_formats(profile, argv[1]) ? 1 : 0;
}
