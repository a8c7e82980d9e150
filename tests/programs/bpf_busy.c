// SPDX-License-Identifier: Apache-2.0
/* bpf_busy SECONDS [again]: runs a BPF program by BPF_PROG_TEST_RUN, so that it is on this thread's kernel stack. SIGUSR1 unloads it.
 * Another program, loaded before, never runs and stays loaded. Prints the busy program's name as the kernel lists it: "bpf
 * bpf_prog_TAG_NAME". `again`: then loads others, which never run either, until one has the busy program's address. Prints "taken 1", or
 * "taken 0" when none does. */
#include <linux/bpf.h>
#include <sys/syscall.h>

#include "known.h"

#define NR_ADDS    100
#define NEAR_BYTES 64

static volatile sig_atomic_t unload;

static void on_usr1(int signo)
{
	(void)signo;
	unload = 1;
}

static int bpf(int cmd, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

/* Counts to a thousand. The loop is long compared with the few bytes by which the kernel randomizes a program's start. */
static int load(const char *name)
{
	struct bpf_insn insns[NR_ADDS + 3] = { { .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 0 } };
	union bpf_attr attr = { .prog_type = BPF_PROG_TYPE_SOCKET_FILTER,
				.insns = (unsigned long)insns,
				.insn_cnt = NR_ADDS + 3,
				.license = (unsigned long)"GPL" };
	int fd;

	for (int i = 1; i <= NR_ADDS; i++)
		insns[i] = (struct bpf_insn){ .code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = 0, .imm = 1 };
	insns[NR_ADDS + 1] = (struct bpf_insn){ .code = BPF_JMP | BPF_JLT | BPF_K, .dst_reg = 0, .off = -NR_ADDS - 1, .imm = 1000 };
	insns[NR_ADDS + 2] = (struct bpf_insn){ .code = BPF_JMP | BPF_EXIT };

	strncpy(attr.prog_name, name, sizeof(attr.prog_name) - 1);
	fd = bpf(BPF_PROG_LOAD, &attr);
	if (fd < 0) {
		perror("BPF_PROG_LOAD");
		exit(77);
	}
	return fd;
}

/* The program's address; 0 when the kernel hides it. */
static unsigned long long ask(int fd, struct bpf_prog_info *info)
{
	unsigned long long kaddr = 0;
	union bpf_attr attr = { .info = { .bpf_fd = (unsigned)fd, .info_len = sizeof(*info), .info = (unsigned long)info } };

	*info = (struct bpf_prog_info){ .jited_ksyms = (unsigned long)&kaddr, .nr_jited_ksyms = 1 };
	if (bpf(BPF_OBJ_GET_INFO_BY_FD, &attr)) {
		perror("BPF_OBJ_GET_INFO_BY_FD");
		exit(77);
	}
	return kaddr;
}

static void print_name(int fd)
{
	struct bpf_prog_info info;

	ask(fd, &info);
	printf("bpf bpf_prog_");
	for (unsigned i = 0; i < sizeof(info.tag); i++)
		printf("%02x", info.tag[i]);
	printf("_%s\n", info.name);
}

/* The kernel frees the memory some time after the program is closed. */
static void take_place(unsigned long long kaddr)
{
	struct bpf_prog_info info;
	int taken = 0;

	for (int i = 0; i < 300 && !taken && !known_done; i++) {
		taken = ask(load("sonde_later"), &info) + NEAR_BYTES - kaddr < 2 * NEAR_BYTES;
		usleep(3000);
	}
	printf("taken %d\n", taken);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	unsigned char packet[64] = { 0 };
	struct bpf_prog_info info;
	unsigned long long kaddr;
	int busy;

	known_start(argc > 1 ? argv[1] : NULL);
	signal(SIGUSR1, on_usr1);
	load("sonde_quiet");
	busy = load("sonde_busy");
	print_name(busy);
	kaddr = ask(busy, &info);
	known_ready();
	while (!known_done && !unload) {
		union bpf_attr attr = { .test = { .prog_fd = (unsigned)busy,
						  .data_in = (unsigned long)packet,
						  .data_size_in = sizeof(packet),
						  .repeat = 20000 } };

		if (bpf(BPF_PROG_TEST_RUN, &attr) && !unload && !known_done) {
			perror("BPF_PROG_TEST_RUN");
			return 1;
		}
	}
	close(busy);
	if (argc > 2)
		take_place(kaddr);
	while (!known_done)
		pause();
	return 0;
}
