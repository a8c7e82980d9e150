// SPDX-License-Identifier: Apache-2.0
#include "programs/alloc_programs.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "alloc.skel.h"
#include "base/cpus.h"
#include "base/hold_signals.h"
#include "collect/load_failure.h"
#include "collect/map_read.h"
#include "collect/object_cost.h"
#include "collect/share_maps.h"
#include "collect/trigger.h"

#define MAX_PROBES 64 /* of one file */
#define HITS_BYTES (SONDE_ALLOC_HITS * sizeof(struct sonde_alloc_hit))
#define MAX_SUMS 65536 /* stacks; 0.8 KiB each, when they come */

struct attached {
	int fd;                /* -1: `link` */
	struct bpf_link *link;
};

/* With config.windows: a file whose functions are probed while armed. */
struct armable {
	int fd;                        /* of the file: its path may not last */
	uint32_t tgid, nr;
	struct alloc_probe probes[MAX_PROBES];
};

struct alloc_programs {
	struct sampler *sampler;
	struct alloc_bpf *skeleton;
	enum uprobe_way way;
	bool has_windows;
	struct attached *attached;
	uint32_t nr_attached, nr_possible_cpus;
	pthread_mutex_t lock;          /* of what follows, and with has_windows of `attached` */
	struct armable **armables;
	uint32_t nr_armables;
	struct attached own[2];        /* probes at our own function: of its entry and return */
	struct sonde_alloc_gate *gate; /* of the kernel's maps */
	const struct sonde_alloc_hit *hits;
};

/* --- loading -------------------------------------------------------------------------------------------------------------------------- */

static enum trigger_kind trigger_of(enum uprobe_way way)
{
	return way == UPROBE_SESSION ? TRIGGER_UPROBE_SESSION : way == UPROBE_MULTI ? TRIGGER_UPROBE_MULTI : TRIGGER_UPROBE;
}

static int set_programs(struct alloc_bpf *skeleton, enum uprobe_way way, struct diag *diag)
{
	const struct trigger trigger = { .kind = trigger_of(way) };
	bool is_session = way == UPROBE_SESSION;

	bpf_program__set_autoload(skeleton->progs.sonde_mem_both, is_session);
	bpf_program__set_autoload(skeleton->progs.sonde_mem_entry, !is_session);
	bpf_program__set_autoload(skeleton->progs.sonde_mem_end, !is_session);
	return trigger_set_program(&trigger, skeleton->progs.sonde_mem_count, diag)
		       ?: trigger_set_program(&trigger, skeleton->progs.sonde_mem_both, diag)
		       ?: trigger_set_program(&trigger, skeleton->progs.sonde_mem_entry, diag)
		       ?: trigger_set_program(&trigger, skeleton->progs.sonde_mem_end, diag)
		       ?: trigger_set_program(&trigger, skeleton->progs.sonde_mem_stack, diag);
}

static int set_maps(const struct alloc_programs *programs, const struct alloc_options *options)
{
	struct bpf_map *blocks = programs->skeleton->maps.sonde_mem_block, *sums = programs->skeleton->maps.sonde_mem_sums;
	int err = share_maps(programs->skeleton->obj, sampler_object(programs->sampler), SHARE_NO_MORE)
			  ?: bpf_map__set_max_entries(blocks, options->max_blocks)
			  ?: bpf_map__set_max_entries(sums, options->config.sums ? MAX_SUMS : 1)
			  ?: bpf_map__set_max_entries(programs->skeleton->maps.sonde_mem_hits,
						      options->config.windows ? SONDE_ALLOC_HITS : 1);

	/* allocated one by one where that is safe in a tracing program, which is older than these ways: a program has seldom a million */
	if (!err && programs->way != UPROBE_SINGLE)
		err = bpf_map__set_map_flags(blocks, BPF_F_NO_PREALLOC) ?: bpf_map__set_map_flags(sums, BPF_F_NO_PREALLOC);
	return err;
}

static const struct bpf_program *entry_program(const struct alloc_programs *programs)
{
	return programs->way == UPROBE_SESSION ? programs->skeleton->progs.sonde_mem_both : programs->skeleton->progs.sonde_mem_entry;
}

