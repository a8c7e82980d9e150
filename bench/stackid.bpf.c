// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The peer that sonde's unwinder is compared with: the kernel's frame-pointer walk and its stack map, and nothing else. It does not even
 * count what it stores. */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#define MAX_FRAMES 127 /* kernel.perf_event_max_stack's default */

const volatile __u32 target_tgid = 0;

struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, 16384);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, MAX_FRAMES * sizeof(__u64));
} stacks SEC(".maps");

SEC("perf_event")
int on_tick(void *ctx)
{
	if (bpf_get_current_pid_tgid() >> 32 == target_tgid)
		bpf_get_stackid(ctx, &stacks, BPF_F_USER_STACK);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
