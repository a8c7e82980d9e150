// SPDX-License-Identifier: Apache-2.0
/* bpf_busy SECONDS: runs a BPF program by BPF_PROG_TEST_RUN, so that it stands on this thread's kernel stack. SIGUSR1 unloads it; another one, which
 * was loaded before and never runs, stays. Prints the busy program's name as the kernel lists it: "bpf bpf_prog_TAG_NAME". */
#include <linux/bpf.h>
#include <sys/syscall.h>

#include "known.h"

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

/* Counts to a thousand. */
static int load(const char *name)
{
	struct bpf_insn insns[] = { { .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 0 },
				    { .code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = 0, .imm = 1 },
				    { .code = BPF_JMP | BPF_JLT | BPF_K, .dst_reg = 0, .off = -2, .imm = 1000 },
				    { .code = BPF_JMP | BPF_EXIT } };
	union bpf_attr attr = { .prog_type = BPF_PROG_TYPE_SOCKET_FILTER, .insns = (unsigned long)insns, .insn_cnt = 4, .license = (unsigned long)"GPL" };
	int fd;

	strncpy(attr.prog_name, name, sizeof(attr.prog_name) - 1);
	fd = bpf(BPF_PROG_LOAD, &attr);
	if (fd < 0) {
		perror("BPF_PROG_LOAD");
		exit(77);
	}
	return fd;
}

static void print_name(int fd)
{
	struct bpf_prog_info info = { 0 };
	union bpf_attr attr = { .info = { .bpf_fd = (unsigned)fd, .info_len = sizeof(info), .info = (unsigned long)&info } };

	if (bpf(BPF_OBJ_GET_INFO_BY_FD, &attr)) {
		perror("BPF_OBJ_GET_INFO_BY_FD");
		exit(77);
	}
	printf("bpf bpf_prog_");
	for (unsigned i = 0; i < sizeof(info.tag); i++)
		printf("%02x", info.tag[i]);
	printf("_%s\n", info.name);
}

int main(int argc, char **argv)
{
	unsigned char packet[64] = { 0 };
	int busy;

	known_start(argc > 1 ? argv[1] : NULL);
	signal(SIGUSR1, on_usr1);
	load("sonde_quiet");
	busy = load("sonde_busy");
	print_name(busy);
	known_ready();
	while (!known_done && !unload) {
		union bpf_attr attr = { .test = { .prog_fd = (unsigned)busy, .data_in = (unsigned long)packet, .data_size_in = sizeof(packet), .repeat = 20000 } };

		if (bpf(BPF_PROG_TEST_RUN, &attr) && !unload && !known_done) {
			perror("BPF_PROG_TEST_RUN");
			return 1;
		}
	}
	close(busy);
	while (!known_done)
		pause();
	return 0;
}
