// SPDX-License-Identifier: Apache-2.0
#include "programs/probe_programs.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cpus.h"
#include "base/hold_signals.h"
#include "collect/load_failure.h"
#include "collect/object_cost.h"
#include "collect/own_tgid.h"
#include "collect/target_map.h"
#include "probe.skel.h"

#define RING_BYTES (4u << 20)
#define MAX_BEGUN  16384 /* threads that are in a call at the same time; 5 MiB */

struct probe_programs {
	struct trigger trigger;
	struct probe_bpf *skeleton;
	struct trigger_links links;
	struct ring_buffer *ring; /* NULL: hits are not sent */
	uint32_t nr_possible_cpus;
	probe_record_fn fn; /* valid during probe_programs_records */
	void *arg;
};

static int on_record(void *arg, void *record, size_t size)
{
	struct probe_programs *programs = arg;

	return size == sizeof(struct sonde_probe_record) ? programs->fn(programs->arg, record) : -EBADMSG;
}

static int set_up(struct probe_programs *programs, const struct probe_programs_options *options, struct diag *diag)
{
	struct probe_bpf *skeleton = programs->skeleton;
	struct sonde_config config = options->config;
	bool is_usdt = programs->trigger.kind == TRIGGER_USDT;
	int err = trigger_set_program(&programs->trigger, skeleton->progs.sonde_probe, diag);

	if (err)
		return err;
	config.version = SONDE_ABI_VERSION;
	config.ring_wake_bytes = RING_BYTES / 4;
	memcpy((void *)&skeleton->rodata->cfg, &config, sizeof(config));
	memcpy((void *)&skeleton->rodata->probe_cfg, &options->probe, sizeof(options->probe));
	skeleton->rodata->probe_number = options->number;
	skeleton->bss->own_tgid = own_tgid();
	err = bpf_map__set_autocreate(skeleton->maps.__bpf_usdt_specs, is_usdt) ?:
		bpf_map__set_autocreate(skeleton->maps.__bpf_usdt_ip_to_spec_id, is_usdt) ?:
		bpf_map__set_max_entries(skeleton->maps.sonde_ring, options->probe.prints ? RING_BYTES : (uint32_t)sysconf(_SC_PAGESIZE));
	if (!err && options->probe.begins)
		err = bpf_map__set_max_entries(skeleton->maps.sonde_begun, MAX_BEGUN);
	if (!err && options->begin)
		err = bpf_map__reuse_fd(skeleton->maps.sonde_begun, bpf_map__fd(options->begin->skeleton->maps.sonde_begun));
	return err ? diag_errno(diag, -err, "cannot size the BPF maps: %s", strerror(-err)) : 0;
}

static int load(struct probe_programs *programs, const struct probe_programs_options *options, struct diag *diag)
{
	bool can_make_maps = load_can_make_maps();
	int err;

	programs->skeleton = probe_bpf__open();
	if (!programs->skeleton)
		return diag_errno(diag, errno, "cannot open our BPF object: %s", strerror(errno));
	err = set_up(programs, options, diag);
	if (err)
		return err;
	err = probe_bpf__load(programs->skeleton);
	if (err == -ESRCH)
		return diag_errno(diag, ENOENT, "this kernel has no '%s': /sys/kernel/btf/vmlinux does not have that name",
				  programs->trigger.name);
	if (err)
		return load_failed(err, can_make_maps, "5.10", diag);
	err = target_map_fill(programs->skeleton->maps.sonde_targets, options->targets, options->nr_targets, diag);
	if (err || !options->probe.prints)
		return err;
	programs->ring = ring_buffer__new(bpf_map__fd(programs->skeleton->maps.sonde_ring), on_record, programs, NULL);
	return programs->ring ? 0 : diag_errno(diag, errno, "cannot map the ring buffer: %s", strerror(errno));
}

static void probe_programs_freep(struct probe_programs **programs)
{
	probe_programs_free(*programs);
}

int probe_programs_new(const struct probe_programs_options *options, struct diag *diag, struct probe_programs **ret_programs)
{
	CLEANUP(probe_programs_freep) struct probe_programs *programs = calloc(1, sizeof(*programs));
	HOLD_SIGNALS();
	int err;

	if (!programs)
		return -ENOMEM;
	programs->trigger = *options->trigger;
	libbpf_set_print(NULL); /* its warnings are reported in diag */
	err = cpus_nr_possible(diag, &programs->nr_possible_cpus) ?: load(programs, options, diag);
	if (err)
		return err;
	*ret_programs = MOVE(programs);
	return 0;
}

void probe_programs_free(struct probe_programs *programs)
{
	if (!programs)
		return;
	probe_programs_stop(programs);
	ring_buffer__free(programs->ring);
	probe_bpf__destroy(programs->skeleton);
	free(programs);
}

int probe_programs_start(struct probe_programs *programs, struct diag *diag)
{
	return trigger_attach(&programs->trigger, programs->skeleton->progs.sonde_probe, diag, &programs->links);
}

void probe_programs_stop(struct probe_programs *programs)
{
	trigger_detach(&programs->links);
}

int probe_programs_records(struct probe_programs *programs, probe_record_fn fn, void *arg)
{
	int nr;

	programs->fn = fn;
	programs->arg = arg;
	nr = programs->ring ? ring_buffer__consume(programs->ring) : 0;
	return nr < 0 ? nr : 0;
}

int probe_programs_sums(struct probe_programs *programs, map_element_fn fn, void *arg)
{
	return map_read(bpf_map__fd(programs->skeleton->maps.sonde_sums), sizeof(struct sonde_probe_key), sizeof(struct sonde_probe_sum),
			fn, arg);
}

uint64_t probe_programs_nr_left_out(const struct probe_programs *programs)
{
	return program_nr_misses(programs->skeleton->progs.sonde_probe);
}

void probe_programs_counters(const struct probe_programs *programs, struct sonde_probe_counters *ret_counters)
{
	map_sum_cpus(bpf_map__fd(programs->skeleton->maps.sonde_counters), 0, programs->nr_possible_cpus, (uint64_t *)ret_counters,
		     sizeof(*ret_counters) / sizeof(uint64_t));
}
