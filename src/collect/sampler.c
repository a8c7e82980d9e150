// SPDX-License-Identifier: Apache-2.0
#include "collect/sampler.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "abi/event.h"
#include "abi/record.h"
#include "abi/runq.h"
#include "abi/wait.h"
#include "base/clock.h"
#include "base/constant_pages.h"
#include "base/cpus.h"
#include "base/hold_signals.h"
#include "collect/load_failure.h"
#include "collect/map_read.h"
#include "collect/object_cost.h"
#include "collect/record.h"
#include "collect/runtime_programs.h"
#include "collect/target_map.h"
#include "collect/trigger.h"
#include "profile.skel.h"

#define RING_BYTES_PER_CPU (1u << 20) /* holds the deferred stacks of a tenth of a second, while a large file's table is built */
#define RING_BYTES_MIN (4u << 20)
#define RING_BYTES_PER_TICK (16u << 10)     /* most deferred stacks are shorter: a second of each CPU's ticks */
#define RING_BYTES_MIN_SLOW  (1u << 20)
#define RING_BYTES_MAX (64u << 20)

struct sampler {
	struct profile_bpf *skeleton;
	struct ring_buffer *ring;
	struct runtime_programs *runtimes;
	struct cpu_events events;
	uint32_t nr_possible_cpus;
	bool retries;                /* the kernel has bpf_task_work */
	sampler_record_fn record_fn; /* valid during sampler_read */
	void *record_arg;
	uint64_t nr_left;            /* records that this call may still take */
	uint64_t window;             /* its number */
	uint64_t max_payloads, nr_payloads; /* room in the kernel's table of payloads sent; those received since it was cleared */
};

/* The ring's pages are mapped twice (libbpf), and count as ours twice. So where nothing but ticks comes, at a low rate, it is smaller. */
static uint32_t ring_bytes(const struct sampler_options *options, uint32_t nr_cpus)
{
	uint64_t per_second = options->freq_hz * RING_BYTES_PER_TICK;
	bool is_slow = !options->no_ticks && !options->config.more_levels && per_second && per_second < RING_BYTES_PER_CPU;
	uint32_t bytes = is_slow ? RING_BYTES_MIN_SLOW : RING_BYTES_MIN, per_cpu = is_slow ? (uint32_t)per_second : RING_BYTES_PER_CPU;

	while (bytes < nr_cpus * per_cpu && bytes < RING_BYTES_MAX)
		bytes *= 2;
	return bytes;
}

