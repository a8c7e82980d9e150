/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A map's name in the kernel: `bpftool map` shows it, and skeletons call the map so. The kernel keeps 15 characters. */
#pragma once
#include <bpf/bpf_helpers.h>

#define MAP(name) __asm__(name) SEC(".maps")
