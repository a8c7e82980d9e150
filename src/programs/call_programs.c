// SPDX-License-Identifier: Apache-2.0
#include "programs/call_programs.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "base/cpus.h"
#include "base/hold_signals.h"
#include "collect/load_failure.h"
#include "collect/own_tgid.h"
#include "collect/target_map.h"
#include "programs/sums_map.h"

#define MAX_SUMS 65536u

struct call_programs {
	struct call_object object;
	struct ring_buffer *ring;
	struct sums_map sums;
	uint32_t nr_possible_cpus;
	call_record_fn fn; /* valid during call_programs_records */
	void *arg;
};

static int on_record(void *arg, void *record, size_t bytes)
{
	struct call_programs *programs = arg;

	return programs->object.is_record(record, bytes) ? programs->fn(programs->arg, record, bytes) : -EBADMSG;
}

static struct bpf_object *bpf_of(const struct call_programs *programs)
{
	return *programs->object.skeleton->obj;
}

static struct bpf_map *map_of(const struct call_programs *programs, const char *name)
{
	return bpf_object__find_map_by_name(bpf_of(programs), name);
}

static int set_up(const struct call_programs *programs, const struct call_options *options)
{
	static const char *const of_a_command[] = { "sonde_cmd_fork", "sonde_cmd_exec", "sonde_cmd_exit" };
	struct sonde_config config = options->config;

	config.version = SONDE_ABI_VERSION;
	config.ring_wake_bytes = programs->object.ring_bytes / 4;
	if (getrandom(&config.hash_seed, sizeof(config.hash_seed), 0) != sizeof(config.hash_seed))
		return -errno;
	memcpy((void *)programs->object.config, &config, sizeof(config));
	*programs->object.own_tgid = own_tgid();
	for (size_t i = 0; i < ARRAY_SIZE(of_a_command); i++)
		bpf_program__set_autoload(bpf_object__find_program_by_name(bpf_of(programs), of_a_command[i]), config.command_tgid);
	return bpf_map__set_max_entries(map_of(programs, "sonde_ring"), programs->object.ring_bytes);
}

static int load(struct call_programs *programs, const struct call_options *options, struct diag *diag)
{
	const struct call_object *object = &programs->object;
	bool can_make_maps = load_can_make_maps();
	int err = set_up(programs, options);

	if (err)
		return diag_errno(diag, -err, "cannot size the BPF maps: %s", strerror(-err));
	err = bpf_object__load_skeleton(object->skeleton);
	if (err)
		return load_failed(err, can_make_maps, object->since, diag);
	err = target_map_fill(map_of(programs, "sonde_targets"), options->targets, options->nr_targets, diag);
	if (!err && object->sum_bytes)
		err = sums_map_init(&programs->sums, map_of(programs, "sonde_sums"), object->key_bytes, object->sum_bytes, MAX_SUMS, diag);
	if (err)
		return err;
	programs->ring = ring_buffer__new(bpf_map__fd(map_of(programs, "sonde_ring")), on_record, programs, NULL);
	return programs->ring ? 0 : diag_errno(diag, errno, "cannot map the ring buffer: %s", strerror(errno));
}

static void call_programs_freep(struct call_programs **programs)
{
	call_programs_free(*programs);
}

int call_programs_new(const struct call_object *object, const struct call_options *options, struct diag *diag,
		      struct call_programs **ret_programs)
{
	CLEANUP(call_programs_freep) struct call_programs *programs = calloc(1, sizeof(*programs));
	HOLD_SIGNALS();
	int err;

	if (!programs) {
		object->destroy(object->opened);
		return -ENOMEM;
	}
	libbpf_set_print(NULL); /* its warnings are reported in diag */
	programs->object = *object;
	programs->sums = (struct sums_map)SUMS_MAP_NONE;
	err = cpus_nr_possible(diag, &programs->nr_possible_cpus) ?: load(programs, options, diag);
	if (err)
		return err;
	*ret_programs = MOVE(programs);
	return 0;
}

void call_programs_free(struct call_programs *programs)
{
	if (!programs)
		return;
	ring_buffer__free(programs->ring);
	sums_map_done(&programs->sums);
	programs->object.destroy(programs->object.opened);
	free(programs);
}

int call_programs_start(struct call_programs *programs, struct diag *diag)
{
	int err = bpf_object__attach_skeleton(programs->object.skeleton);

	return err ? diag_errno(diag, -err, "cannot follow system calls: %s", strerror(-err)) : 0;
}

void call_programs_stop(struct call_programs *programs)
{
	bpf_object__detach_skeleton(programs->object.skeleton);
	map_settle();
}

int call_programs_records(struct call_programs *programs, call_record_fn fn, void *arg)
{
	int nr;

	programs->fn = fn;
	programs->arg = arg;
	nr = ring_buffer__consume(programs->ring);
	return nr < 0 ? nr : 0;
}

int call_programs_turn(struct call_programs *programs, int *ret_fd)
{
	return sums_map_turn(&programs->sums, ret_fd);
}

int call_programs_wake_fd(const struct call_programs *programs)
{
	return ring_buffer__epoll_fd(programs->ring);
}

void call_programs_counters(const struct call_programs *programs, uint64_t *ret_counters, uint32_t nr)
{
	map_sum_cpus(bpf_map__fd(map_of(programs, "sonde_counters")), 0, programs->nr_possible_cpus, ret_counters, nr);
}
