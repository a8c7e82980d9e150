// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The stacks of the thread that had the CPU while another waited long for it. bpf/runq.bpf.c goes on to this program when the waiting
 * thread gets the CPU, still in the thread that leaves. Its stacks are taken as those of a switch (bpf/sched.bpf.c), and the wait is sent
 * behind them. */
#include <stdbool.h>

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "lib/event_regs.h"
#include "lib/maps.h"
#include "lib/runq_maps.h"
#include "lib/scratch.h"
#include "lib/send.h"
#include "lib/user_walk.h"

static const bool scratch_nests = true;
static const bool deferred_leaves_room = true;
static const __u32 deferred_max_pages = 16; /* the run queue's lock is held: 10 us */

static __always_inline int send_runqslower(struct scratch *s)
{
	struct sonde_runqslower_record *record = zeroth(&slow);
	struct sonde_runq_counters *count = zeroth(&runq_counters);

	if (!record || !count) { /* there are always some */
		scratch_leave(s);
		return 0;
	}
	send_runtime(s);
	record->type = SONDE_RECORD_RUNQSLOWER;
	record->ids = s->sample.ids;
	if (bpf_ringbuf_output(&ring, record, sizeof(*record), wake_flag()))
		count->lost++;
	else
		count->sent++;
	scratch_leave(s);
	return 0;
}

/* Runs after the programs of the runtimes. */
SEC("tp_btf/sched_switch")
int sonde_slow_end(__u64 *ctx)
{
	struct scratch *s = scratch_of_run(ctx);

	return s ? send_runqslower(s) : 0;
}

SEC("tp_btf/sched_switch")
int sonde_slow(__u64 *ctx)
{
	struct sonde_counters *count = zeroth(&counters);
	struct scratch *s = count ? scratch_take(ctx) : 0;

	if (!count || !s)
		return 0; /* there are always some */
	begin_sample(s, bpf_ktime_get_ns(), bpf_get_current_pid_tgid());
	s->sample.kernel_state =
	    kernel_state(s, get_kernel_stack(ctx, s), SONDE_TRACEPOINT_FRAMES, s->sample.time_ns, &s->sample.kernel_stack);
	if (take_regs(s->walk.number)) {
		enter_process(s, &s->sample);
		take_user_stack(s, count, 0);
		s->runtimes_left &= ~(__u32)SONDE_RUNTIMES_WITH_LABELS; /* not requested */
	}
	return is_next_runtime(s) ? next_runtime(ctx, s) : send_runqslower(s);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