static int load_as(struct alloc_programs *programs, enum uprobe_way way, const struct alloc_options *options, struct diag *diag)
{
	struct alloc_bpf *skeleton = alloc_bpf__open();
	int err;

	if (!skeleton)
		return -errno;
	programs->skeleton = skeleton;
	programs->way = way;
	memcpy((void *)&skeleton->rodata->cfg, sampler_config(programs->sampler), sizeof(skeleton->rodata->cfg));
	memcpy((void *)&skeleton->rodata->alloc_cfg, &options->config, sizeof(skeleton->rodata->alloc_cfg));
	err = set_programs(skeleton, way, diag) ?: set_maps(programs, options) ?: alloc_bpf__load(skeleton);
	return err ? err : uprobe_way_exists(way, entry_program(programs)) ? 0 : -EOPNOTSUPP;
}

static int load(struct alloc_programs *programs, const struct alloc_options *options, struct diag *diag)
{
	bool can_make_maps = load_can_make_maps();
	int err = -EOPNOTSUPP;

	/* One perf event after the other would be armed, 20 ms each. */
	for (int way = options->first_way; err && way < (options->config.windows ? UPROBE_SINGLE : UPROBE_WAYS); way++) {
		alloc_bpf__destroy(programs->skeleton);
		programs->skeleton = NULL;
		err = load_as(programs, way, options, diag);
		if (err == -EPERM || err == -ENOMEM)
			break;
	}
	if (err)
		return diag && diag->err ? err : load_failed(err, can_make_maps, options->config.windows ? "6.6" : "6.2", diag);
	err = sampler_add_trigger(programs->sampler, programs->skeleton->obj,
				  &(struct trigger){ .kind = trigger_of(programs->way) },
				  programs->skeleton->progs.sonde_mem_stack);
	return err ? diag_errno(diag, -err, "cannot set up the programs of the interpreters: %s", strerror(-err)) : 0;
}

static void let_go(struct attached *attached)
{
	if (attached->fd >= 0)
		close(attached->fd);
	bpf_link__destroy(attached->link);
	*attached = (struct attached){ .fd = -1 };
}

/* Of the maps that user space reads and writes without a call. */
static int map_windows(struct alloc_programs *programs, struct diag *diag)
{
	int gate_fd = bpf_map__fd(programs->skeleton->maps.sonde_mem_gate), hits_fd = bpf_map__fd(programs->skeleton->maps.sonde_mem_hits);
	void *gate = mmap(NULL, sizeof(*programs->gate), PROT_READ | PROT_WRITE, MAP_SHARED, gate_fd, 0);
	void *hits = mmap(NULL, HITS_BYTES, PROT_READ, MAP_SHARED, hits_fd, 0);

	programs->gate = gate == MAP_FAILED ? NULL : gate;
	programs->hits = hits == MAP_FAILED ? NULL : hits;
	return programs->gate && programs->hits ? 0 : diag_errno(diag, errno, "cannot map what the kernel's programs write");
}

static void unmap(const struct alloc_programs *programs)
{
	if (programs->gate)
		munmap(programs->gate, sizeof(*programs->gate));
	if (programs->hits)
		munmap((void *)programs->hits, HITS_BYTES);
}

static void alloc_programs_freep(struct alloc_programs **programs)
{
	alloc_programs_free(*programs);
}

int alloc_programs_new(struct sampler *sampler, const struct alloc_options *options, struct diag *diag,
		       struct alloc_programs **ret_programs)
{
	CLEANUP(alloc_programs_freep) struct alloc_programs *programs = calloc(1, sizeof(*programs));
	HOLD_SIGNALS();
	int err;

	if (!programs)
		return -ENOMEM;
	programs->sampler = sampler;
	programs->has_windows = options->config.windows;
	programs->own[0].fd = programs->own[1].fd = -1;
	pthread_mutex_init(&programs->lock, NULL);
	err = cpus_nr_possible(diag, &programs->nr_possible_cpus) ?: load(programs, options, diag);
	if (!err && programs->has_windows)
		err = map_windows(programs, diag);
	if (err)
		return err;
	*ret_programs = MOVE(programs);
	return 0;
}

void alloc_programs_free(struct alloc_programs *programs)
{
	if (!programs)
		return;
	alloc_programs_detach(programs);
	let_go(&programs->own[0]);
	let_go(&programs->own[1]);
	unmap(programs);
	alloc_bpf__destroy(programs->skeleton);
	for (uint32_t i = 0; i < programs->nr_armables; i++) {
		close(programs->armables[i]->fd);
		free(programs->armables[i]);
	}
	free(programs->armables);
	free(programs->attached);
	pthread_mutex_destroy(&programs->lock);
	free(programs);
}

/* --- attaching ------------------------------------------------------------------------------------------------------------------------ */

