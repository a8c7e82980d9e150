// SPDX-License-Identifier: Apache-2.0
#include "programs/rss_programs.h"

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
#include "collect/trigger.h"
#include "rss.skel.h"

#define GRAIN_BYTES (1u << 20)
#define HUGE_BYTES (2u << 20) /* x86-64's, and arm64's with pages of 4 KiB */

struct rss_programs {
	struct rss_bpf *skeleton;
	struct trigger_links links;
	uint32_t nr_possible_cpus;
};

static const struct trigger on_change = { .kind = TRIGGER_TP_BTF, .name = "rss_stat" };

static int set_up(const struct rss_programs *programs, const struct sampler *sampler, struct diag *diag)
{
	uint32_t page_bytes = (uint32_t)sysconf(_SC_PAGESIZE);
	struct rss_bpf *skeleton = programs->skeleton;
	int err = trigger_set_program(&on_change, skeleton->progs.sonde_rss, diag)
		      ?: trigger_set_program(&on_change, skeleton->progs.sonde_rss_end, diag);

	if (err)
		return err;
	memcpy((void *)&skeleton->rodata->cfg, sampler_config(sampler), sizeof(skeleton->rodata->cfg));
	memcpy((void *)&skeleton->rodata->rss_cfg,
	       &(struct sonde_rss_config){ .page_shift = (uint32_t)__builtin_ctz(page_bytes),
					   .grain_pages = GRAIN_BYTES / page_bytes,
					   .huge_pages = HUGE_BYTES / page_bytes,
					   .own_tgid = own_tgid() },
	       sizeof(skeleton->rodata->rss_cfg));
	err = share_maps(skeleton->obj, sampler_object(sampler), SHARE_NO_MORE);
	return err ? diag_errno(diag, -err, "cannot size the BPF maps: %s", strerror(-err)) : 0;
}

static int load(struct rss_programs *programs, struct sampler *sampler, struct diag *diag)
{
	bool can_make_maps = load_can_make_maps();
	int err;

	programs->skeleton = rss_bpf__open();
	if (!programs->skeleton)
		return diag_errno(diag, errno, "cannot open our BPF object: %s", strerror(errno));
	err = set_up(programs, sampler, diag);
	if (err)
		return err;
	err = rss_bpf__load(programs->skeleton);
	if (err)
		return load_failed(err, can_make_maps, "5.12", diag);
	err = sampler_add_trigger(sampler, programs->skeleton->obj, &on_change, programs->skeleton->progs.sonde_rss_end);
	return err ? diag_errno(diag, -err, "cannot set up the programs of the interpreters: %s", strerror(-err)) : 0;
}

static void rss_programs_freep(struct rss_programs **programs)
{
	rss_programs_free(*programs);
}

int rss_programs_new(struct sampler *sampler, struct diag *diag, struct rss_programs **ret_programs)
{
	CLEANUP(rss_programs_freep) struct rss_programs *programs = calloc(1, sizeof(*programs));
	HOLD_SIGNALS();
	int err;

	if (!programs)
		return -ENOMEM;
	err = cpus_nr_possible(diag, &programs->nr_possible_cpus) ?: load(programs, sampler, diag);
	if (err)
		return err;
	*ret_programs = MOVE(programs);
	return 0;
}

void rss_programs_free(struct rss_programs *programs)
{
	if (!programs)
		return;
	rss_programs_stop(programs);
	rss_bpf__destroy(programs->skeleton);
	free(programs);
}

int rss_programs_start(struct rss_programs *programs, struct diag *diag)
{
	return trigger_attach(&on_change, programs->skeleton->progs.sonde_rss, diag, &programs->links);
}

void rss_programs_stop(struct rss_programs *programs)
{
	trigger_detach(&programs->links);
}

void rss_programs_counters(const struct rss_programs *programs, struct sonde_rss_counters *ret_counters)
{
	map_sum_cpus(bpf_map__fd(programs->skeleton->maps.sonde_rss_stat), 0, programs->nr_possible_cpus, (uint64_t *)ret_counters,
		     sizeof(*ret_counters) / sizeof(uint64_t));
}

uint64_t rss_programs_nr_left_out(const struct rss_programs *programs)
{
	return program_nr_misses(programs->skeleton->progs.sonde_rss);
}
