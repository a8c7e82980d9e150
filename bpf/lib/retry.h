/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Stacks whose pages are not in memory: an interrupt cannot wait for them, the thread itself can, on its way back to its program (bpf_task_work, Linux 6.18). Its
 * registers and its stack are as they were then, so what is sent from there is the same raw record, only later. */
#pragma once
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "../abi/record.h"
#include "maps.h"
#include "unwind.h"
#include "user_regs.h"

#define RETRIES 64 /* at a time; a power of two */

struct bpf_map {
	__u32 id;
};
struct bpf_task_work { /* known to the kernel by its name */
	__u64 opaque;
};

struct retry {
	struct bpf_task_work work;
	__u32 is_taken, pad;
	struct sonde_raw_record header;
	__u8 bytes[SONDE_RAW_MAX_BYTES + WALK_PAGE_BYTES]; /* the last page is for the verifier; behind the header */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RETRIES);
	__type(key, __u32);
	__type(value, struct retry);
} retries SEC(".maps");

extern int bpf_task_work_schedule_resume_impl(struct task_struct *task, struct bpf_task_work *work, void *map__map,
					      int (*callback)(struct bpf_map *map, void *key, void *value), void *aux__prog) __ksym __weak;

/* In the thread, just before it goes on. */
static int on_resume(struct bpf_map *map, void *key, void *value)
{
	struct retry *retry = value;
	user_regs_t regs;
	__u64 start, size, off = 0;

	if (bpf_probe_read_kernel(&regs, sizeof(regs), (const void *)bpf_task_pt_regs(bpf_get_current_task_btf()))) {
		retry->is_taken = 0;
		return 0;
	}
	raw_take_regs(&retry->header, &regs);
	start = retry->header.stack_start;
	size = WALK_PAGE_BYTES - (start & (WALK_PAGE_BYTES - 1));
	for (int page = 0; page <= SONDE_RAW_MAX_BYTES / WALK_PAGE_BYTES; page++) {
		if (off + size > SONDE_RAW_MAX_BYTES || size > WALK_PAGE_BYTES || bpf_copy_from_user(retry->bytes + off, size, (const void *)(start + off)))
			break;
		off += size;
		size = WALK_PAGE_BYTES;
	}
	barrier_var(off);
	if (off > SONDE_RAW_MAX_BYTES) /* never: for the verifier */
		off = SONDE_RAW_MAX_BYTES;
	retry->header.stack_bytes = off;
	bpf_ringbuf_output(&ring, &retry->header, sizeof(retry->header) + off, 0);
	retry->is_taken = 0;
	return 0;
}

/* Has the current thread send the record that `header` begins. 0, or not 0: it is not possible. */
static __always_inline int retry_later(const struct sonde_raw_record *header)
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
