// SPDX-License-Identifier: Apache-2.0
#include "programs/kmem_programs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cpus.h"
#include "base/hold_signals.h"
#include "collect/load_failure.h"
#include "collect/map_read.h"
#include "collect/object_cost.h"
#include "collect/own_tgid.h"
#include "collect/share_maps.h"
#include "kmem.skel.h"

struct kmem_programs {
	struct kmem_bpf *skeleton;
	uint32_t nr_possible_cpus;
};

/* Before Linux 6.1 the tracepoints have other arguments, and there is one more. */
static bool has_old_arguments(void)
{
	return libbpf_find_vmlinux_btf_id("kmalloc_node", BPF_TRACE_RAW_TP) > 0;
}

static int set_up(const struct kmem_programs *programs, const struct sampler *sampler, const struct sonde_kmem_config *config,
		  uint32_t max_blocks)
{
	struct kmem_bpf *skeleton = programs->skeleton;
	struct sonde_kmem_config own = *config;

	own.page_shift = (uint32_t)__builtin_ctz((uint32_t)sysconf(_SC_PAGESIZE));
	own.own_tgid = own_tgid();
	memcpy((void *)&skeleton->rodata->cfg, sampler_config(sampler), sizeof(skeleton->rodata->cfg));
	memcpy((void *)&skeleton->rodata->kmem_cfg, &own, sizeof(own));
	return share_maps(skeleton->obj, sampler_object(sampler), SHARE_NO_MORE)
		       ?: bpf_map__set_max_entries(skeleton->maps.sonde_kmem_blk, max_blocks);
}

static int load(struct kmem_programs *programs, const struct sampler *sampler, const struct sonde_kmem_config *config, uint32_t max_blocks,
		struct diag *diag)
{
	bool can_make_maps = load_can_make_maps();
	int err;

	if (has_old_arguments())
		return diag_errno(diag, EOPNOTSUPP, "the kernel's own memory can be followed from Linux 6.1 on");
	programs->skeleton = kmem_bpf__open();
	if (!programs->skeleton)
		return diag_errno(diag, errno, "cannot open our BPF object: %s", strerror(errno));
	err = set_up(programs, sampler, config, max_blocks);
	if (err)
		return diag_errno(diag, -err, "cannot size the BPF maps: %s", strerror(-err));
	err = kmem_bpf__load(programs->skeleton);
	return err ? load_failed(err, can_make_maps, "6.1", diag) : 0;
}

static void kmem_programs_freep(struct kmem_programs **programs)
{
	kmem_programs_free(*programs);
}

int kmem_programs_new(struct sampler *sampler, const struct sonde_kmem_config *config, uint32_t max_blocks, struct diag *diag,
		      struct kmem_programs **ret_programs)
{
	CLEANUP(kmem_programs_freep) struct kmem_programs *programs = calloc(1, sizeof(*programs));
	HOLD_SIGNALS();
	int err;

	if (!programs)
		return -ENOMEM;
	err = cpus_nr_possible(diag, &programs->nr_possible_cpus) ?: load(programs, sampler, config, max_blocks, diag);
	if (err)
		return err;
	*ret_programs = MOVE(programs);
	return 0;
}

void kmem_programs_free(struct kmem_programs *programs)
{
	if (!programs)
		return;
	kmem_bpf__destroy(programs->skeleton);
	free(programs);
}

int kmem_programs_start(struct kmem_programs *programs, struct diag *diag)
{
	int err = kmem_bpf__attach(programs->skeleton);

	return err ? diag_errno(diag, -err, "cannot attach to the kernel's allocators: %s", strerror(-err)) : 0;
}

void kmem_programs_stop(struct kmem_programs *programs)
{
	kmem_bpf__detach(programs->skeleton);
}

struct reading {
	kmem_block_fn fn;
	void *arg;
};

static int pass(void *arg, const void *key, const void *value)
{
	const struct reading *reading = arg;

	return reading->fn(reading->arg, *(const uint64_t *)key, value);
}

int kmem_programs_read(const struct kmem_programs *programs, kmem_block_fn fn, void *arg)
{
	struct reading reading = { .fn = fn, .arg = arg };

	return map_read(bpf_map__fd(programs->skeleton->maps.sonde_kmem_blk), sizeof(uint64_t), sizeof(struct sonde_kmem_block), pass,
			&reading);
}

void kmem_programs_counters(const struct kmem_programs *programs, struct sonde_kmem_counters *ret_counters)
{
	map_sum_cpus(bpf_map__fd(programs->skeleton->maps.sonde_kmem_stat), 0, programs->nr_possible_cpus, (uint64_t *)ret_counters,
		     sizeof(*ret_counters) / sizeof(uint64_t));
}

uint64_t kmem_programs_nr_left_out(const struct kmem_programs *programs)
{
	struct bpf_program *program;
	uint64_t nr = 0;

	bpf_object__for_each_program(program, programs->skeleton->obj)
		nr += program_nr_misses(program);
	return nr;
}
