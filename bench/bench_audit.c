// SPDX-License-Identifier: Apache-2.0
/* bench_audit PID [SAMPLES]: stops a thread (ptrace) again and again, takes its registers and 16 KiB of its stack, and unwinds them by libdw
 * as `--audit` does. Prints what the first and the later ones cost, how the stacks ended, and the memory that is kept. */
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

#include "audit/audit.h"
#include "base/number.h"
#include "process/process_table.h"

#define MAX_MODULES 4096
#define MAX_SAMPLES 100000u

static struct process_table *processes;
static struct audit_module modules[MAX_MODULES];
static struct audit_process process = { .modules = modules };
static struct {
	struct sonde_raw_record head;
	uint8_t stack[SONDE_RAW_MAX_BYTES];
} raw;
static struct audit_stack stack;
static double costs_us[MAX_SAMPLES];

static int take_modules(void *arg, uint32_t tgid, uint32_t generation, const struct process_mapping *mappings, uint32_t nr)
{
	process.tgid = tgid;
	process.generation = generation;
	process.nr_modules = nr < MAX_MODULES ? nr : MAX_MODULES;
	for (uint32_t i = 0; i < process.nr_modules; i++) {
		modules[i] = (struct audit_module){ mappings[i].start_pc, mappings[i].end_pc, mappings[i].load_bias, NULL, mappings[i].object };
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
	raw.head = (struct sonde_raw_record){
		.type = SONDE_RECORD_RAW,
		.tgid = (uint32_t)pid,
		.regs = { r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14, r.r15, r.rip },
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

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int run(pid_t pid, uint32_t nr_samples)
{
	static const char *const names[] = { "root", "copy", "no CFI", "libdw", "frames", "32-bit" };
	CLEANUP(audit_freep) struct audit *audit = NULL;
	uint32_t ends[ARRAY_SIZE(names)] = { 0 }, nr = 0;
	uint64_t nr_frames = 0;
	size_t before = mallinfo2().uordblks;

	if (audit_new(NULL, &audit) || ptrace(PTRACE_SEIZE, pid, NULL, NULL))
		return 1;
	while (nr < nr_samples && stop_and_take(pid)) {
		double start = now_us();

		if (audit_unwind(audit, &raw.head, &process, &stack))
			return 1;
		costs_us[nr++] = now_us() - start;
		ends[stack.end]++;
		nr_frames += stack.nr_frames;
		usleep(2000 + nr * 7919 % 3000);
	}
	if (!nr)
		return 1;
	printf("%u stacks, %.1f frames; first %.0f us", nr, (double)nr_frames / nr, costs_us[0]);
	qsort(costs_us, nr, sizeof(*costs_us), by_value);
	printf("; min %.1f, median %.1f, 99 %% %.0f, max %.0f us; %.1f MiB kept; ends:", costs_us[0], costs_us[nr / 2], costs_us[nr * 99 / 100], costs_us[nr - 1],
	       (double)(mallinfo2().uordblks - before) / (1 << 20));
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		printf(ends[i] ? " %s %u" : "", names[i], ends[i]);
	printf("\n");
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t pid, nr_samples = 500;

	if (argc < 2 || number_u64(argv[1], INT32_MAX, &pid) || (argc > 2 && number_u64(argv[2], MAX_SAMPLES, &nr_samples))) {
		fprintf(stderr, "usage: bench_audit PID [SAMPLES]\n");
		return 2;
	}
	processes = process_table_new(NULL);
	if (!processes || process_table_scan(processes, (uint32_t)pid, 1, NULL) || process_table_changes(processes, take_modules, NULL))
		return 1;
	return run((pid_t)pid, (uint32_t)nr_samples);
}