static int keep(struct alloc_programs *programs, struct attached attached)
{
	struct attached *all = reallocarray(programs->attached, programs->nr_attached + 1, sizeof(*all));

	if (!all) {
		let_go(&attached);
		return -ENOMEM;
	}
	programs->attached = all;
	all[programs->nr_attached++] = attached;
	return 0;
}

static int attach_single(struct alloc_programs *programs, const struct bpf_program *program, const struct uprobe_points *points)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < points->nr; i++) {
		struct attached attached = { .fd = -1 };

		err = uprobe_link_single(program, points, i, &attached.link);
		if (!err)
			err = keep(programs, attached);
	}
	return err;
}

static int attach(struct alloc_programs *programs, const struct bpf_program *program, const struct uprobe_points *points)
{
	int fd;

	if (!points->nr)
		return 0;
	if (programs->way == UPROBE_SINGLE)
		return attach_single(programs, program, points);
	fd = uprobe_link_multi(programs->way, program, points);
	return fd < 0 ? fd : keep(programs, (struct attached){ .fd = fd });
}

/* Returns first: a call of which the end alone is seen is only counted. */
static int attach_apart(struct alloc_programs *programs, struct uprobe_points *points, const struct alloc_probe *probes, uint32_t nr)
{
	uint64_t offs[MAX_PROBES], cookies[MAX_PROBES];
	uint32_t nr_returns = 0;
	int err;

	for (uint32_t i = 0; i < nr; i++) {
		if (!sonde_alloc_returns(probes[i].call) || (programs->has_windows && probes[i].call == SONDE_ALLOC_NEW))
			continue;
		offs[nr_returns] = probes[i].probe_off;
		cookies[nr_returns++] = probes[i].call;
	}
	err = attach(programs, programs->skeleton->progs.sonde_mem_end,
		     &(struct uprobe_points){ .path = points->path,
					      .tgid = points->tgid,
					      .offs = offs,
					      .cookies = cookies,
					      .nr = nr_returns,
					      .returns = true });
	return err ? err : attach(programs, programs->skeleton->progs.sonde_mem_entry, points);
}

static int attach_file(struct alloc_programs *programs, const char *path, uint32_t tgid, const struct alloc_probe *probes, uint32_t nr)
{
	uint64_t offs[MAX_PROBES], cookies[MAX_PROBES];
	struct uprobe_points points = { .path = path, .tgid = tgid, .offs = offs, .cookies = cookies };

	for (uint32_t i = 0; i < nr && i < MAX_PROBES; i++) {
		offs[points.nr] = probes[i].probe_off;
		cookies[points.nr++] = probes[i].call;
	}
	return programs->way == UPROBE_SESSION ? attach(programs, programs->skeleton->progs.sonde_mem_both, &points)
					       : attach_apart(programs, &points, probes, points.nr);
}

