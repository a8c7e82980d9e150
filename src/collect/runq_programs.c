// SPDX-License-Identifier: Apache-2.0
#include "collect/runq_programs.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpus.h"
#include "collect/cpu_events.h"
#include "collect/load_failure.h"
#include "collect/map_read.h"
#include "collect/own_tgid.h"
#include "collect/share_maps.h"
#include "collect/target_map.h"
#include "collect/trigger.h"
#include "runq.skel.h"
#include "runqslower.skel.h"

#define RING_BYTES (1u << 20)
#define WORDS_OF(type) (sizeof(type) / sizeof(uint64_t))

struct runq_programs {
	struct runq_bpf *skeleton;
	struct runqslower_bpf *runqslower;             /* NULL: stacks are not requested */
	enum runq_what what;
	bool each_cpu;
	uint64_t freq_hz;
	uint32_t nr_possible_cpus;
	int keyed_fd;                      /* the map in use; -1: no keys */
	struct sonde_runq_histogram *seen; /* for each CPU and kind of length: the values already taken */
	struct ring_buffer *ring;          /* NULL: no waits are sent */
	struct cpu_events events;
	runq_wait_fn wait_fn;              /* valid during runq_programs_waits */
	void *wait_arg;
};

static int on_wait(void *arg, void *record, size_t size)
{
	struct runq_programs *programs = arg;

	return size == sizeof(struct sonde_runq_record) ? programs->wait_fn(programs->wait_arg, record) : -EBADMSG;
}

/* Loads only the programs that are needed: this kernel may lack what the others use. */
static int choose(struct runq_programs *programs, const struct runq_programs_options *options)
{
	struct runq_bpf *skeleton = programs->skeleton;
	bool waits = options->what == RUNQ_WAITS;

	bpf_program__set_autoload(skeleton->progs.sonde_wait_end, waits);
	bpf_program__set_autoload(skeleton->progs.sonde_wakeup, waits);
	bpf_program__set_autoload(skeleton->progs.sonde_wake_new, waits);
	bpf_program__set_autoload(skeleton->progs.sonde_birth, waits);
	bpf_program__set_autoload(skeleton->progs.sonde_thread, waits);
	bpf_program__set_autoattach(skeleton->progs.sonde_thread, false);
	bpf_program__set_autoload(skeleton->progs.sonde_stay_end, options->what == RUNQ_STAYS);
	bpf_program__set_autoload(skeleton->progs.sonde_length, options->what == RUNQ_LENGTHS);
	bpf_program__set_autoattach(skeleton->progs.sonde_length, false); /* attached to the events when they are opened */
	memcpy((void *)&skeleton->rodata->cfg, &options->config, sizeof(options->config));
	skeleton->rodata->cfg.version = SONDE_ABI_VERSION;
	skeleton->rodata->cfg.ring_wake_bytes = RING_BYTES / 2;
	memcpy((void *)&skeleton->rodata->runq_cfg, &options->runq, sizeof(options->runq));
	skeleton->bss->own_tgid = own_tgid();
	skeleton->rodata->own_since_ns = options->own_since_ns;
	return bpf_map__set_autocreate(skeleton->maps.sonde_threads, waits) ?:
		bpf_map__set_autocreate(skeleton->maps.sonde_slow_wait, options->runq.stacks) ?:
		bpf_map__set_autocreate(skeleton->maps.sonde_slow_prog, options->runq.stacks) ?:
		bpf_map__set_autocreate(skeleton->maps.sonde_waits, !options->runq.stacks) ?:
		bpf_map__set_max_entries(skeleton->maps.sonde_waits, RING_BYTES);
}

static bool has_type(const struct btf *btf, const char *name, const char *member)
{
	int32_t id = btf__find_by_name_kind(btf, name, BTF_KIND_STRUCT);
	const struct btf_type *type = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;

	for (uint32_t i = 0; type && i < btf_vlen(type); i++) {
		if (!strcmp(btf__name_by_offset(btf, btf_members(type)[i].name_off), member))
			return true;
	}
	return false;
}

