// SPDX-License-Identifier: Apache-2.0
/* Tries the library's counters on the running kernel: counters WHAT EVENT [ROUNDS PERIOD]. Prints "name value" lines for a test to
 * judge.
 *   counts     EVENT around a known loop, by a counter and by the one-shot call, and the values after a reset
 *   group      three of EVENT as a group, read at one moment
 *   crowd      thirty of EVENT, more than a PMU can count at once, scaled
 *   overflows  each 100,000th (PERIODth) EVENT of the loop, run ROUNDS times: how many, how many events they represent, how many in the
 *              loop itself
 *   lost       the same with room for some dozen of them: those without room are counted as lost
 *   bpf        the same by a BPF program that counts in a map
 *   probe      calls of a function of this program (77), by the PMU for probes, whose number is EVENT
 *   threads    eight threads with counters of their own, and one counter that all of them share */
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <sonde/counter.h>

#include "checked.h"

#define TURNS 3000000

static long rounds = 1, period = 100000;

/* About ten instructions a turn. Every thousandth turn touches a page. */
__attribute__((noinline)) static int loop(void *arg)
{
	volatile unsigned long turns = 0;

	for (int i = 0; i < TURNS; i++)
		turns += (unsigned long)i;
	return arg ? *(int *)arg : 0;
}

static void run_loop(void)
{
	for (long i = 0; i < rounds; i++)
		loop(NULL);
}

static struct sonde_counters *open_names(const char *names, uint64_t flags)
{
	const struct sonde_counter_options options = { .size = sizeof(options), .names = names, .flags = flags };
	struct sonde_counters *set = NULL;
	int err = sonde_counters_new(&options, &set);

	if (err)
		printf("failed %s\n", set ? sonde_counters_error(set) : strerror(-err));
	if (err)
		exit(1);
	return set;
}

static void run_counts(const char *event)
{
	struct sonde_counters *set = open_names(event, SONDE_COUNTER_SCALE);
	struct sonde_count count;
	int result = 7;

	CHECK(sonde_counters_start(set));
	loop(NULL);
	CHECK(sonde_counters_stop(set));
	CHECK(sonde_counters_read(set, &count, 1));
	printf("value %llu\nenabled %llu\nrunning %llu\n", (unsigned long long)count.value, (unsigned long long)count.enabled_ns,
	       (unsigned long long)count.running_ns);
	CHECK(sonde_counters_reset(set));
	CHECK(sonde_counters_read(set, &count, 1));
	printf("reset %llu\n", (unsigned long long)(count.value + count.enabled_ns + count.running_ns));
	printf("result %d\n", sonde_count_function(event, loop, &result, &count, NULL, 0));
	printf("once %llu\n", (unsigned long long)count.value);
	sonde_counters_free(set);
}

static void run_group(const char *event)
{
	struct sonde_counters *set;
	struct sonde_count counts[3];
	char names[512];

	snprintf(names, sizeof(names), "{%s,%s,%s}", event, event, event);
	set = open_names(names, SONDE_COUNTER_NO_INHERIT);
	CHECK(sonde_counters_start(set));
	loop(NULL);
	CHECK(sonde_counters_read(set, counts, 3)); /* while the counters run */
	for (int i = 0; i < 3; i++)
		printf("value%d %llu\nrunning%d %llu\n", i, (unsigned long long)counts[i].value, i,
		       (unsigned long long)counts[i].running_ns);
	sonde_counters_free(set);
}

static void run_crowd(const char *event)
{
	struct sonde_counters *set;
	struct sonde_count counts[30];
	char names[2048] = "";
	int nr_scaled = 0;

	for (int i = 0; i < 30; i++)
		snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s", i ? "," : "", event);
	set = open_names(names, SONDE_COUNTER_SCALE);
	CHECK(sonde_counters_start(set));
	for (int i = 0; i < 15; i++)
		loop(NULL);
	CHECK(sonde_counters_stop(set));
	CHECK(sonde_counters_read(set, counts, 30));
	for (int i = 0; i < 30; i++) {
		nr_scaled += counts[i].scaled;
		printf("value%d %llu\n", i, (unsigned long long)(counts[i].value / 15));
	}
	printf("scaled %d\n", nr_scaled);
	sonde_counters_free(set);
}

