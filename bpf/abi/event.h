/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* event: what bpf/event.bpf.c counts and sends: one record each time a trigger fires. */
#pragma once
#include "record.h"
#include "types.h"

struct sonde_event_config {
	__u32 trigger;                       /* which trigger the records belong to: the caller's number */
	__u32 syscall;                       /* only this syscall, by the number of 64-bit code; SONDE_EVENT_ANY_SYSCALL: no restriction */
	__u8 in_user;                        /* the trigger is an instruction of user code: there is no kernel stack */
	__u8 nr_own_frames;                  /* of the kernel stack: like SONDE_TRACEPOINT_FRAMES */
	__u8 pad[6];                         /* zero */
	__u32 own_tgid;                      /* sonde's process, which is left out with its helpers; as in the root PID namespace */
	__u32 more_pad;                      /* zero */
};
_Static_assert(sizeof(struct sonde_event_config) == 24, "layout changed: bump SONDE_ABI_VERSION");
#define SONDE_EVENT_ANY_SYSCALL (~0u)

/* One per CPU. hits = recorded + sum(filtered) + sum(dropped) */
struct sonde_event_counters {
	__u64 hits;
	__u64 recorded;
	__u64 filtered[SONDE_FILTER_COUNT];
	__u64 dropped[SONDE_DROP_COUNT];
	__u64 unread; /* of those filtered: what the filter compares could not be read */
};

struct sonde_event_record {
	__u32 type;                          /* SONDE_RECORD_EVENT */
	__u32 trigger;                       /* as in struct sonde_event_config */
	struct sonde_sample_record sample;   /* its type is SONDE_RECORD_SAMPLE */
};
_Static_assert(sizeof(struct sonde_event_record) == 88, "layout changed: bump SONDE_ABI_VERSION");
