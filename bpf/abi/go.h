/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* go: what the kernel side knows about a Go process. */
#pragma once
#include "runtime.h"

/* What the field labels of runtime.g points to. */
enum sonde_go_labels {
	SONDE_GO_LABELS_MAP,  /* up to 1.23: a map[string]string, hashed buckets of eight */
	SONDE_GO_LABELS_LIST, /* 1.24 and newer: a slice of {key, value}, sorted by key */
};

struct sonde_go { /* byte offsets */
	struct sonde_runtime_process process; /* root: the thread's g */
	__u32 m_curg;   /* in runtime.m: curg, the thread's current goroutine, also while the thread is on another stack */
	__u32 g_labels; /* in runtime.g: labels */
	__u32 labels;   /* enum sonde_go_labels */
	__u32 pad;      /* zero */
};
_Static_assert(sizeof(struct sonde_go) == 64, "layout changed: bump SONDE_ABI_VERSION");