struct seen {
	unsigned long nr, nr_in_loop, events;
};

static void see(void *arg, const struct sonde_overflow *overflow)
{
	struct seen *seen = arg;

	seen->nr++;
	seen->events += overflow->period;
	seen->nr_in_loop += overflow->pc - (uintptr_t)loop < 256 && overflow->tid == (uint32_t)getpid();
}

static struct sonde_counters *open_sampling(const char *event, uint32_t ring_bytes)
{
	struct sonde_event sampled = { .size = sizeof(sampled) };
	struct sonde_counter_options options = { .size = sizeof(options), .events = &sampled, .nr_events = 1, .ring_bytes = ring_bytes };
	struct sonde_counters *set = NULL;

	CHECK(sonde_event_parse(event, &sampled, NULL, 0));
	sampled.period = (uint64_t)period;
	CHECK(sonde_counters_new(&options, &set));
	return set;
}

static void sample_loop(const char *event, uint32_t ring_bytes)
{
	struct sonde_counters *set = open_sampling(event, ring_bytes);
	struct sonde_count count;
	struct seen seen = { 0 };
	uint64_t nr_lost = 0;

	CHECK(sonde_counters_start(set));
	run_loop();
	CHECK(sonde_counters_stop(set));
	printf("wait %d\n", sonde_counters_wait(set, 0));
	CHECK(sonde_counters_overflows(set, see, &seen, &nr_lost));
	CHECK(sonde_counters_read(set, &count, 1));
	printf("value %llu\nnr %lu\nevents %lu\nin_loop %lu\nlost %llu\nagain %d\n", (unsigned long long)count.value, seen.nr, seen.events,
	       seen.nr_in_loop, (unsigned long long)nr_lost, sonde_counters_wait(set, 0));
	sonde_counters_free(set);
}

static void run_overflows(const char *event)
{
	sample_loop(event, 1 << 18);
}

static void run_lost(const char *event)
{
	sample_loop(event, (uint32_t)sysconf(_SC_PAGESIZE));
}

static int bpf(int command, union bpf_attr *attr)
{
	int fd = (int)syscall(SYS_bpf, command, attr, sizeof(*attr));

	if (fd < 0) {
		perror("bpf");
		exit(1);
	}
	return fd;
}

/* Adds 1 to the map's only value. */
static int load_program(int map_fd, uint32_t type)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_ST | BPF_MEM | BPF_W, .dst_reg = BPF_REG_10, .off = -4, .imm = 0 },
		{ .code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = BPF_REG_1, .src_reg = BPF_PSEUDO_MAP_FD, .imm = map_fd },
		{ 0 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_2, .src_reg = BPF_REG_10 },
		{ .code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = BPF_REG_2, .imm = -4 },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_map_lookup_elem },
		{ .code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = BPF_REG_0, .off = 2 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_1, .imm = 1 },
		{ .code = BPF_STX | BPF_ATOMIC | BPF_DW, .dst_reg = BPF_REG_0, .src_reg = BPF_REG_1, .imm = BPF_ADD },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr = {
		.prog_type = type, .insns = (uintptr_t)insns, .insn_cnt = sizeof(insns) / sizeof(*insns), .license = (uintptr_t)"GPL"
	};

	return bpf(BPF_PROG_LOAD, &attr);
}

