// SPDX-License-Identifier: Apache-2.0
/* map_settle: a caller during a program's run at a context switch returns after that program has ended. The program takes long. It marks
 * its begin and end in memory that is read here without a system call. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <bpf/bpf.h>
#include <linux/bpf.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "collect/map_read.h"
#include "need_bpf.h"

#define NR_TURNS 60000 /* of the program's loop: some 50 us, and within the verifier's limit */
#define ENOUGH   20
#define SECONDS  20

#define INSN(op, dst, src, offset, value) \
	((struct bpf_insn){ .code = (op), .dst_reg = (dst), .src_reg = (src), .off = (offset), .imm = (value) })

struct told {
	volatile uint64_t nr_begun, nr_ended;
};

static volatile bool done;

static void *switch_often(void *arg)
{
	const struct timespec nap = { .tv_nsec = 20000 };

	*(volatile int *)arg = (int)syscall(SYS_gettid);
	while (!done)
		nanosleep(&nap, NULL);
	return NULL;
}

/* Runs at each switch away of that thread. */
static int load(int map_fd, int tid)
{
	const struct bpf_insn insns[] = {
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_get_current_pid_tgid),
		INSN(BPF_JMP32 | BPF_JNE | BPF_K, 0, 0, 9, tid),
		INSN(BPF_LD | BPF_DW | BPF_IMM, 6, BPF_PSEUDO_MAP_VALUE, 0, map_fd), INSN(0, 0, 0, 0, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 1, 0, 0, 1),
		INSN(BPF_STX | BPF_ATOMIC | BPF_DW, 6, 1, offsetof(struct told, nr_begun), BPF_ADD),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 2, 0, 0, 0),
		INSN(BPF_ALU64 | BPF_ADD | BPF_K, 2, 0, 0, 1),
		INSN(BPF_JMP | BPF_JLT | BPF_K, 2, 0, -2, NR_TURNS),
		INSN(BPF_STX | BPF_ATOMIC | BPF_DW, 6, 1, offsetof(struct told, nr_ended), BPF_ADD),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};

	return bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "settle", "GPL", insns, ARRAY_SIZE(insns), NULL);
}

static void it_ends_behind_the_program(void **state)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE);
	CLEANUP(closep) int map_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "told", sizeof(uint32_t), sizeof(struct told), 1, &options);
	CLEANUP(closep) int program_fd = -1;
	CLEANUP(closep) int link_fd = -1;
	const struct told *told = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, map_fd, 0);
	uint64_t until_ns = clock_ns() + SECONDS * 1000000000ULL;
	volatile int tid = 0;
	pthread_t thread;
	int nr = 0;

	assert_true(map_fd >= 0 && told != MAP_FAILED);
	assert_int_equal(pthread_create(&thread, NULL, switch_often, (void *)&tid), 0);
	while (!tid)
		usleep(100);
	program_fd = load(map_fd, tid);
	assert_true(program_fd >= 0);
	link_fd = bpf_raw_tracepoint_open("sched_switch", program_fd);
	assert_true(link_fd >= 0);
	while (nr < ENOUGH && clock_ns() < until_ns) {
		uint64_t nr_begun = told->nr_begun;

		if (told->nr_ended == nr_begun)
			continue;
		map_settle();
		assert_true(told->nr_ended >= nr_begun);
		nr++;
	}
	done = true;
	pthread_join(thread, NULL);
	munmap((void *)told, (size_t)sysconf(_SC_PAGESIZE));
	assert_int_equal(nr, ENOUGH); /* seen running, on another processor */
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(it_ends_behind_the_program) };

	need_bpf();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
