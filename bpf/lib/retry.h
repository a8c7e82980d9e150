/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Stacks whose pages are not in memory. An interrupt cannot wait for them, but the thread itself can, on its way back to its program
 * (bpf_task_work, Linux 6.18). Its registers and its stack are then still the same, so it sends the same deferred record, only later. */
#pragma once
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "../abi/record.h"
#include "maps.h"
#include "../walk/unwind.h"
#include "user_regs.h"
#include "map.h"

#define RETRIES 64     /* at a time; a power of two */
#define RETRY_PAGES 5  /* each may have to be read from a disk */

struct bpf_map {
	__u32 id;
};
struct bpf_task_work { /* the kernel knows it by its name */
	__u64 opaque;
};

struct retry {
	struct bpf_task_work work;
	__u32 is_taken, pad;
	struct sonde_deferred_record header;
	__u8 bytes[RETRY_PAGES * WALK_PAGE_BYTES]; /* behind the header. Not in the ring: its reader would wait for the disk */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RETRIES);
	__type(key, __u32);
	__type(value, struct retry);
} retries MAP("sonde_retries");

extern int bpf_task_work_schedule_resume_impl(struct task_struct *task, struct bpf_task_work *work, void *map__map,
					      int (*callback)(struct bpf_map *map, void *key, void *value), void *aux__prog) __ksym __weak;

/* Runs in the thread, just before it returns to its program. */
static int on_resume(struct bpf_map *map, void *key, void *value)
{
	struct retry *retry = value;
	user_regs_t regs;
	__u64 absent = 0;

	if (bpf_probe_read_kernel(&regs, sizeof(regs), (const void *)bpf_task_pt_regs(bpf_get_current_task_btf()))) {
		retry->is_taken = 0;
		return 0;
	}
	deferred_take_regs(&retry->header, &regs);
	retry->header.stack_start &= -(__u64)WALK_PAGE_BYTES;
	retry->header.is_cut = 1;
	for (__u32 page = 0; page < RETRY_PAGES; page++) {
		if (bpf_copy_from_user(retry->bytes + page * WALK_PAGE_BYTES, WALK_PAGE_BYTES,
				       (const void *)(retry->header.stack_start + page * WALK_PAGE_BYTES)))
			absent |= 1ull << page;
	}
	retry->header.absent[0] = absent;
	retry->header.stack_bytes = sizeof(retry->bytes);
	bpf_ringbuf_output(&ring, &retry->header, sizeof(retry->header) + sizeof(retry->bytes), 0);
	retry->is_taken = 0;
	return 0;
}

/* Makes the current thread send the record that begins with `header`. Returns 0; not 0: that is not possible. */
static __always_inline int retry_later(const struct sonde_deferred_record *header)
{
	__u32 number = bpf_get_current_pid_tgid() & (RETRIES - 1);
	struct retry *retry = bpf_map_lookup_elem(&retries, &number);

	if (!retry || __sync_val_compare_and_swap(&retry->is_taken, 0, 1))
		return -1;
	retry->header = *header;
	if (!bpf_task_work_schedule_resume_impl(bpf_get_current_task_btf(), &retry->work, &retries, on_resume, 0))
		return 0;
	retry->is_taken = 0;
	return -1;
}
