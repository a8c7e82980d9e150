// SPDX-License-Identifier: Apache-2.0
/* bench_audit PID [SAMPLES]: stops a thread (ptrace) repeatedly, takes its registers and 16 KiB of its stack, and unwinds them with libdw
 * as `--audit` does. Prints the cost of the first stack and of the later ones, how the stacks ended, and the memory that is kept. Then the
 * cost of each stack in this process and in the worker, one request at a time, as `--audit` sends them. */
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <poll.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#include <sonde/sonde.h>

#include "audit/audit.h"
#include "base/clock.h"
#include "base/number.h"
#include "process/process_table.h"
#include "parse/audit_pool.h"
#include "parse/parser_private.h"

#define MAX_MODULES 4096
#define MAX_SAMPLES 100000u

static struct process_table *processes;
static struct audit_module modules[MAX_MODULES];
static struct audit_process process = { .modules = modules };
static struct {
	struct sonde_deferred_record head;
	uint8_t stack[SONDE_DEFERRED_MAX_BYTES];
} raw;
static struct audit_stack stack;
static double costs_us[MAX_SAMPLES], own_us[MAX_SAMPLES];
static struct audit_message_module request_modules[MAX_MODULES];
static uint32_t files[WIRE_MAX_FDS], nr_files;
static uint32_t nr_answered;
static struct account account;

static int take_modules(void *arg, uint32_t tgid, uint32_t generation, const struct process_mapping *mappings, uint32_t nr)
{
	process.tgid = tgid;
	process.generation = generation;
	process.nr_modules = nr < MAX_MODULES ? nr : MAX_MODULES;
	for (uint32_t i = 0; i < process.nr_modules; i++) {
		modules[i] =
		    (struct audit_module){ mappings[i].start_pc, mappings[i].end_pc, mappings[i].load_bias, NULL, mappings[i].object };
		if (mappings[i].object != OBJECT_NONE)
			modules[i].elf = object_table_at(process_table_objects(processes), mappings[i].object)->elf;
	}
	return 0;
}

/* The thread must be stopped. */
static bool take_record(pid_t pid)
{
	struct user_regs_struct r;
	struct iovec local = { raw.stack, sizeof(raw.stack) }, remote = { .iov_len = sizeof(raw.stack) };
	ssize_t got;

	if (ptrace(PTRACE_GETREGS, pid, NULL, &r))
		return false;
	raw.head = (struct sonde_deferred_record){
		.type = SONDE_RECORD_DEFERRED,
		.tgid = (uint32_t)pid,
		.regs = { r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14, r.r15,
			  r.rip },
		.compat = r.cs == 0x23,
	};
	raw.head.stack_start = r.rsp - SONDE_RED_ZONE_BYTES;
	remote.iov_base = (void *)raw.head.stack_start;
	got = process_vm_readv(pid, &local, 1, &remote, 1, 0);
	raw.head.stack_bytes = got < 0 ? 0 : (uint32_t)got;
	return true;
}

static bool stop_and_take(pid_t pid)
{
	int status;
	bool taken;

	if (ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) || waitpid(pid, &status, __WALL) != pid || !WIFSTOPPED(status))
		return false;
	taken = take_record(pid);
	return !ptrace(PTRACE_CONT, pid, NULL, NULL) && taken;
}

