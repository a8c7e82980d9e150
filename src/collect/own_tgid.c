// SPDX-License-Identifier: Apache-2.0
#include "collect/own_tgid.h"

#include <bpf/bpf.h>
#include <unistd.h>

#include "base/cleanup.h"

/* return bpf_get_current_pid_tgid() >> 32; It runs here, in this process. */
static const struct bpf_insn program[] = {
	{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_get_current_pid_tgid },
	{ .code = BPF_ALU64 | BPF_RSH | BPF_K, .dst_reg = BPF_REG_0, .imm = 32 },
	{ .code = BPF_JMP | BPF_EXIT },
};

uint32_t own_tgid(void)
{
	LIBBPF_OPTS(bpf_test_run_opts, run);
	CLEANUP(closep) int fd = bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "sonde_own", "GPL", program, ARRAY_SIZE(program), NULL);

	return fd < 0 || bpf_prog_test_run_opts(fd, &run) ? (uint32_t)getpid() : run.retval;
}