static void run_bpf(const char *event)
{
	union bpf_attr map = { .map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 8, .max_entries = 1 };
	int map_fd = bpf(BPF_MAP_CREATE, &map), program_fd = load_program(map_fd, BPF_PROG_TYPE_PERF_EVENT);
	struct sonde_counters *set = open_sampling(event, 0);
	struct sonde_count count;
	uint64_t value = 0;
	uint32_t key = 0;
	union bpf_attr lookup = { .map_fd = (uint32_t)map_fd, .key = (uintptr_t)&key, .value = (uintptr_t)&value };

	CHECK(sonde_counters_attach_bpf(set, 0, program_fd));
	CHECK(sonde_counters_start(set));
	run_loop();
	CHECK(sonde_counters_stop(set));
	CHECK(sonde_counters_read(set, &count, 1));
	bpf(BPF_MAP_LOOKUP_ELEM, &lookup);
	printf("value %llu\nnr %llu\n", (unsigned long long)count.value, (unsigned long long)value);
	sonde_counters_free(set);
}

__attribute__((noinline)) static void probed(void)
{
	__asm__ volatile("" ::: "memory");
}

/* The function's offset in the program file. */
static uint64_t offset_of(uint64_t pc)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long long from, to, off, found = 0;
	char line[512];

	while (maps && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%llx-%llx %*s %llx", &from, &to, &off) == 3 && pc >= from && pc < to)
			found = pc - from + off;
	}
	if (maps)
		fclose(maps);
	return found;
}

static void run_probe(const char *event)
{
	char path[512] = "";
	struct sonde_event probe = {
		.size = sizeof(probe), .type = (uint32_t)atol(event), .config1 = (uintptr_t)path, .config2 = offset_of((uintptr_t)probed)
	};
	struct sonde_counter_options options = { .size = sizeof(options), .events = &probe, .nr_events = 1 };
	struct sonde_counters *set = NULL;
	struct sonde_count count;

	if (readlink("/proc/self/exe", path, sizeof(path) - 1) < 0)
		exit(1);
	CHECK(sonde_counters_new(&options, &set));
	CHECK(sonde_counters_start(set));
	for (int i = 0; i < 77; i++)
		probed();
	CHECK(sonde_counters_stop(set));
	probed();
	CHECK(sonde_counters_read(set, &count, 1));
	printf("value %llu\n", (unsigned long long)count.value);
	sonde_counters_free(set);
}

static struct sonde_counters *shared;
static const char *thread_event;

static void *run_thread(void *arg)
{
	struct sonde_counters *own = open_names(thread_event, SONDE_COUNTER_NO_INHERIT);
	struct sonde_count count;

	CHECK(sonde_counters_start(own));
	loop(NULL);
	CHECK(sonde_counters_stop(own));
	CHECK(sonde_counters_read(own, &count, 1));
	*(uint64_t *)arg = count.value;
	CHECK(sonde_counters_read(shared, &count, 1));
	sonde_counters_free(own);
	return NULL;
}

static void run_threads(const char *event)
{
	struct sonde_count count;
	uint64_t values[8];
	pthread_t threads[8];

	thread_event = event;
	shared = open_names(event, SONDE_COUNTER_ENABLED);
	for (int i = 0; i < 8; i++)
		CHECK(-pthread_create(&threads[i], NULL, run_thread, &values[i]));
	for (int i = 0; i < 8; i++) {
		pthread_join(threads[i], NULL);
		printf("own%d %llu\n", i, (unsigned long long)values[i]);
	}
	CHECK(sonde_counters_read(shared, &count, 1));
	printf("all %llu\n", (unsigned long long)count.value);
	sonde_counters_free(shared);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *what;
		void (*run)(const char *event);
	} runs[] = { { "counts", run_counts }, { "group", run_group }, { "crowd", run_crowd }, { "overflows", run_overflows },
		     { "lost", run_lost },     { "bpf", run_bpf },     { "probe", run_probe }, { "threads", run_threads } };

	if (argc == 5) {
		rounds = atol(argv[3]);
		period = atol(argv[4]);
	}
	for (size_t i = 0; argc >= 3 && i < sizeof(runs) / sizeof(*runs); i++) {
		if (strcmp(argv[1], runs[i].what))
			continue;
		runs[i].run(argv[2]);
		return 0;
	}
	return 2;
}
