// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "abi/config.h"
#include "abi/unwind.h"

const volatile struct sonde_config cfg = {};

SEC("perf_event")
int on_tick(void *ctx)
{
	return cfg.version ? 0 : 1;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