/* Before Linux 6.1 a perf event's program may not use a hash map that allocates on update. */
static bool may_use_allocating_map(void)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_NO_PREALLOC);
	CLEANUP(closep) int map_fd = bpf_map_create(BPF_MAP_TYPE_HASH, "sonde_try", sizeof(uint32_t), sizeof(uint32_t), 1, &options);
	const struct bpf_insn insns[] = {
		{ .code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = BPF_REG_1, .src_reg = BPF_PSEUDO_MAP_FD, .imm = map_fd },
		{ .code = 0 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	CLEANUP(closep) int program_fd = -1;

	if (map_fd >= 0)
		program_fd = bpf_prog_load(BPF_PROG_TYPE_PERF_EVENT, "sonde_probe", "Dual BSD/GPL", insns, ARRAY_SIZE(insns), NULL);
	return program_fd >= 0;
}

static int preallocate(struct profile_bpf *skeleton)
{
	return bpf_map__set_map_flags(skeleton->maps.sonde_processes, 0) ?: bpf_map__set_map_flags(skeleton->maps.sonde_targets, 0);
}

static int set_sizes(struct profile_bpf *skeleton, const struct sampler_options *options, uint32_t nr_possible_cpus)
{
	uint32_t bytes = ring_bytes(options, nr_possible_cpus);

	memcpy((void *)&skeleton->rodata->cfg, &options->config, sizeof(options->config));
	if (getrandom((void *)&skeleton->rodata->cfg.hash_seed, sizeof(skeleton->rodata->cfg.hash_seed), 0) !=
	    sizeof(skeleton->rodata->cfg.hash_seed))
		return -errno;
	skeleton->rodata->cfg.version = SONDE_ABI_VERSION;
	skeleton->rodata->cfg.ring_wake_bytes = bytes / 2;
	bpf_program__set_autoload(skeleton->progs.sonde_exit, options->config.command_tgid);
	bpf_program__set_autoload(skeleton->progs.sonde_sample, !options->no_ticks);
	bpf_program__set_autoattach(skeleton->progs.sonde_sample, false); /* sonde_tick tail-calls it */
	bpf_program__set_autoattach(skeleton->progs.sonde_tick, false); /* attached to the events when they are opened */
	bpf_program__set_autoattach(skeleton->progs.sonde_retry, false);
	return (may_use_allocating_map() ? 0 : preallocate(skeleton)) ?:
	       bpf_map__set_max_entries(skeleton->maps.sonde_ring, bytes) ?:
	       bpf_map__set_max_entries(skeleton->maps.sonde_rules, SAMPLER_MAX_RULES) ?:
	       bpf_map__set_max_entries(skeleton->maps.sonde_stacks, (uint32_t)options->stack_storage) ?:
	       bpf_map__set_max_entries(skeleton->maps.sonde_scratch, nr_possible_cpus * (1u + options->config.more_levels));
}

const struct sonde_config *sampler_config(const struct sampler *sampler)
{
	return (const struct sonde_config *)&sampler->skeleton->rodata->cfg;
}

const struct bpf_object *sampler_object(const struct sampler *sampler)
{
	return sampler->skeleton->obj;
}

int sampler_add_trigger(struct sampler *sampler, const struct bpf_object *object, const struct trigger *trigger,
			const struct bpf_program *last)
{
	return runtime_programs_add(sampler->runtimes, object, trigger, last);
}

/* libbpf reads on until the ring is empty or this returns a negative value. The record is consumed either way. */
static int on_record(void *arg, void *record, size_t size)
{
	struct sampler *sampler = arg;
	int err = record_is_whole(record, size) ? sampler->record_fn(sampler->record_arg, record) : -EBADMSG;

	sampler->nr_payloads += !err && record_is_payload(record);
	return err ? err : --sampler->nr_left ? 0 : -ECANCELED;
}

/* Returns the tick program that this kernel can load. */
static struct bpf_program *tick_program(const struct sampler *sampler)
{
	return sampler->retries ? sampler->skeleton->progs.sonde_retry : sampler->skeleton->progs.sonde_tick;
}

static int load_programs(struct sampler *sampler, const struct sampler_options *options, struct diag *diag)
{
	bool can_make_maps = load_can_make_maps();
	size_t size = 0;
	const void *bytes = profile_bpf__elf_bytes(&size);
	int err;

	sampler->skeleton = profile_bpf__open();
	if (!sampler->skeleton)
		return diag_errno(diag, errno, "cannot open our BPF object: %s", strerror(errno));
	err = set_sizes(sampler->skeleton, options, sampler->nr_possible_cpus);
	if (err)
		return diag_errno(diag, -err, "cannot size the BPF maps: %s", strerror(-err));
	bpf_program__set_autoload(sampler->skeleton->progs.sonde_tick, !options->no_ticks && !sampler->retries);
	bpf_program__set_autoload(sampler->skeleton->progs.sonde_retry, !options->no_ticks && sampler->retries);
	bpf_map__set_autocreate(sampler->skeleton->maps.sonde_retries, sampler->retries);
	err = profile_bpf__load(sampler->skeleton);
	constant_pages_drop(bytes, size);
	return err ? load_failed(err, can_make_maps, "5.10", diag) : 0;
}

static int load(struct sampler *sampler, const struct sampler_options *options, struct diag *diag)
{
	HOLD_SIGNALS();
	struct diag why = { 0 };
	int err = load_check_descriptors(diag);

	if (err)
		return err;
	sampler->retries = !options->no_ticks;
	err = load_programs(sampler, options, &why);
	if (err == -EOPNOTSUPP && sampler->retries) { /* before Linux 6.18 */
		profile_bpf__destroy(sampler->skeleton);
		sampler->retries = false;
		err = load_programs(sampler, options, diag);
	} else if (err && diag) {
		*diag = why;
	}
	if (err)
		return err;
	err = profile_bpf__attach(sampler->skeleton);
	if (err)
		return diag_errno(diag, EOPNOTSUPP, "cannot follow the processes: %s", strerror(-err));
	sampler->ring = ring_buffer__new(bpf_map__fd(sampler->skeleton->maps.sonde_ring), on_record, sampler, NULL);
	if (!sampler->ring)
		return diag_errno(diag, errno, "cannot map the ring buffer: %s", strerror(errno));
	sampler->runtimes = runtime_programs_new(sampler_config(sampler));
	if (!sampler->runtimes)
		return -ENOMEM;
	err = options->no_ticks ? 0
				: runtime_programs_add(sampler->runtimes, sampler->skeleton->obj,
						       &(struct trigger){ .kind = TRIGGER_PERF_EVENT },
						       sampler->skeleton->progs.sonde_sample);
	return err ? err : target_map_fill(sampler->skeleton->maps.sonde_targets, options->targets, options->nr_targets, diag);
}

static void sampler_freep(struct sampler **sampler)
{
	sampler_free(*sampler);
}

int sampler_new(const struct sampler_options *options, struct diag *diag, struct sampler **ret_sampler)
{
	CLEANUP(sampler_freep) struct sampler *sampler = calloc(1, sizeof(*sampler));
	int err;

	if (!sampler)
		return -ENOMEM;
	err = cpus_nr_possible(diag, &sampler->nr_possible_cpus);
	if (err)
		return err;
	sampler->max_payloads = options->stack_storage;
	libbpf_set_print(NULL); /* its warnings are reported in diag */
	err = load(sampler, options, diag);
	if (err)
		return err;
	*ret_sampler = MOVE(sampler);
	return 0;
}

void sampler_free(struct sampler *sampler)
{
	if (!sampler)
		return;
	cpu_events_close(&sampler->events);
	ring_buffer__free(sampler->ring);
	runtime_programs_free(sampler->runtimes);
	profile_bpf__destroy(sampler->skeleton);
	free(sampler);
}

int sampler_open_events(struct sampler *sampler, const struct sampler_options *options, struct diag *diag)
{
	const struct event *event = options->event;
	struct cpu_events_options events = {
		.attr = { .size = sizeof(events.attr),
			  .type = event->type,
			  .config = event->config,
			  .exclude_user = event->exclude_user,
			  .exclude_kernel = event->exclude_kernel },
		.name = event->name,
		.cpu = options->cpu,
		.program_fd = bpf_program__fd(tick_program(sampler)),
		.period = options->period,
		.is_clock = event->is_clock,
	};

	events.attr.freq = options->freq_hz != 0;
	if (events.attr.freq)
		events.attr.sample_freq = options->freq_hz;
	else
		events.attr.sample_period = options->period;
	if (event->is_clock && options->freq_hz) /* the kernel's clocks turn a rate into a fixed period */
		events.period = NS_PER_S / options->freq_hz;
	if (event->is_clock && (event->exclude_user || event->exclude_kernel)) /* the count goes on where the clock does not tick */
		events.period = 0;
	return cpu_events_open(&events, diag, &sampler->events);
}

int sampler_start(struct sampler *sampler, struct diag *diag)
{
	return cpu_events_enable(&sampler->events, diag);
}

void sampler_stop(struct sampler *sampler)
{
	cpu_events_disable(&sampler->events);
}

int sampler_read(struct sampler *sampler, uint64_t max_records, sampler_record_fn fn, void *arg)
{
	int nr;

	sampler->nr_left = max_records;
	sampler->record_fn = fn;
	sampler->record_arg = arg;
	nr = ring_buffer__consume(sampler->ring);
	return nr < 0 && nr != -ECANCELED ? nr : 0;
}

void sampler_settle(struct sampler *sampler, uint64_t hash)
{
	const uint64_t key = sonde_sent_key(hash, sampler->window);
	const uint8_t settled = SONDE_STACK_SETTLED;

	sampler->nr_payloads++;
	/* if there is no room, it is sent as a deferred stack again */
	bpf_map_update_elem(bpf_map__fd(sampler->skeleton->maps.sonde_stacks), &key, &settled, BPF_ANY);
}

int sampler_next_window(struct sampler *sampler)
{
	const uint32_t zero = 0;
	int err;

	sampler->window++;
	err = bpf_map_update_elem(bpf_map__fd(sampler->skeleton->maps.sonde_window), &zero, &sampler->window, BPF_ANY);
	return err ? err : sampler_renew_payloads(sampler);
}

static int forget(void *arg, const void *key, const void *value)
{
	return 0;
}

int sampler_renew_payloads(struct sampler *sampler)
{
	if (sampler->nr_payloads < sampler->max_payloads / 2)
		return 0;
	sampler->nr_payloads = 0;
	return map_take(bpf_map__fd(sampler->skeleton->maps.sonde_stacks), sizeof(uint64_t), sizeof(uint8_t), forget, NULL);
}

int sampler_wake_fd(const struct sampler *sampler)
{
	return ring_buffer__epoll_fd(sampler->ring);
}

struct sampler_fds sampler_fds(const struct sampler *sampler)
{
	return (struct sampler_fds){
		.chunks = bpf_map__fd(sampler->skeleton->maps.sonde_chunks),
		.rules = bpf_map__fd(sampler->skeleton->maps.sonde_rules),
		.processes = bpf_map__fd(sampler->skeleton->maps.sonde_processes),
		.table_generation = bpf_map__fd(sampler->skeleton->maps.sonde_table_gen),
	};
}

uint32_t sampler_nr_cpus(const struct sampler *sampler)
{
	return sampler->events.nr_most;
}

void sampler_counters(const struct sampler *sampler, struct sonde_counters *ret_counters)
{
	map_sum_cpus(bpf_map__fd(sampler->skeleton->maps.sonde_counters), 0, sampler->nr_possible_cpus, (uint64_t *)ret_counters,
		     sizeof(*ret_counters) / sizeof(uint64_t));
}

int sampler_set_rate(struct sampler *sampler, uint64_t freq_hz)
{
	return cpu_events_set_rate(&sampler->events, freq_hz);
}

struct cpu_events_total sampler_events(const struct sampler *sampler)
{
	return cpu_events_total(&sampler->events);
}

int sampler_follow_cpus(struct sampler *sampler, const struct cpus *online, struct diag *diag)
{
	return cpu_events_follow(&sampler->events, online, diag);
}

void sampler_load_runtime(struct sampler *sampler, enum sonde_runtime kind)
{
	runtime_programs_load(sampler->runtimes, kind);
}

int sampler_set_runtime(struct sampler *sampler, enum sonde_runtime kind, uint32_t tgid, const void *process, struct diag *diag)
{
	return runtime_programs_set(sampler->runtimes, kind, tgid, process, diag);
}

void sampler_unset_runtime(struct sampler *sampler, enum sonde_runtime kind, uint32_t tgid)
{
	runtime_programs_unset(sampler->runtimes, kind, tgid);
}

int sampler_get_rows(const struct sampler *sampler, enum sonde_runtime kind, const void *key, void *ret_rows)
{
	return runtime_programs_get_rows(sampler->runtimes, kind, key, ret_rows);
}

void sampler_set_rows(struct sampler *sampler, enum sonde_runtime kind, const void *key, const void *rows)
{
	runtime_programs_set_rows(sampler->runtimes, kind, key, rows);
}

uint64_t sampler_map_bytes(const struct sampler *sampler)
{
	uint64_t bytes = object_map_bytes(sampler->skeleton->obj, NULL);

	for (int kind = 0; kind < SONDE_RUNTIME_COUNT; kind++) {
		const int fds[] = { runtime_programs_fd(sampler->runtimes, kind), runtime_programs_rows_fd(sampler->runtimes, kind) };

		for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
			bytes += fds[i] < 0 ? 0 : map_bytes(fds[i]);
	}
	return bytes;
}
