// SPDX-License-Identifier: Apache-2.0
#include "collect/runtime_programs.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/constant_pages.h"
#include "base/hold_signals.h"
#include "collect/share_maps.h"
#include "runtimes.skel.h"

struct users { /* a trigger's programs, which tail-call the runtimes' programs */
	const struct bpf_object *object;
	struct trigger trigger;
	int program_fds[SONDE_RUNTIME_COUNT]; /* -1: not loaded */
	struct bpf_object *loading; /* of the runtime that is being loaded; else NULL */
};

struct runtime_programs {
	struct sonde_config config;
	struct users *users;
	uint32_t nr_users;
	struct {
		int processes_fd; /* all triggers' programs share it; -1: not loaded */
		int rows_fd;      /* likewise, of what user space has read of its code; -1: it has no such map */
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

	if (!programs)
		return NULL;
	programs->config = *config;
	for (int kind = 0; kind < SONDE_RUNTIME_COUNT; kind++)
		programs->kinds[kind].processes_fd = programs->kinds[kind].rows_fd = -1;
	return programs;
}

static void let_go(int *fd)
{
	closep(fd);
	*fd = -1;
}

static void unload(struct runtime_programs *programs, enum sonde_runtime kind)
{
	for (uint32_t i = 0; i < programs->nr_users; i++)
		let_go(&programs->users[i].program_fds[kind]);
	let_go(&programs->kinds[kind].processes_fd);
	let_go(&programs->kinds[kind].rows_fd);
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

static bool is_loaded(const struct runtime_programs *programs, enum sonde_runtime kind)
{
	return programs->kinds[kind].processes_fd >= 0;
}

static int set_entry(const struct users *users, uint32_t entry, int fd)
{
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
	for (int kind = 0; kind < SONDE_RUNTIME_COUNT; kind++)
		users->program_fds[kind] = -1;
	return set_entry(users, SONDE_RUNTIME_NONE, bpf_program__fd(last));
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

/* The map of a runtime's own; NULL: it has none. */
static struct bpf_map *map_of(const struct bpf_object *object, enum sonde_runtime kind, const char *what)
{
	char name[32];

	snprintf(name, sizeof(name), "sonde_%s_%s", objects[kind].name, what);
	return bpf_object__find_map_by_name(object, name);
}

/* All triggers share what user space fills in. */
static int share_own(const struct runtime_programs *programs, const struct users *users, enum sonde_runtime kind,
		     const struct bpf_object *object)
{
	struct bpf_map *rows = map_of(object, kind, "rows");
	int err;

	if (users == programs->users)
		return 0;
	err = bpf_map__reuse_fd(map_of(object, kind, "ps"), programs->kinds[kind].processes_fd);
	return err || !rows ? err : bpf_map__reuse_fd(rows, programs->kinds[kind].rows_fd);
}

/* The object has one program. */
static struct bpf_object *open_object(enum sonde_runtime kind, const void *bytes, size_t size)
{
	char name[16];
	LIBBPF_OPTS(bpf_object_open_opts, options, .object_name = name);

	snprintf(name, sizeof(name), "sonde_%.2s", objects[kind].name); /* the .rodata map's name begins with it */
	return bpf_object__open_mem(bytes, size, &options);
}

static int load_for(const struct runtime_programs *programs, struct users *users, enum sonde_runtime kind)
{
	HOLD_SIGNALS();
	size_t size = 0;
	const void *bytes = objects[kind].bytes(&size);
	struct bpf_object *object = open_object(kind, bytes, size);
	struct bpf_program *program;
	int err;

	if (!object)
		return -errno;
	program = bpf_object__next_program(object, NULL);
	err = trigger_set_program(&users->trigger, program, NULL) ?: set_knobs(programs, object) ?:
		share_maps(object, users->object, SHARE_TRIGGER) ?: share_own(programs, users, kind, object) ?:
		bpf_object__load(object);
	constant_pages_drop(bytes, size);
	if (err)
		bpf_object__close(object);
	else
		users->loading = object;
	return err;
}

static int keep_fd(int fd, int *ret_kept)
{
	*ret_kept = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return *ret_kept < 0 ? -errno : 0;
}

/* Of a trigger's object, which has one program. */
static int keep(struct runtime_programs *programs, struct users *users, enum sonde_runtime kind)
{
	const struct bpf_object *object = users->loading;
	int err = keep_fd(bpf_program__fd(bpf_object__next_program(object, NULL)), &users->program_fds[kind]);
	const struct bpf_map *rows = map_of(object, kind, "rows");

	if (!err && rows && programs->kinds[kind].rows_fd < 0)
		err = keep_fd(bpf_map__fd(rows), &programs->kinds[kind].rows_fd);
	if (!err && !is_loaded(programs, kind))
		err = keep_fd(bpf_map__fd(map_of(object, kind, "ps")), &programs->kinds[kind].processes_fd);
	return err;
}

/* Loads the program for all triggers. None tail-calls it before all have it. Only descriptors are kept: libbpf's objects take half a
 * megabyte each. */
static int load(struct runtime_programs *programs, enum sonde_runtime kind)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < programs->nr_users; i++) {
		struct users *users = &programs->users[i];

		err = load_for(programs, users, kind) ?: keep(programs, users, kind);
		bpf_object__close(MOVE(users->loading));
	}
	for (uint32_t i = 0; !err && i < programs->nr_users; i++)
		err = set_entry(&programs->users[i], kind, programs->users[i].program_fds[kind]);
	if (err)
		unload(programs, kind);
	return err;
}

void runtime_programs_load(struct runtime_programs *programs, enum sonde_runtime kind)
{
	if (programs->nr_users && objects[kind].bytes && !is_loaded(programs, kind) && !programs->kinds[kind].err)
		programs->kinds[kind].err = load(programs, kind);
}

int runtime_programs_set(struct runtime_programs *programs, enum sonde_runtime kind, uint32_t tgid, const void *process, struct diag *diag)
{
	if (!objects[kind].bytes)
		return diag_errno(diag, EOPNOTSUPP, "there is no program for it");
	if (!programs->nr_users)
		return 0;
	if (!is_loaded(programs, kind) && !programs->kinds[kind].err)
		return -EAGAIN;
	if (programs->kinds[kind].err)
		return diag_errno(diag, EOPNOTSUPP, "this kernel cannot load the program for %s (%s)", objects[kind].name,
				  strerror(-programs->kinds[kind].err));
	return bpf_map_update_elem(programs->kinds[kind].processes_fd, &tgid, process, BPF_ANY);
}

int runtime_programs_fd(const struct runtime_programs *programs, enum sonde_runtime kind)
{
	return programs->kinds[kind].processes_fd;
}

void runtime_programs_unset(struct runtime_programs *programs, enum sonde_runtime kind, uint32_t tgid)
{
	if (is_loaded(programs, kind))
		bpf_map_delete_elem(programs->kinds[kind].processes_fd, &tgid);
}

int runtime_programs_rows_fd(const struct runtime_programs *programs, enum sonde_runtime kind)
{
	return programs->kinds[kind].rows_fd;
}

int runtime_programs_get_rows(const struct runtime_programs *programs, enum sonde_runtime kind, const void *key, void *ret_rows)
{
	return programs->kinds[kind].rows_fd < 0 ? -ENOENT : bpf_map_lookup_elem(programs->kinds[kind].rows_fd, key, ret_rows);
}

void runtime_programs_set_rows(const struct runtime_programs *programs, enum sonde_runtime kind, const void *key, const void *rows)
{
	if (programs->kinds[kind].rows_fd >= 0)
		bpf_map_update_elem(programs->kinds[kind].rows_fd, key, rows, BPF_ANY);
}