/* CPU time, because other programs may run meanwhile. */
static double now_us(void)
{
	return (double)clock_of_ns(CLOCK_THREAD_CPUTIME_ID) / 1e3;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void take_answer(void *arg, const struct audit_batch *batch, struct reader *answers, enum audit_reason reason)
{
	nr_answered += answers != NULL;
}

static struct audit_pool *begin_pool(void)
{
	struct audit_pool *pool = NULL;

	for (uint32_t i = 0; i < process.nr_modules; i++) {
		uint32_t at = 0;

		request_modules[i] =
		    (struct audit_message_module){ modules[i].start_pc, modules[i].end_pc, modules[i].load_bias, modules[i].object, 0 };
		while (at < nr_files && files[at] != modules[i].object)
			at++;
		if (modules[i].elf && at == nr_files && nr_files < ARRAY_SIZE(files))
			files[nr_files++] = modules[i].object;
	}
	return audit_pool_new(&(struct audit_pool_options){ .program = PARSER_PROGRAM,
							    .kind = PARSER_AUDIT,
							    .max_cpu_ns = NS_PER_S,
							    .objects = process_table_objects(processes),
							    .account = &account,
							    .done = take_answer },
			      NULL, &pool)
		   ? NULL
		   : pool;
}

/* This process's CPU time for a stack that a worker unwinds. */
static double ask_pool(struct audit_pool *pool)
{
	double begin_us = now_us();
	const struct audit_request request = { .record = &raw.head,
					       .generation = process.generation,
					       .modules = request_modules,
					       .nr_modules = process.nr_modules,
					       .files = files,
					       .nr_files = nr_files };
	bool is_busy = true;

	if (audit_pool_add(pool, &request))
		return 0;
	while (!audit_pool_step(pool, &is_busy) && is_busy)
		poll(NULL, 0, 1);
	return now_us() - begin_us;
}

static void print_pool(struct audit_pool *pool, uint32_t nr)
{
	struct rusage usage;

	audit_pool_free(pool); /* ends its worker, so that getrusage counts it */
	getrusage(RUSAGE_CHILDREN, &usage);
	qsort(own_us, nr, sizeof(*own_us), by_value);
	printf("by a worker: %u answers; of our own CPU median %.1f, 99 %% %.0f us; of the worker's, with its start, %.1f us a stack\n",
	       nr_answered, own_us[nr / 2], own_us[nr * 99 / 100],
	       ((double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 + (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec)) /
		   nr);
}

static int run(pid_t pid, uint32_t nr_samples)
{
	static const char *const names[] = { "root", "copy", "no CFI", "libdw", "frames", "32-bit" };
	CLEANUP(audit_freep) struct audit *audit = NULL;
	uint32_t ends[ARRAY_SIZE(names)] = { 0 }, nr = 0;
	struct audit_pool *pool = begin_pool();
	uint64_t nr_frames = 0;
	size_t before = mallinfo2().uordblks;

	if (!pool || audit_new(NULL, &audit) || ptrace(PTRACE_SEIZE, pid, NULL, NULL))
		return 1;
	while (nr < nr_samples && stop_and_take(pid)) {
		double start = now_us();

		if (audit_unwind(audit, &raw.head, &process, &stack))
			return 1;
		costs_us[nr] = now_us() - start;
		own_us[nr++] = ask_pool(pool);
		ends[stack.end]++;
		nr_frames += stack.nr_frames;
		usleep(2000 + nr * 7919 % 3000);
	}
	if (!nr)
		return 1;
	printf("%u stacks, %.1f frames; first %.0f us", nr, (double)nr_frames / nr, costs_us[0]);
	qsort(costs_us, nr, sizeof(*costs_us), by_value);
	printf("; min %.1f, median %.1f, 99 %% %.0f, max %.0f us; %.1f MiB kept; ends:", costs_us[0], costs_us[nr / 2],
	       costs_us[nr * 99 / 100], costs_us[nr - 1], (double)(mallinfo2().uordblks - before) / (1 << 20));
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		printf(ends[i] ? " %s %u" : "", names[i], ends[i]);
	printf("\n");
	print_pool(pool, nr);
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t pid, nr_samples = 500;
	int code;

	if (sonde_is_worker(argc, argv, &code))
		return code;
	if (argc < 2 || number_u64(argv[1], INT32_MAX, &pid) || (argc > 2 && number_u64(argv[2], MAX_SAMPLES, &nr_samples))) {
		fprintf(stderr, "usage: bench_audit PID [SAMPLES]\n");
		return 2;
	}
	processes = process_table_new(NULL);
	if (!processes || process_table_scan(processes, (uint32_t)pid, 1, NULL) || process_table_changes(processes, take_modules, NULL))
		return 1;
	return run((pid_t)pid, (uint32_t)nr_samples);
}
