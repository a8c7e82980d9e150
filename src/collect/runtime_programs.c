// SPDX-License-Identifier: Apache-2.0
#include "collect/runtime_programs.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "go.skel.h"
#include "perl.skel.h"
#include "php.skel.h"
#include "python.skel.h"

struct runtime_programs {
	const struct bpf_object *sampler;
	struct sonde_config config;
	struct {
		struct bpf_object *object;
		int processes_fd;
		int err; /* that it could not be loaded with */
	} loaded[SONDE_RUNTIME_COUNT];
};

static const struct {
	const char *name;
	const void *(*bytes)(size_t *ret_size);
} objects[SONDE_RUNTIME_COUNT] = {
	[SONDE_RUNTIME_PYTHON] = { "python", python_bpf__elf_bytes },
	[SONDE_RUNTIME_PERL] = { "perl", perl_bpf__elf_bytes },
	[SONDE_RUNTIME_PHP] = { "php", php_bpf__elf_bytes },
	[SONDE_RUNTIME_GO] = { "go", go_bpf__elf_bytes },
};

struct runtime_programs *runtime_programs_new(const struct bpf_object *sampler, const struct sonde_config *config)
{
	struct runtime_programs *programs = calloc(1, sizeof(*programs));

	if (!programs)
		return NULL;
	programs->sampler = sampler;
	programs->config = *config;
	return programs;
}

void runtime_programs_free(struct runtime_programs *programs)
{
	if (!programs)
		return;
	for (int kind = 0; kind < SONDE_RUNTIME_COUNT; kind++)
		bpf_object__close(programs->loaded[kind].object);
	free(programs);
}

/* Maps that the sampler has, too, are the sampler's; the knobs are its. */
static int share_maps(const struct runtime_programs *programs, struct bpf_object *object)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, object) {
		const struct bpf_map *shared = bpf_object__find_map_by_name(programs->sampler, bpf_map__name(map));
		int err = 0;

		if (bpf_map__is_internal(map))
			err = bpf_map__set_initial_value(map, &programs->config, sizeof(programs->config)); /* .rodata holds nothing else, or this fails */
		else if (shared)
			err = bpf_map__reuse_fd(map, bpf_map__fd(shared));
		if (err)
			return err;
	}
	return 0;
}

static int load(const struct runtime_programs *programs, enum sonde_runtime kind, struct bpf_object **ret_object)
{
	size_t size = 0;
	const void *bytes = objects[kind].bytes(&size);
	struct bpf_object *object = bpf_object__open_mem(bytes, size, NULL);
	uint32_t key = kind;
	int err, fd;

	if (!object)
		return -errno;
	err = share_maps(programs, object) ?: bpf_object__load(object);
	if (!err) {
		fd = bpf_program__fd(bpf_object__find_program_by_name(object, "walk_runtime"));
		err = bpf_map_update_elem(bpf_object__find_map_fd_by_name(programs->sampler, "runtime_programs"), &key, &fd, BPF_ANY);
	}
	if (err)
		bpf_object__close(object);
	else
		*ret_object = object;
	return err;
}

int runtime_programs_set(struct runtime_programs *programs, enum sonde_runtime kind, uint32_t tgid, const void *process, struct diag *diag)
{
	if (!objects[kind].bytes)
		return diag_errno(diag, EOPNOTSUPP, "there is no program for it");
	if (!programs->loaded[kind].object && !programs->loaded[kind].err) {
		programs->loaded[kind].err = load(programs, kind, &programs->loaded[kind].object);
		if (!programs->loaded[kind].err)
			programs->loaded[kind].processes_fd = bpf_object__find_map_fd_by_name(programs->loaded[kind].object, "runtime_processes");
	}
	if (programs->loaded[kind].err)
		return diag_errno(diag, EOPNOTSUPP, "this kernel cannot load the program for %s (%s)", objects[kind].name, strerror(-programs->loaded[kind].err));
	return bpf_map_update_elem(programs->loaded[kind].processes_fd, &tgid, process, BPF_ANY);
}

int runtime_programs_fd(const struct runtime_programs *programs, enum sonde_runtime kind)
{
	return programs->loaded[kind].object ? programs->loaded[kind].processes_fd : -1;
}

void runtime_programs_unset(struct runtime_programs *programs, enum sonde_runtime kind, uint32_t tgid)
{
	if (programs->loaded[kind].object)
		bpf_map_delete_elem(programs->loaded[kind].processes_fd, &tgid);
}