static bool are_same_file(const struct armable *a, const struct armable *b)
{
	struct stat of_a, of_b;

	return !fstat(a->fd, &of_a) && !fstat(b->fd, &of_b) && of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

/* Is it probed in all processes? Then a second probe would see each call twice. */
static bool is_covered(const struct alloc_programs *programs, const struct armable *armable)
{
	for (uint32_t i = 0; i < programs->nr_armables; i++) {
		const struct armable *other = programs->armables[i];

		if (other != armable && other->nr && !other->tgid && are_same_file(other, armable))
			return true;
	}
	return false;
}

/* The functions that return memory: in a window nothing else is probed. */
static int add_armable(struct alloc_programs *programs, const char *path, uint32_t tgid, const struct alloc_probe *probes, uint32_t nr)
{
	struct armable **all = reallocarray(programs->armables, programs->nr_armables + 1, sizeof(*all)), *armable;

	if (!all)
		return -ENOMEM;
	programs->armables = all;
	armable = calloc(1, sizeof(*armable));
	if (!armable)
		return -ENOMEM;
	armable->tgid = tgid;
	for (uint32_t i = 0; i < nr && armable->nr < MAX_PROBES; i++) {
		if (sonde_alloc_returns(probes[i].call))
			armable->probes[armable->nr++] = probes[i];
	}
	armable->fd = open(path, O_PATH | O_CLOEXEC);
	if (armable->fd < 0) {
		int err = -errno;

		free(armable);
		return err;
	}
	all[programs->nr_armables++] = armable;
	return 0;
}

static void detach_from(struct alloc_programs *programs, uint32_t first)
{
	for (uint32_t i = first; i < programs->nr_attached; i++)
		let_go(&programs->attached[i]);
	programs->nr_attached = first;
}

/* Is tried once, so that what the kernel refuses is known at once. */
static int try_file(struct alloc_programs *programs, const char *path, uint32_t tgid, const struct alloc_probe *probes, uint32_t nr)
{
	uint32_t nr_armed; /* a window may be in progress: its probes stay */
	int err;

	pthread_mutex_lock(&programs->lock);
	nr_armed = programs->nr_attached;
	err = attach_file(programs, path, tgid, probes, nr);
	detach_from(programs, nr_armed);
	if (!err)
		err = add_armable(programs, path, tgid, probes, nr);
	pthread_mutex_unlock(&programs->lock);
	return err;
}

int alloc_programs_attach(struct alloc_programs *programs, const char *path, uint32_t tgid, const struct alloc_probe *probes, uint32_t nr,
			  struct diag *diag)
{
	int err = programs->has_windows ? try_file(programs, path, tgid, probes, nr) : attach_file(programs, path, tgid, probes, nr);

	if (err == -EPERM || err == -EACCES)
		return diag_errno(diag, EPERM, "no permission for uprobes: root, or CAP_BPF and CAP_PERFMON, may");
	return err ? diag_errno(diag, -err, "cannot probe the allocator: %s", strerror(-err)) : 0;
}

void alloc_programs_detach(struct alloc_programs *programs)
{
	detach_from(programs, 0);
}

int alloc_programs_count(struct alloc_programs *programs, const char *path, uint32_t tgid, const struct alloc_probe *probes, uint32_t nr)
{
	uint64_t offs[MAX_PROBES], cookies[MAX_PROBES];
	struct uprobe_points points = { .path = path, .tgid = tgid, .offs = offs, .cookies = cookies };

	for (uint32_t i = 0; i < nr && i < MAX_PROBES; i++) {
		offs[points.nr] = probes[i].probe_off;
		cookies[points.nr++] = probes[i].call;
	}
	return attach(programs, programs->skeleton->progs.sonde_mem_count, &points);
}

/* Nothing else is attached while calls are counted. */
void alloc_programs_end_count(struct alloc_programs *programs)
{
	alloc_programs_detach(programs);
}

uint64_t alloc_programs_nr_calls(const struct alloc_programs *programs)
{
	struct sonde_alloc_counters counters;

	alloc_programs_counters(programs, &counters);
	return counters.counted;
}

/* --- windows -------------------------------------------------------------------------------------------------------------------------- */

uint32_t alloc_programs_arm(struct alloc_programs *programs)
{
	pthread_mutex_lock(&programs->lock);
	for (uint32_t i = 0; i < programs->nr_armables; i++) {
		const struct armable *armable = programs->armables[i];
		char path[32];

		snprintf(path, sizeof(path), "/proc/self/fd/%d", armable->fd);
		if (!is_covered(programs, armable) && attach_file(programs, path, armable->tgid, armable->probes, armable->nr))
			continue; /* the process has ended */
	}
	pthread_mutex_unlock(&programs->lock);
	return programs->nr_attached;
}

void alloc_programs_widen(struct alloc_programs *programs, uint32_t tgid)
{
	pthread_mutex_lock(&programs->lock);
	for (uint32_t i = 0; i < programs->nr_armables; i++) {
		struct armable *armable = programs->armables[i];

		if (armable->tgid != tgid)
			continue;
		if (is_covered(programs, armable))
			armable->nr = 0;
		armable->tgid = 0;
	}
	pthread_mutex_unlock(&programs->lock);
}

static void *run_let_go(void *arg)
{
	let_go(arg);
	return NULL;
}

/* Each waits for RCU, some 40 ms, in which the next would still be armed: so all at once. */
void alloc_programs_disarm(struct alloc_programs *programs)
{
	pthread_t threads[MAX_PROBES];
	uint32_t nr = 0;

	pthread_mutex_lock(&programs->lock);
	for (uint32_t i = 1; i < programs->nr_attached && nr < MAX_PROBES; i++) {
		if (!pthread_create(&threads[nr], NULL, run_let_go, &programs->attached[i]))
			nr++;
	}
	if (programs->nr_attached)
		let_go(&programs->attached[0]);
	for (uint32_t i = 0; i < nr; i++)
		pthread_join(threads[i], NULL);
	alloc_programs_detach(programs); /* the rest */
	pthread_mutex_unlock(&programs->lock);
}

void alloc_programs_open_gate(const struct alloc_programs *programs, uint32_t window)
{
	__atomic_store_n(&programs->gate->nr_hits, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&programs->gate->window, window, __ATOMIC_RELEASE);
}

void alloc_programs_close_gate(const struct alloc_programs *programs)
{
	__atomic_store_n(&programs->gate->window, 0, __ATOMIC_RELEASE);
}

const struct sonde_alloc_hit *alloc_programs_hits(const struct alloc_programs *programs, uint32_t *ret_nr, uint32_t *ret_nr_lost)
{
	uint32_t nr = __atomic_load_n(&programs->gate->nr_hits, __ATOMIC_ACQUIRE);

	*ret_nr = nr < SONDE_ALLOC_HITS ? nr : SONDE_ALLOC_HITS;
	*ret_nr_lost = nr - *ret_nr;
	return programs->hits;
}

int alloc_programs_attach_own(struct alloc_programs *programs, const char *path, uint64_t off)
{
	const struct alloc_probe probe = { .entry_off = off, .probe_off = off, .call = SONDE_ALLOC_OWN };
	int err = attach_file(programs, path, (uint32_t)getpid(), &probe, 1);

	for (uint32_t i = 0; i < programs->nr_attached && i < ARRAY_SIZE(programs->own); i++)
		programs->own[i] = programs->attached[i];
	programs->nr_attached = 0;
	return err;
}

/* The field is cleared by a plain update of the whole value: the count that is lost meanwhile, if any, only allows one more. */
bool alloc_programs_take_hold(const struct alloc_programs *programs)
{
	int map_fd = bpf_map__fd(programs->skeleton->maps.sonde_mem_hold);
	struct sonde_alloc_hold hold = { 0 };
	uint32_t zero = 0;

	if (bpf_map_lookup_elem(map_fd, &zero, &hold) || !hold.is_held)
		return false;
	hold.is_held = 0;
	return !bpf_map_update_elem(map_fd, &zero, &hold, BPF_ANY);
}

/* --- reading -------------------------------------------------------------------------------------------------------------------------- */

struct reading {
	alloc_block_fn block;
	alloc_sum_fn sum;
	void *arg;
};

static int pass_block(void *arg, const void *key, const void *value)
{
	const struct reading *reading = arg;

	return reading->block(reading->arg, key, value);
}

static int pass_sum(void *arg, const void *key, const void *value)
{
	const struct reading *reading = arg;

	return reading->sum(reading->arg, key, value);
}

int alloc_programs_read(const struct alloc_programs *programs, alloc_block_fn fn, void *arg)
{
	struct reading reading = { .block = fn, .arg = arg };

	return map_read(bpf_map__fd(programs->skeleton->maps.sonde_mem_block), sizeof(struct sonde_alloc_key),
			sizeof(struct sonde_alloc_block), pass_block, &reading);
}

int alloc_programs_read_sums(const struct alloc_programs *programs, alloc_sum_fn fn, void *arg)
{
	struct reading reading = { .sum = fn, .arg = arg };

	return map_read(bpf_map__fd(programs->skeleton->maps.sonde_mem_sums), sizeof(struct sonde_alloc_sum_key),
			sizeof(struct sonde_alloc_sum), pass_sum, &reading);
}

void alloc_programs_forget(const struct alloc_programs *programs, const struct sonde_alloc_key *key)
{
	if (bpf_map_delete_elem(bpf_map__fd(programs->skeleton->maps.sonde_mem_block), key))
		return; /* it went by itself */
}

uint64_t alloc_programs_start_ns(const struct alloc_programs *programs, uint32_t tgid)
{
	uint64_t start_ns = 0;

	if (bpf_map_lookup_elem(bpf_map__fd(programs->skeleton->maps.sonde_starts), &tgid, &start_ns))
		return 0;
	return start_ns;
}

void alloc_programs_counters(const struct alloc_programs *programs, struct sonde_alloc_counters *ret_counters)
{
	map_sum_cpus(bpf_map__fd(programs->skeleton->maps.sonde_mem_stat), 0, programs->nr_possible_cpus, (uint64_t *)ret_counters,
		     sizeof(*ret_counters) / sizeof(uint64_t));
}

uint64_t alloc_programs_nr_left_out(const struct alloc_programs *programs)
{
	return program_nr_misses(programs->skeleton->progs.sonde_mem_both) + program_nr_misses(programs->skeleton->progs.sonde_mem_entry) +
	       program_nr_misses(programs->skeleton->progs.sonde_mem_end);
}

enum uprobe_way alloc_programs_way(const struct alloc_programs *programs)
{
	return programs->way;
}
