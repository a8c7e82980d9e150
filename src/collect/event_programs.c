// SPDX-License-Identifier: Apache-2.0
#include "collect/event_programs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpus.h"
#include "base/hold_signals.h"
#include "collect/load_failure.h"
#include "collect/map_read.h"
#include "collect/object_cost.h"
#include "collect/own_tgid.h"
#include "collect/share_maps.h"
#include "event.skel.h"

struct event_programs {
	struct trigger trigger;
	struct event_bpf *skeleton;
	struct trigger_links links;
	uint32_t nr_possible_cpus;
};

static int set_up(const struct event_programs *programs, const struct sampler *sampler, const struct event_options *options,
		  struct diag *diag)
{
	const struct trigger *trigger = &programs->trigger;
	struct event_bpf *skeleton = programs->skeleton;
	bool is_usdt = trigger->kind == TRIGGER_USDT;
	int err = trigger_set_program(trigger, skeleton->progs.sonde_event, diag)
		      ?: trigger_set_program(trigger, skeleton->progs.sonde_event_end, diag);

	if (err)
		return err;
	memcpy((void *)&skeleton->rodata->cfg, sampler_config(sampler), sizeof(skeleton->rodata->cfg));
	memcpy((void *)&skeleton->rodata->event_cfg,
	       &(struct sonde_event_config){ .trigger = options->number,
					     .syscall = options->syscall,
					     .in_user = trigger_is_in_user(trigger),
					     .nr_own_frames = trigger_nr_own_frames(trigger),
					     .own_tgid = own_tgid() },
	       sizeof(skeleton->rodata->event_cfg));
	if (options->probe)
		memcpy((void *)&skeleton->rodata->probe_cfg, options->probe, sizeof(*options->probe));
	err = share_maps(skeleton->obj, sampler_object(sampler), SHARE_NO_MORE) ?:
		bpf_map__set_max_entries(skeleton->maps.sonde_values,
					 options->probe ? bpf_map__max_entries(skeleton->maps.sonde_scratch) : 1) ?:
		bpf_map__set_autocreate(skeleton->maps.__bpf_usdt_specs, is_usdt) ?:
		bpf_map__set_autocreate(skeleton->maps.__bpf_usdt_ip_to_spec_id, is_usdt);
	return err ? diag_errno(diag, -err, "cannot size the BPF maps: %s", strerror(-err)) : 0;
}

static int load(struct event_programs *programs, struct sampler *sampler, const struct event_options *options, struct diag *diag)
{
	bool can_make_maps = load_can_make_maps();
	int err;

	programs->skeleton = event_bpf__open();
	if (!programs->skeleton)
		return diag_errno(diag, errno, "cannot open our BPF object: %s", strerror(errno));
	err = set_up(programs, sampler, options, diag);
	if (err)
		return err;
	err = event_bpf__load(programs->skeleton);
	if (err == -ESRCH)
		return diag_errno(diag, ENOENT, "this kernel has no '%s': /sys/kernel/btf/vmlinux does not have that name",
				  programs->trigger.name);
	if (err)
		return load_failed(err, can_make_maps, "5.10", diag);
	err = sampler_add_trigger(sampler, programs->skeleton->obj, &programs->trigger, programs->skeleton->progs.sonde_event_end);
	return err ? diag_errno(diag, -err, "cannot set up the programs of the interpreters: %s", strerror(-err)) : 0;
}

static void event_programs_freep(struct event_programs **programs)
{
	event_programs_free(*programs);
}

int event_programs_new(struct sampler *sampler, const struct event_options *options, struct diag *diag,
		       struct event_programs **ret_programs)
{
	CLEANUP(event_programs_freep) struct event_programs *programs = calloc(1, sizeof(*programs));
	HOLD_SIGNALS();
	int err;

	if (!programs)
		return -ENOMEM;
	programs->trigger = *options->trigger;
	err = cpus_nr_possible(diag, &programs->nr_possible_cpus) ?: load(programs, sampler, options, diag);
	if (err)
		return err;
	*ret_programs = MOVE(programs);
	return 0;
}

void event_programs_free(struct event_programs *programs)
{
	if (!programs)
		return;
	event_programs_stop(programs);
	event_bpf__destroy(programs->skeleton);
	free(programs);
}

int event_programs_start(struct event_programs *programs, struct diag *diag)
{
	return trigger_attach(&programs->trigger, programs->skeleton->progs.sonde_event, diag, &programs->links);
}

void event_programs_stop(struct event_programs *programs)
{
	trigger_detach(&programs->links);
}

void event_programs_counters(const struct event_programs *programs, struct sonde_event_counters *ret_counters)
{
	map_sum_cpus(bpf_map__fd(programs->skeleton->maps.sonde_events), 0, programs->nr_possible_cpus, (uint64_t *)ret_counters,
		     sizeof(*ret_counters) / sizeof(uint64_t));
}

uint64_t event_programs_nr_left_out(const struct event_programs *programs)
{
	return program_nr_misses(programs->skeleton->progs.sonde_event);
}