/* Names the option this kernel was built without; NULL: the cause is something else. */
static const char *what_is_missing(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	const char *missing = NULL;

	if (btf && !has_type(btf, "sched_info", "last_queued"))
		missing = "CONFIG_SCHED_INFO";
	else if (btf && !has_type(btf, "cfs_rq", "rq"))
		missing = "CONFIG_FAIR_GROUP_SCHED";
	btf__free(btf);
	return missing;
}

static int new_keyed(void)
{
	return bpf_map_create(BPF_MAP_TYPE_HASH, "sonde_runq_keys", sizeof(struct sonde_runq_key), sizeof(struct sonde_runq_histogram),
			      SONDE_RUNQ_MAX_KEYS, NULL);
}

/* Installs an empty map as the one to count in. The kernel returns once nobody writes to the old one any more. */
static int use_keyed(struct runq_programs *programs, int fd)
{
	uint32_t zero = 0;

	return bpf_map_update_elem(bpf_map__fd(programs->skeleton->maps.sonde_by_key), &zero, &fd, BPF_ANY);
}

static int load(struct runq_programs *programs, const struct runq_programs_options *options, struct diag *diag)
{
	bool can_make_maps = load_can_make_maps();
	const char *missing;
	int err;

	programs->skeleton = runq_bpf__open();
	if (!programs->skeleton)
		return diag_errno(diag, errno, "cannot open our BPF object: %s", strerror(errno));
	err = choose(programs, options);
	if (err)
		return diag_errno(diag, -err, "cannot size the BPF maps: %s", strerror(-err));
	err = runq_bpf__load(programs->skeleton);
	missing = err ? what_is_missing() : NULL;
	if (missing)
		return diag_errno(diag, EOPNOTSUPP, "this kernel is built without %s, which scheduler accounting needs", missing);
	return err ? load_failed(err, can_make_maps, options->what == RUNQ_WAITS ? "5.12" : "5.10", diag) : 0;
}

/* Loads the programs that take stacks, beside the sampler's. */
static int load_runqslower(struct runq_programs *programs, struct sampler *sampler, struct diag *diag)
{
	const struct trigger trigger = { .kind = TRIGGER_TP_BTF, .name = "sched_switch" };
	uint32_t zero = 0;
	int err, fd;

	programs->runqslower = runqslower_bpf__open();
	if (!programs->runqslower)
		return diag_errno(diag, errno, "cannot open our BPF object: %s", strerror(errno));
	memcpy((void *)&programs->runqslower->rodata->cfg, sampler_config(sampler), sizeof(programs->runqslower->rodata->cfg));
	bpf_program__set_autoattach(programs->runqslower->progs.sonde_slow, false); /* tail-called by the program that counts waits */
	bpf_program__set_autoattach(programs->runqslower->progs.sonde_slow_end, false);
	err = share_maps(programs->runqslower->obj, sampler_object(sampler), SHARE_NO_MORE) ?:
		share_maps(programs->runqslower->obj, programs->skeleton->obj, SHARE_NO_MORE) ?:
		runqslower_bpf__load(programs->runqslower) ?:
		sampler_add_trigger(sampler, programs->runqslower->obj, &trigger, programs->runqslower->progs.sonde_slow_end);
	if (err)
		return diag_errno(diag, EOPNOTSUPP, "this kernel cannot load the programs that take stacks (%s)", strerror(-err));
	fd = bpf_program__fd(programs->runqslower->progs.sonde_slow);
	err = bpf_map_update_elem(bpf_map__fd(programs->skeleton->maps.sonde_slow_prog), &zero, &fd, BPF_ANY);
	return err ? diag_errno(diag, -err, "cannot set up the programs that take stacks: %s", strerror(-err)) : 0;
}

