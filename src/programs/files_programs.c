// SPDX-License-Identifier: Apache-2.0
#include "programs/files_programs.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/cpus.h"
#include "base/hold_signals.h"
#include "programs/call_numbers.h"
#include "collect/load_failure.h"
#include "programs/sums_map.h"
#include "collect/target_map.h"
#include "files.skel.h"

#define RING_BYTES (4u << 20) /* some 20,000 opens: a build's in half a second */
#define MAX_SUMS   65536u

struct files_programs {
	struct files_bpf *skeleton;
	struct ring_buffer *ring;
	struct sums_map sums;
	uint32_t nr_possible_cpus;
	open_record_fn fn; /* valid during files_programs_records */
	void *arg;
};

static int on_record(void *arg, void *bytes, size_t size)
{
	struct files_programs *programs = arg;
	const struct sonde_open_record *record = bytes;
	const struct sonde_file_text *file = (const void *)(record + 1);

	if (size < sizeof(*record) + sizeof(*file) || size != sizeof(*record) + sizeof(*file) + file->bytes ||
	    record->name_bytes > file->bytes)
		return -EBADMSG;
	return programs->fn(programs->arg, record, size);
}

static void find_calls(struct sonde_opens_config *config)
{
	static const char *const names[] = { [SONDE_OPEN_OPEN] = "open",
					     [SONDE_OPEN_CREAT] = "creat",
					     [SONDE_OPEN_OPENAT] = "openat",
					     [SONDE_OPEN_OPENAT2] = "openat2",
					     [SONDE_OPEN_BY_HANDLE] = "open_by_handle_at" };

	for (uint8_t call = SONDE_OPEN_OPEN; call < ARRAY_SIZE(names); call++) {
		for (int is_32_bit = 0; is_32_bit < 2; is_32_bit++) {
			uint32_t number = call_number(names[call], is_32_bit);

			if (number < SONDE_MAX_CALLS)
				config->calls[is_32_bit][number] = call;
		}
	}
}

static int set_up(struct files_bpf *skeleton, const struct files_programs_options *options)
{
	struct sonde_opens_config opens = options->opens;
	struct sonde_config config = options->config;

	find_calls(&opens);
	config.version = SONDE_ABI_VERSION;
	config.ring_wake_bytes = RING_BYTES / 4;
	if (getrandom(&config.hash_seed, sizeof(config.hash_seed), 0) != sizeof(config.hash_seed))
		return -errno;
	memcpy((void *)&skeleton->rodata->cfg, &config, sizeof(config));
	memcpy((void *)&skeleton->rodata->opens_cfg, &opens, sizeof(opens));
	skeleton->bss->own_tgid = (uint32_t)getpid();
	bpf_program__set_autoload(skeleton->progs.on_fork, config.command_tgid);
	bpf_program__set_autoload(skeleton->progs.on_exec, config.command_tgid);
	bpf_program__set_autoload(skeleton->progs.on_process_exit, config.command_tgid);
	return bpf_map__set_max_entries(skeleton->maps.ring, RING_BYTES);
}

static int load(struct files_programs *programs, const struct files_programs_options *options, struct diag *diag)
{
	bool can_make_maps = load_can_make_maps();
	int err;

	programs->skeleton = files_bpf__open();
	if (!programs->skeleton)
		return diag_errno(diag, errno, "cannot open our BPF object: %s", strerror(errno));
	err = set_up(programs->skeleton, options);
	if (err)
		return diag_errno(diag, -err, "cannot size the BPF maps: %s", strerror(-err));
	err = files_bpf__load(programs->skeleton);
	if (err)
		return load_failed(err, can_make_maps, "5.10", diag);
	err = target_map_fill(programs->skeleton->maps.targets, options->targets, options->nr_targets, diag);
	if (!err && options->opens.sums)
		err = sums_map_init(&programs->sums, programs->skeleton->maps.sums, sizeof(struct sonde_open_key),
				    sizeof(struct sonde_open_sum), MAX_SUMS, diag);
	if (err)
		return err;
	programs->ring = ring_buffer__new(bpf_map__fd(programs->skeleton->maps.ring), on_record, programs, NULL);
	return programs->ring ? 0 : diag_errno(diag, errno, "cannot map the ring buffer: %s", strerror(errno));
}

static void files_programs_freep(struct files_programs **programs)
{
	files_programs_free(*programs);
}

int files_programs_new(const struct files_programs_options *options, struct diag *diag, struct files_programs **ret_programs)
{
	CLEANUP(files_programs_freep) struct files_programs *programs = calloc(1, sizeof(*programs));
	HOLD_SIGNALS();
	int err;

	if (!programs)
		return -ENOMEM;
	programs->sums = (struct sums_map)SUMS_MAP_NONE;
	libbpf_set_print(NULL); /* its warnings are reported in diag */
	err = cpus_nr_possible(diag, &programs->nr_possible_cpus) ?: load(programs, options, diag);
	if (err)
		return err;
	*ret_programs = MOVE(programs);
	return 0;
}

void files_programs_free(struct files_programs *programs)
{
	if (!programs)
		return;
	ring_buffer__free(programs->ring);
	sums_map_done(&programs->sums);
	files_bpf__destroy(programs->skeleton);
	free(programs);
}

int files_programs_start(struct files_programs *programs, struct diag *diag)
{
	int err = files_bpf__attach(programs->skeleton);

	return err ? diag_errno(diag, -err, "cannot follow system calls: %s", strerror(-err)) : 0;
}

void files_programs_stop(struct files_programs *programs)
{
	files_bpf__detach(programs->skeleton);
	map_settle();
}

int files_programs_records(struct files_programs *programs, open_record_fn fn, void *arg)
{
	int nr;

	programs->fn = fn;
	programs->arg = arg;
	nr = ring_buffer__consume(programs->ring);
	return nr < 0 ? nr : 0;
}

int files_programs_turn(struct files_programs *programs, int *ret_fd)
{
	return sums_map_turn(&programs->sums, ret_fd);
}

int files_programs_wake_fd(const struct files_programs *programs)
{
	return ring_buffer__epoll_fd(programs->ring);
}

void files_programs_counters(const struct files_programs *programs, struct sonde_open_counters *ret_counters)
{
	map_sum_cpus(bpf_map__fd(programs->skeleton->maps.counters), 0, programs->nr_possible_cpus, (uint64_t *)ret_counters,
		     sizeof(*ret_counters) / sizeof(uint64_t));
}
