// SPDX-License-Identifier: Apache-2.0
#include "collect/runtime_programs.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hold_signals.h"
#include "collect/share_maps.h"
#include "runtimes.skel.h"

struct users { /* a trigger's programs, which tail-call the runtimes' programs */
	const struct bpf_object *object;
	struct trigger trigger;
	struct bpf_object *programs[SONDE_RUNTIME_COUNT];
};

struct runtime_programs {
	struct sonde_config config;
	struct users *users;
	uint32_t nr_users;
	struct {
		bool is_loaded;
		int processes_fd; /* of the first trigger's program; the others share it */
		int err;          /* why loading failed */
	} kinds[SONDE_RUNTIME_COUNT];
};

static const struct {
	const char *name;
	const void *(*bytes)(size_t *ret_size);
} objects[SONDE_RUNTIME_COUNT] = {
#define X(id, name, ...) [SONDE_RUNTIME_##id] = { #name, name##_bpf__elf_bytes },
	SONDE_RUNTIME_LIST(X, X, X)
#undef X
};

struct runtime_programs *runtime_programs_new(const struct sonde_config *config)
{
	struct runtime_programs *programs = calloc(1, sizeof(*programs));

	if (programs)
		programs->config = *config;
	return programs;
}

static void unload(struct runtime_programs *programs, enum sonde_runtime kind)
{
	for (uint32_t i = 0; i < programs->nr_users; i++) {
		bpf_object__close(programs->users[i].programs[kind]);
		programs->users[i].programs[kind] = NULL;
	}
	programs->kinds[kind].is_loaded = false;
}

void runtime_programs_free(struct runtime_programs *programs)
{
	if (!programs)
		return;
	for (int kind = 0; kind < SONDE_RUNTIME_COUNT; kind++)
		unload(programs, kind);
	free(programs->users);
	free(programs);
}

static int set_entry(const struct users *users, uint32_t entry, const struct bpf_program *program)
{
	int fd = bpf_program__fd(program);

	return bpf_map_update_elem(bpf_object__find_map_fd_by_name(users->object, "sonde_rt_progs"), &entry, &fd, BPF_ANY);
}

int runtime_programs_add(struct runtime_programs *programs, const struct bpf_object *object, const struct trigger *trigger,
			 const struct bpf_program *last)
{
	struct users *users = reallocarray(programs->users, programs->nr_users + 1, sizeof(*users));

	if (!users)
		return -ENOMEM;
	programs->users = users;
	users += programs->nr_users++;
	*users = (struct users){ .object = object, .trigger = *trigger };
	return set_entry(users, SONDE_RUNTIME_NONE, last);
}

static int set_knobs(const struct runtime_programs *programs, struct bpf_object *object)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, object) {
		/* .rodata holds nothing else; if it did, this call would fail */
		int err = bpf_map__is_internal(map) ? bpf_map__set_initial_value(map, &programs->config, sizeof(programs->config)) : 0;

		if (err)
			return err;
	}
	return 0;
}

static struct bpf_map *processes_of(const struct bpf_object *object, enum sonde_runtime kind)
{
	char name[16];

	snprintf(name, sizeof(name), "sonde_%s_ps", objects[kind].name);
	return bpf_object__find_map_by_name(object, name);
}

/* All triggers share one map of processes. */
static int share_processes(const struct runtime_programs *programs, const struct users *users, enum sonde_runtime kind,
			   const struct bpf_object *object)
{
	if (users == programs->users)
		return 0;
	return bpf_map__reuse_fd(processes_of(object, kind), programs->kinds[kind].processes_fd);
}

/* The object has one program. */
static struct bpf_object *open_object(enum sonde_runtime kind)
{
	char name[16];
	LIBBPF_OPTS(bpf_object_open_opts, options, .object_name = name);
	size_t size = 0;
	const void *bytes = objects[kind].bytes(&size);

	snprintf(name, sizeof(name), "sonde_%.2s", objects[kind].name); /* the .rodata map's name begins with it */
	return bpf_object__open_mem(bytes, size, &options);
}

static int load_for(const struct runtime_programs *programs, struct users *users, enum sonde_runtime kind)
{
	HOLD_SIGNALS();
	struct bpf_object *object = open_object(kind);
	struct bpf_program *program;
	int err;

	if (!object)
		return -errno;
	program = bpf_object__next_program(object, NULL);
	err = trigger_set_program(&users->trigger, program, NULL) ?: set_knobs(programs, object) ?:
		share_maps(object, users->object, SHARE_TRIGGER) ?: share_processes(programs, users, kind, object) ?:
		bpf_object__load(object);
	if (err)
		bpf_object__close(object);
	else
		users->programs[kind] = object;
	return err;
}

/* Loads the program for all triggers. None tail-calls it before all have it. */
static int load(struct runtime_programs *programs, enum sonde_runtime kind)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < programs->nr_users; i++) {
		err = load_for(programs, &programs->users[i], kind);
		if (!err && !i)
			programs->kinds[kind].processes_fd = bpf_map__fd(processes_of(programs->users[i].programs[kind], kind));
	}
	for (uint32_t i = 0; !err && i < programs->nr_users; i++)
		err = set_entry(&programs->users[i], kind,
				bpf_object__next_program(programs->users[i].programs[kind], NULL));
	if (err)
		unload(programs, kind);
	return err;
}

void runtime_programs_load(struct runtime_programs *programs, enum sonde_runtime kind)
{
	if (!programs->nr_users || !objects[kind].bytes || programs->kinds[kind].is_loaded || programs->kinds[kind].err)
		return;
	programs->kinds[kind].err = load(programs, kind);
	programs->kinds[kind].is_loaded = !programs->kinds[kind].err;
}

int runtime_programs_set(struct runtime_programs *programs, enum sonde_runtime kind, uint32_t tgid, const void *process, struct diag *diag)
{
	if (!objects[kind].bytes)
		return diag_errno(diag, EOPNOTSUPP, "there is no program for it");
	if (!programs->nr_users)
		return 0;
	if (!programs->kinds[kind].is_loaded && !programs->kinds[kind].err)
		return -EAGAIN;
	if (programs->kinds[kind].err)
		return diag_errno(diag, EOPNOTSUPP, "this kernel cannot load the program for %s (%s)", objects[kind].name,
				  strerror(-programs->kinds[kind].err));
	return bpf_map_update_elem(programs->kinds[kind].processes_fd, &tgid, process, BPF_ANY);
}

int runtime_programs_fd(const struct runtime_programs *programs, enum sonde_runtime kind)
{
	return programs->kinds[kind].is_loaded ? programs->kinds[kind].processes_fd : -1;
}

void runtime_programs_unset(struct runtime_programs *programs, enum sonde_runtime kind, uint32_t tgid)
{
	if (programs->kinds[kind].is_loaded)
		bpf_map_delete_elem(programs->kinds[kind].processes_fd, &tgid);
}
