// SPDX-License-Identifier: Apache-2.0
#include "symbolize/jit_names.h"

#include <errno.h>

#include "symbolize/perf_map.h"

struct jit_names {
	struct jitdump *dumps[JIT_NAMES_MAX_FILES];
	struct perf_map *maps[JIT_NAMES_MAX_FILES];
	uint32_t nr_dumps, nr_maps;
};

struct jit_names *jit_names_new(void)
{
	return calloc(1, sizeof(struct jit_names));
}

void jit_names_free(struct jit_names *names)
{
	if (!names)
		return;
	for (uint32_t i = 0; i < names->nr_dumps; i++)
		jitdump_free(names->dumps[i]);
	for (uint32_t i = 0; i < names->nr_maps; i++)
		perf_map_free(names->maps[i]);
	free(names);
}

int jit_names_read_fd(struct jit_names *names, int fd)
{
	int err;

	if (names->nr_dumps + names->nr_maps == JIT_NAMES_MAX_FILES)
		return -E2BIG;
	err = jitdump_read_fd(fd, &names->dumps[names->nr_dumps]);
	names->nr_dumps += !err;
	if (err != -EBADMSG)
		return err;
	err = perf_map_read_fd(fd, &names->maps[names->nr_maps]);
	names->nr_maps += !err;
	return err;
}

int jit_names_find(const struct jit_names *names, uint64_t pc, struct jitdump_place *ret_location)
{
	struct jitdump_place place = { .file = "" };

	for (uint32_t i = names->nr_dumps; i > 0; i--)
		if (jitdump_find(names->dumps[i - 1], pc, ret_location) == 0)
			return 0;
	for (uint32_t i = names->nr_maps; i > 0; i--)
		if (perf_map_find(names->maps[i - 1], pc, &place.name, &place.start) == 0) {
			*ret_location = place;
			return 0;
		}
	return -ENOENT;
}

uint32_t jit_names_nr_refused(const struct jit_names *names)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < names->nr_dumps; i++)
		nr += jitdump_nr_refused(names->dumps[i]);
	for (uint32_t i = 0; i < names->nr_maps; i++)
		nr += perf_map_nr_refused(names->maps[i]);
	return nr;
}
