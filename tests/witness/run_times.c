// SPDX-License-Identifier: Apache-2.0
/* run_times: times each single run of a process's BPF programs. Prints "ready"; that process must not start earlier. Reads a line with
 * its pid once its programs are attached, prints "watching", and watches until its input ends. Then prints a JSON object for each kind
 * of run seen: by the clock, and without the time that the host stole meanwhile, in steps of RUN_TIMES_STEP_NS. */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "run_times.h"
#include "run_times.skel.h"

static const char *const kind_names[RUN_KINDS] = { "tick", "switch", "waking" };

static void run_times_freep(struct run_times_bpf **skeleton)
{
	run_times_bpf__destroy(*skeleton);
}

/* The offset of a per-CPU variable from the start of the per-CPU area; -1: there is none. */
static int64_t per_cpu_off(const struct btf *btf, const char *name)
{
	const struct btf_type *section = btf__type_by_id(btf, (uint32_t)btf__find_by_name_kind(btf, ".data..percpu", BTF_KIND_DATASEC));
	const struct btf_var_secinfo *var = section ? btf_var_secinfos(section) : NULL;

	for (int i = 0; section && i < btf_vlen(section); i++) {
		if (!strcmp(btf__name_by_offset(btf, btf__type_by_id(btf, var[i].type)->name_off), name))
			return var[i].offset;
	}
	return -1;
}

/* The distance from a CPU's run queue to its record of stolen time; 0: unknown. */
static int64_t find_steal(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	int64_t from = btf ? per_cpu_off(btf, "runqueues") : -1, to = btf ? per_cpu_off(btf, "steal_time") : -1;

	btf__free(btf);
	return from >= 0 && to >= 0 ? to - from : 0;
}

static int attach(struct bpf_program *program, struct bpf_link **ret_link)
{
	*ret_link = bpf_program__attach(program);
	return *ret_link ? 0 : -1;
}

static int begin(struct run_times_bpf *skeleton)
{
	skeleton->rodata->steal_off = find_steal();
	return run_times_bpf__load(skeleton) || attach(skeleton->progs.switch_begins, &skeleton->links.switch_begins) ||
	       attach(skeleton->progs.waking_begins, &skeleton->links.waking_begins);
}

/* Attaches behind the programs of that process. */
static int watch(struct run_times_bpf *skeleton, uint32_t tgid)
{
	uint32_t zero = 0;

	return bpf_map_update_elem(bpf_map__fd(skeleton->maps.watched), &zero, &tgid, BPF_ANY) || run_times_bpf__attach(skeleton);
}

static void add(struct run_times *sum, const struct run_times *one)
{
	sum->runs += one->runs;
	for (int i = 0; i < RUN_TIMES_STEPS; i++) {
		sum->by_clock[i] += one->by_clock[i];
		sum->own[i] += one->own[i];
	}
	if (one->longest_ns > sum->longest_ns)
		sum->longest_ns = one->longest_ns;
	if (one->longest_own_ns > sum->longest_own_ns) {
		sum->longest_own_ns = one->longest_own_ns;
		sum->tgid = one->tgid;
	}
}

static void print_steps(const char *what, const __u64 *steps)
{
	printf(", \"%s\": [", what);
	for (int i = 0; i < RUN_TIMES_STEPS; i++)
		printf("%s%llu", i ? ", " : "", steps[i]);
	printf("]");
}

static int print(const struct run_times_bpf *skeleton, uint32_t kind)
{
	int nr_cpus = libbpf_num_possible_cpus();
	CLEANUP(freep) struct run_times *times = calloc((size_t)nr_cpus, sizeof(*times));
	struct run_times sum = {};

	if (!times || bpf_map_lookup_elem(bpf_map__fd(skeleton->maps.run_times), &kind, times))
		return -1;
	for (int cpu = 0; cpu < nr_cpus; cpu++)
		add(&sum, &times[cpu]);
	if (!sum.runs)
		return 0;
	printf("{\"kind\": \"%s\", \"runs\": %llu, \"longest_ns\": %llu, \"longest_own_ns\": %llu, \"tgid\": %llu", kind_names[kind],
	       sum.runs, sum.longest_ns, sum.longest_own_ns, sum.tgid);
	print_steps("by_clock", sum.by_clock);
	print_steps("own", sum.own);
	printf("}\n");
	return 0;
}

int main(void)
{
	CLEANUP(run_times_freep) struct run_times_bpf *skeleton = run_times_bpf__open();
	char line[32];
	int err;

	if (!skeleton || begin(skeleton))
		return 1;
	printf("ready\n");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin) || watch(skeleton, (uint32_t)strtoul(line, NULL, 10)))
		return 1;
	printf("watching\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin))
		;
	err = 0;
	for (uint32_t kind = 0; kind < RUN_KINDS; kind++)
		err |= print(skeleton, kind);
	return err ? 1 : 0;
}
