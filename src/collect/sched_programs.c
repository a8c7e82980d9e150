// SPDX-License-Identifier: Apache-2.0
#include "collect/sched_programs.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpus.h"
#include "base/hold_signals.h"
#include "collect/load_failure.h"
#include "collect/map_read.h"
#include "collect/object_cost.h"
#include "collect/share_maps.h"
#include "collect/trigger.h"
#include "sched.skel.h"
#include "waking.skel.h"

#define FILLED_PART 4          /* sums are taken when 1/4 of their room is used */
#define OLDEST_KERNEL "5.12"   /* task storage for tracing programs */
#define ARGUMENTS_WITH_STATE 5 /* sched_switch's handlers since Linux 5.18: data, preempt, prev, next, prev_state */

struct sched_programs {
	struct sampler *sampler; /* borrowed */
	struct sched_bpf *skeleton;
	struct waking_bpf *waking; /* NULL: wakers are not recorded */
	uint32_t nr_possible_cpus;
	uint64_t max_sums, taken_sums, taken_slots;
	uint32_t window;           /* number of the window that begins at border_ns */
	uint64_t border_ns, cut_ns; /* the last border that was set, and the last that was cut at */
	int stats_fd;              /* -1: the kernel does not measure the programs' time for us */
};

/* Does this kernel's sched_switch pass the state that the thread leaves with? Returns 1 or 0; -EOPNOTSUPP: the BTF does not say. */
static int has_prev_state(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	int32_t id = btf ? btf__find_by_name_kind(btf, "btf_trace_sched_switch", BTF_KIND_TYPEDEF) : -1;
	const struct btf_type *type = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;
	int result = -EOPNOTSUPP;

	type = type ? btf__type_by_id(btf, type->type) : NULL; /* a pointer to the function's type */
	type = type && btf_is_ptr(type) ? btf__type_by_id(btf, type->type) : NULL;
	if (type && btf_is_func_proto(type))
		result = btf_vlen(type) >= ARGUMENTS_WITH_STATE;
	btf__free(btf);
	return result;
}

/* Where the sampler's maps are preallocated, this kernel needs ours to be, too. */
static int preallocate(const struct sampler *sampler, struct sched_bpf *skeleton)
{
	const struct bpf_map *processes = bpf_object__find_map_by_name(sampler_object(sampler), "sonde_processes");

	if (bpf_map__map_flags(processes) & BPF_F_NO_PREALLOC)
		return 0;
	return bpf_map__set_map_flags(skeleton->maps.sonde_sums, 0) ?: bpf_map__set_map_flags(skeleton->maps.sonde_odd_sums, 0) ?:
	       bpf_map__set_map_flags(skeleton->maps.sonde_slots, 0) ?: bpf_map__set_map_flags(skeleton->maps.sonde_odd_slots, 0);
}

static int set_sizes(const struct sched_programs *programs, const struct sched_options *options, int has_state)
{
	const struct sonde_config *config = sampler_config(programs->sampler);
	struct sched_bpf *skeleton = programs->skeleton;
	uint32_t max_sums = (uint32_t)options->max_sums, max_slots = config->histograms ? max_sums * 2 : 1;

	memcpy((void *)&skeleton->rodata->cfg, config, sizeof(*config));
	skeleton->rodata->cfg.has_prev_state = has_state;
	skeleton->data->limits.min_off_ns = config->min_off_ns;
	bpf_program__set_autoload(skeleton->progs.sonde_command, config->command_tgid);
	bpf_program__set_autoattach(skeleton->progs.sonde_switched, false); /* sonde_switch tail-calls it */
	bpf_program__set_autoattach(skeleton->progs.sonde_list, false);
	bpf_program__set_autoattach(skeleton->progs.sonde_cut, false);
	return share_maps(skeleton->obj, sampler_object(programs->sampler), SHARE_NO_MORE) ?: preallocate(programs->sampler, skeleton) ?:
	       bpf_map__set_max_entries(skeleton->maps.sonde_sums, max_sums) ?:
	       bpf_map__set_max_entries(skeleton->maps.sonde_odd_sums, max_sums) ?:
	       bpf_map__set_max_entries(skeleton->maps.sonde_slots, max_slots) ?:
	       bpf_map__set_max_entries(skeleton->maps.sonde_odd_slots, max_slots);
}

