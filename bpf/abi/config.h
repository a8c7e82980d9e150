/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The knobs of the kernel side: constant from load on, so that the verifier cuts dead branches away. */
#pragma once
#include "record.h"
#include "types.h"

struct sonde_config {
	__u32 version;                      /* SONDE_ABI_VERSION, checked by the loader */
	__u32 ring_wake_bytes;              /* wake the reader when this much is unread */
	__u8 filter_tgid, filter_tid;       /* only the keys of the map `targets` */
	__u8 filter_comm;                   /* only `comm`, as thread name or as its group leader's */
	__u8 user_stacks, kernel_stacks;    /* collect this side */
	__u8 include_idle;
	__u8 follow;                        /* children of targets are targets */
	__u8 pad[1];
	__u32 audit_every;                  /* send this one of so many walked stacks to be checked; 0: none */
	char comm[SONDE_COMM_BYTES];
};
_Static_assert(sizeof(struct sonde_config) == 36, "layout changed: bump SONDE_ABI_VERSION");
