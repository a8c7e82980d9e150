// SPDX-License-Identifier: Apache-2.0
#include "collect/object_cost.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/number.h"

int object_cost_begin(struct diag *diag, int *ret_fd)
{
	int fd = bpf_enable_stats(BPF_STATS_RUN_TIME);

	if (fd < 0)
		return diag_errno(diag, errno, "the kernel does not report the cost of BPF programs: %s", strerror(errno));
	*ret_fd = fd;
	return 0;
}

/* False: not loaded, or not known. */
static bool read_info(const struct bpf_program *program, struct bpf_prog_info *ret_info)
{
	uint32_t size = sizeof(*ret_info);
	int fd = bpf_program__fd(program);

	memset(ret_info, 0, sizeof(*ret_info));
	return fd >= 0 && !bpf_obj_get_info_by_fd(fd, ret_info, &size);
}

uint64_t object_cost_ns(const struct bpf_object *object)
{
	struct bpf_program *program;
	struct bpf_prog_info info;
	uint64_t cost_ns = 0;

	bpf_object__for_each_program(program, object) {
		if (read_info(program, &info))
			cost_ns += info.run_time_ns;
	}
	return cost_ns;
}

uint64_t program_nr_misses(const struct bpf_program *program)
{
	struct bpf_prog_info info;

	return read_info(program, &info) ? info.recursion_misses : 0;
}

/* The "memlock" line of a map's fdinfo is the kernel's figure for its memory. */
uint64_t map_bytes(int map_fd)
{
	char path[64], line[256];
	CLEANUP(fclosep) FILE *file = NULL;
	uint64_t bytes = 0;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", map_fd);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		number_of_field(line, "memlock", &bytes);
	}
	return bytes;
}

/* Returns 0 if it is not known. */
static uint32_t map_id(const struct bpf_map *map)
{
	struct bpf_map_info info = { 0 };
	uint32_t size = sizeof(info);
	int fd = map ? bpf_map__fd(map) : -1;

	return fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &size) ? info.id : 0;
}

uint64_t object_map_bytes(const struct bpf_object *object, const struct bpf_object *other)
{
	uint64_t bytes = 0;
	struct bpf_map *map;

	bpf_object__for_each_map(map, object) {
		const struct bpf_map *same = other ? bpf_object__find_map_by_name(other, bpf_map__name(map)) : NULL;
		bool is_shared = same && map_id(same) && map_id(same) == map_id(map);

		if (bpf_map__fd(map) >= 0 && !is_shared)
			bytes += map_bytes(bpf_map__fd(map));
	}
	return bytes;
}