static int load(struct sched_programs *programs, const struct sched_options *options, struct diag *diag)
{
	bool can_make_maps = load_can_make_maps();
	int has_state = has_prev_state(), err;

	if (has_state < 0)
		return diag_errno(diag, EOPNOTSUPP, "this kernel does not say which arguments its event sched_switch has");
	programs->skeleton = sched_bpf__open();
	if (!programs->skeleton)
		return diag_errno(diag, errno, "cannot open our BPF object: %s", strerror(errno));
	err = set_sizes(programs, options, has_state);
	if (err)
		return diag_errno(diag, -err, "cannot size the BPF maps: %s", strerror(-err));
	err = sched_bpf__load(programs->skeleton);
	if (err)
		return load_failed(err, can_make_maps, OLDEST_KERNEL, diag);
	err =
	    sampler_add_trigger(programs->sampler, programs->skeleton->obj,
				&(struct trigger){ .kind = TRIGGER_TP_BTF, .name = "sched_switch" },
				programs->skeleton->progs.sonde_switched);
	return err ? diag_errno(diag, -err, "cannot set up the programs of the interpreters: %s", strerror(-err)) : 0;
}

static int load_waking(struct sched_programs *programs, struct diag *diag)
{
	const struct trigger waking = { .kind = TRIGGER_TP_BTF, .name = "sched_waking" };
	const struct sonde_config *config = (const struct sonde_config *)&programs->skeleton->rodata->cfg;
	bool can_make_maps = load_can_make_maps();
	int err;

	if (!config->wake && !config->events)
		return 0;
	programs->waking = waking_bpf__open();
	if (!programs->waking)
		return diag_errno(diag, errno, "cannot open our BPF object: %s", strerror(errno));
	memcpy((void *)&programs->waking->rodata->cfg, config, sizeof(*config));
	bpf_program__set_autoattach(programs->waking->progs.sonde_woken, false); /* sonde_waking tail-calls it */
	err = share_maps(programs->waking->obj, sampler_object(programs->sampler), SHARE_NO_MORE) ?:
		share_maps(programs->waking->obj, programs->skeleton->obj, SHARE_NO_MORE) ?: waking_bpf__load(programs->waking) ?:
		sampler_add_trigger(programs->sampler, programs->waking->obj, &waking, programs->waking->progs.sonde_woken);
	return err ? load_failed(err, can_make_maps, OLDEST_KERNEL, diag) : 0;
}

static void sched_programs_freep(struct sched_programs **programs)
{
	sched_programs_free(*programs);
}

int sched_programs_new(struct sampler *sampler, const struct sched_options *options, struct diag *diag,
		       struct sched_programs **ret_programs)
{
	CLEANUP(sched_programs_freep) struct sched_programs *programs = calloc(1, sizeof(*programs));
	HOLD_SIGNALS();
	int err;

	if (!programs)
		return -ENOMEM;
	programs->stats_fd = -1;
	err = cpus_nr_possible(diag, &programs->nr_possible_cpus);
	if (err)
		return err;
	programs->sampler = sampler;
	programs->max_sums = options->max_sums;
	err = load(programs, options, diag) ?: load_waking(programs, diag);
	if (!err && options->tells_cost)
		err = object_cost_begin(diag, &programs->stats_fd);
	if (err)
		return err;
	*ret_programs = MOVE(programs);
	return 0;
}

void sched_programs_free(struct sched_programs *programs)
{
	if (!programs)
		return;
	waking_bpf__destroy(programs->waking);
	sched_bpf__destroy(programs->skeleton);
	closep(&programs->stats_fd);
	free(programs);
}

int sched_programs_start(struct sched_programs *programs, struct diag *diag, uint64_t *ret_start_ns)
{
	int err = sched_bpf__attach(programs->skeleton);

	if (!err && programs->waking)
		err = waking_bpf__attach(programs->waking);
	if (err)
		return diag_errno(diag, -err, "cannot follow the scheduler: %s", strerror(-err));
	err = map_each_thread(programs->skeleton->progs.sonde_list, 0, NULL, NULL, diag);
	if (err)
		return err;
	*ret_start_ns = programs->skeleton->data->limits.start_ns = clock_ns();
	return 0;
}

static int take_piece(void *arg, const void *piece)
{
	const struct sched_sink *sink = arg;

	return sink->piece(sink->arg, piece);
}

static int cut(struct sched_programs *programs, const struct sched_sink *sink, struct diag *diag)
{
	return map_each_thread(programs->skeleton->progs.sonde_cut, sizeof(struct sonde_wait_piece), take_piece, (void *)sink, diag);
}