static int set_up(struct runq_programs *programs, const struct runq_programs_options *options, struct diag *diag)
{
	int err = target_map_fill(programs->skeleton->maps.sonde_targets, options->targets, options->nr_targets, diag);

	if (err)
		return err;
	if (options->runq.key) {
		programs->keyed_fd = new_keyed();
		if (programs->keyed_fd < 0 || use_keyed(programs, programs->keyed_fd))
			return diag_errno(diag, errno, "cannot make a map for the histograms: %s", strerror(errno));
	}
	if (options->runq.slower_ns == SONDE_RUNQ_NONE_SLOWER)
		return 0;
	if (options->runq.stacks)
		return load_runqslower(programs, options->sampler, diag);
	programs->ring = ring_buffer__new(bpf_map__fd(programs->skeleton->maps.sonde_waits), on_wait, programs, NULL);
	return programs->ring ? 0 : diag_errno(diag, errno, "cannot map the ring buffer: %s", strerror(errno));
}

static void runq_programs_freep(struct runq_programs **programs)
{
	runq_programs_free(*programs);
}

int runq_programs_new(const struct runq_programs_options *options, struct diag *diag, struct runq_programs **ret_programs)
{
	CLEANUP(runq_programs_freep) struct runq_programs *programs = calloc(1, sizeof(*programs));
	int err;

	if (!programs)
		return -ENOMEM;
	programs->keyed_fd = -1;
	programs->what = options->what;
	programs->each_cpu = options->each_cpu;
	programs->freq_hz = options->freq_hz;
	err = cpus_nr_possible(diag, &programs->nr_possible_cpus);
	if (err)
		return err;
	programs->seen = calloc((size_t)programs->nr_possible_cpus * SONDE_RUNQ_LENGTH_COUNT, sizeof(*programs->seen));
	if (!programs->seen)
		return -ENOMEM;
	libbpf_set_print(NULL); /* its warnings are reported in diag */
	err = load(programs, options, diag) ?: set_up(programs, options, diag);
	if (err)
		return err;
	*ret_programs = MOVE(programs);
	return 0;
}

void runq_programs_free(struct runq_programs *programs)
{
	if (!programs)
		return;
	cpu_events_close(&programs->events);
	ring_buffer__free(programs->ring);
	if (programs->keyed_fd >= 0)
		close(programs->keyed_fd);
	runqslower_bpf__destroy(programs->runqslower);
	runq_bpf__destroy(programs->skeleton);
	free(programs->seen);
	free(programs);
}

/* A clock's ticks on each CPU, idle or not. */
static int start_ticks(struct runq_programs *programs, struct diag *diag)
{
	const struct cpu_events_options events = {
		.attr = { .size = sizeof(events.attr),
			  .type = PERF_TYPE_SOFTWARE,
			  .config = PERF_COUNT_SW_CPU_CLOCK,
			  .freq = 1,
			  .sample_freq = programs->freq_hz },
		.name = "cpu-clock",
		.cpu = CPU_EVENTS_ALL,
		.program_fd = bpf_program__fd(programs->skeleton->progs.sonde_length),
		.period = NS_PER_S / programs->freq_hz,
		.is_clock = true,
	};
	int err = cpu_events_open(&events, diag, &programs->events);

	return err ? err : cpu_events_enable(&programs->events, diag);
}

int runq_programs_start(struct runq_programs *programs, struct diag *diag)
{
	int err;

	if (programs->what == RUNQ_LENGTHS)
		return start_ticks(programs, diag);
	err = runq_bpf__attach(programs->skeleton);
	if (err)
		return diag_errno(diag, -err, "cannot follow the scheduler: %s", strerror(-err));
	return programs->what == RUNQ_WAITS ? map_each_thread(programs->skeleton->progs.sonde_thread, 0, NULL, NULL, diag) : 0;
}

int runq_programs_follow_cpus(struct runq_programs *programs, const struct cpus *online, struct diag *diag)
{
	return cpu_events_follow(&programs->events, online, diag);
}

void runq_programs_stop(struct runq_programs *programs)
{
	cpu_events_close(&programs->events);
	runq_bpf__detach(programs->skeleton);
	map_settle();
}

struct taker {
	runq_part_fn fn;
	void *arg;
};