bool sched_programs_set_border(struct sched_programs *programs, uint64_t *border_ns)
{
	*border_ns &= ~UINT64_C(0xff);
	if (programs->border_ns <= programs->cut_ns)
		programs->window++;
	programs->border_ns = *border_ns;
	programs->skeleton->data->limits.window_ns = *border_ns | (programs->window & 0xff);
	return clock_ns() < *border_ns;
}

int sched_programs_cut(struct sched_programs *programs, const struct sched_sink *sink, struct diag *diag)
{
	int err;

	programs->cut_ns = programs->border_ns;
	map_settle();
	err = cut(programs, sink, diag);
	return err ? err : sched_programs_take(programs, sink);
}

uint8_t sched_programs_window(const struct sched_programs *programs)
{
	return (uint8_t)programs->window;
}

int sched_programs_stop(struct sched_programs *programs, const struct sched_sink *sink, struct diag *diag, uint64_t *ret_end_ns)
{
	int err;

	*ret_end_ns = programs->skeleton->data->limits.end_ns = clock_ns();
	if (programs->waking)
		waking_bpf__detach(programs->waking);
	sched_bpf__detach(programs->skeleton);
	map_settle();
	err = cut(programs, sink, diag);
	return err ? err : sched_programs_take(programs, sink);
}

static int take_sum(void *arg, const void *key, const void *value)
{
	const struct sched_sink *sink = arg;

	return sink->sum(sink->arg, key, value);
}

static int take_slot(void *arg, const void *key, const void *value)
{
	const struct sched_sink *sink = arg;
	uint64_t nr;

	memcpy(&nr, value, sizeof(nr));
	return sink->slot(sink->arg, key, nr);
}

int sched_programs_take(struct sched_programs *programs, const struct sched_sink *sink)
{
	const struct sched_bpf *skeleton = programs->skeleton;
	bool was_odd = programs->skeleton->data->limits.turn++ & 1;
	int sums_fd = bpf_map__fd(was_odd ? skeleton->maps.sonde_odd_sums : skeleton->maps.sonde_sums);
	int slots_fd = bpf_map__fd(was_odd ? skeleton->maps.sonde_odd_slots : skeleton->maps.sonde_slots);
	struct sonde_wait_counters counters;
	int err;

	map_settle(); /* afterwards nobody adds to these maps */
	sched_programs_counters(programs, &counters);
	programs->taken_sums = counters.new_sums;
	programs->taken_slots = counters.new_slots;
	err = map_take(sums_fd, sizeof(struct sonde_wait_key), sizeof(struct sonde_wait_sum), take_sum, (void *)sink);
	return err ? err : map_take(slots_fd, sizeof(struct sonde_wait_slot), sizeof(uint64_t), take_slot, (void *)sink);
}

bool sched_programs_fill_up(const struct sched_programs *programs)
{
	struct sonde_wait_counters counters;

	sched_programs_counters(programs, &counters);
	return counters.new_sums - programs->taken_sums > programs->max_sums / FILLED_PART ||
	       counters.new_slots - programs->taken_slots > programs->max_sums / FILLED_PART;
}

void sched_programs_counters(const struct sched_programs *programs, struct sonde_wait_counters *ret_counters)
{
	struct sonde_wait_counters of_iterators;
	const uint64_t *more = (const uint64_t *)&of_iterators;
	uint64_t *words = (uint64_t *)ret_counters;
	int fd = bpf_map__fd(programs->skeleton->maps.sonde_wait_stat);

	map_sum_cpus(fd, 0, programs->nr_possible_cpus, words, sizeof(*ret_counters) / sizeof(*words));
	map_sum_cpus(fd, 1, programs->nr_possible_cpus, (uint64_t *)&of_iterators, sizeof(of_iterators) / sizeof(*more));
	for (size_t i = 0; i < sizeof(of_iterators) / sizeof(*more); i++)
		words[i] += more[i];
}

uint64_t sched_programs_cost_ns(const struct sched_programs *programs)
{
	if (programs->stats_fd < 0)
		return 0;
	return object_cost_ns(programs->skeleton->obj) + (programs->waking ? object_cost_ns(programs->waking->obj) : 0);
}

int sched_programs_set_min(struct sched_programs *programs, uint64_t min_off_ns)
{
	programs->skeleton->data->limits.min_off_ns = min_off_ns;
	programs->skeleton->data->limits.is_thrifty = 1;
	return 0;
}

uint64_t sched_programs_map_bytes(const struct sched_programs *programs)
{
	/* all but a few bytes of the maps for wakers are shared */
	return object_map_bytes(programs->skeleton->obj, sampler_object(programs->sampler));
}