static int take_key(void *arg, const void *key, const void *value)
{
	const struct taker *taker = arg;
	struct runq_part part = { .histogram = value };

	memcpy(&part.key, key, sizeof(part.key));
	return taker->fn(taker->arg, &part);
}

static int take_keyed(struct runq_programs *programs, const struct taker *taker)
{
	int fresh = new_keyed(), err;

	if (fresh < 0)
		return fresh;
	err = use_keyed(programs, fresh);
	if (err) {
		close(fresh);
		return err;
	}
	err = map_read(programs->keyed_fd, sizeof(struct sonde_runq_key), sizeof(struct sonde_runq_histogram), take_key,
		       (void *)(uintptr_t)taker);
	close(programs->keyed_fd);
	programs->keyed_fd = fresh;
	return err;
}

/* Stores what `now` adds to `seen`, and updates `seen`. Returns false if nothing was added. */
static bool is_news(struct sonde_runq_histogram *seen, const struct sonde_runq_histogram *now, struct sonde_runq_histogram *ret_news)
{
	uint64_t nr = 0;

	for (int i = 0; i < SONDE_RUNQ_SLOTS; i++)
		nr += ret_news->slots[i] = now->slots[i] - seen->slots[i];
	ret_news->sum = now->sum - seen->sum;
	*seen = *now;
	return nr != 0;
}

static void add(struct sonde_runq_histogram *to, const struct sonde_runq_histogram *from)
{
	for (int i = 0; i < SONDE_RUNQ_SLOTS; i++)
		to->slots[i] += from->slots[i];
	to->sum += from->sum;
}

/* Takes one element of the per-CPU array. */
static int take_whole(struct runq_programs *programs, uint32_t which, const struct taker *taker)
{
	CLEANUP(freep) struct sonde_runq_histogram *of_cpus = calloc(programs->nr_possible_cpus, sizeof(*of_cpus));
	struct sonde_runq_histogram all = { 0 };
	bool any = false;
	int err = of_cpus ? bpf_map_lookup_elem(bpf_map__fd(programs->skeleton->maps.sonde_hists), &which, of_cpus) : -ENOMEM;

	for (uint32_t cpu = 0; !err && cpu < programs->nr_possible_cpus; cpu++) {
		struct sonde_runq_histogram news = { 0 };

		if (!is_news(&programs->seen[cpu * SONDE_RUNQ_LENGTH_COUNT + which], &of_cpus[cpu], &news))
			continue;
		any = true;
		add(&all, &news);
		if (programs->each_cpu)
			err = taker->fn(taker->arg, &(struct runq_part){ .cpu = cpu, .length = which, .histogram = &news });
	}
	if (!err && any && !programs->each_cpu)
		err = taker->fn(taker->arg, &(struct runq_part){ .length = which, .histogram = &all });
	return err;
}

int runq_programs_take(struct runq_programs *programs, runq_part_fn fn, void *arg)
{
	const struct taker taker = { fn, arg };
	int err = 0;

	if (programs->keyed_fd >= 0)
		return take_keyed(programs, &taker);
	for (uint32_t which = 0; !err && which < (programs->what == RUNQ_LENGTHS ? SONDE_RUNQ_LENGTH_COUNT : 1); which++)
		err = take_whole(programs, which, &taker);
	return err;
}

int runq_programs_waits(struct runq_programs *programs, runq_wait_fn fn, void *arg)
{
	int nr;

	programs->wait_fn = fn;
	programs->wait_arg = arg;
	nr = programs->ring ? ring_buffer__consume(programs->ring) : 0;
	return nr < 0 ? nr : 0;
}

int runq_programs_wake_fd(const struct runq_programs *programs)
{
	return programs->ring ? ring_buffer__epoll_fd(programs->ring) : -1;
}

void runq_programs_counters(const struct runq_programs *programs, struct sonde_runq_counters *ret_counters)
{
	map_sum_cpus(bpf_map__fd(programs->skeleton->maps.sonde_runq_stat), 0, programs->nr_possible_cpus, (uint64_t *)ret_counters,
		     WORDS_OF(*ret_counters));
}
