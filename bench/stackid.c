// SPDX-License-Identifier: Apache-2.0
/* stackid PID CPU HERTZ SECONDS: samples a process on one CPU with bpf_get_stackid. Prints the BPF time per sample, the number of samples
 * and the frames of the longest stack. The caller must keep the kernel's BPF statistics on. The first half second is not counted. */
#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "stackid.skel.h"

static void stackid_freep(struct stackid_bpf **skel)
{
	stackid_bpf__destroy(*skel);
}

static int open_event(int cpu, uint64_t hertz)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.freq = 1,
		.sample_freq = hertz,
	};

	return (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static void wait_seconds(double seconds)
{
	struct timespec left = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };

	while (nanosleep(&left, &left) < 0 && errno == EINTR)
		;
}

static int info_of(const struct stackid_bpf *skel, struct bpf_prog_info *info)
{
	__u32 size = sizeof(*info);

	memset(info, 0, sizeof(*info));
	return bpf_obj_get_info_by_fd(bpf_program__fd(skel->progs.on_tick), info, &size);
}

static uint32_t deepest(const struct stackid_bpf *skel)
{
	uint64_t pcs[127];
	uint32_t id, deepest = 0;
	int fd = bpf_map__fd(skel->maps.stacks);

	for (id = 0; id < 16384; id++) {
		uint32_t nr = 0;

		if (bpf_map_lookup_elem(fd, &id, pcs))
			continue;
		while (nr < 127 && pcs[nr])
			nr++;
		if (nr > deepest)
			deepest = nr;
	}
	return deepest;
}

static int measure(struct stackid_bpf *skel, double seconds)
{
	struct bpf_prog_info before, after;
	uint64_t nr;

	wait_seconds(0.5);
	if (info_of(skel, &before))
		return -errno;
	wait_seconds(seconds);
	if (info_of(skel, &after))
		return -errno;
	nr = after.run_cnt - before.run_cnt;
	if (!nr)
		return -ENODATA;
	printf("%.1f %" PRIu64 " %" PRIu32 "\n", (double)(after.run_time_ns - before.run_time_ns) / (double)nr, nr, deepest(skel));
	return 0;
}

int main(int argc, char **argv)
{
	CLEANUP(stackid_freep) struct stackid_bpf *skel = NULL;
	struct bpf_link *link;
	uint64_t numbers[4];
	int event, err;

	if (argc != 5)
		return fprintf(stderr, "usage: stackid PID CPU HERTZ SECONDS\n"), 2;
	for (int i = 0; i < 4; i++)
		if (number_u64(argv[i + 1], 1u << 30, &numbers[i]) < 0)
			return fprintf(stderr, "stackid: %s is not a number\n", argv[i + 1]), 2;
	skel = stackid_bpf__open();
	if (!skel)
		return 1;
	skel->rodata->target_tgid = (uint32_t)numbers[0];
	event = open_event((int)numbers[1], numbers[2]);
	if (stackid_bpf__load(skel) || event < 0)
		return fprintf(stderr, "stackid: %s\n", strerror(errno)), 1;
	link = bpf_program__attach_perf_event(skel->progs.on_tick, event);
	if (!link)
		return fprintf(stderr, "stackid: %s\n", strerror(errno)), 1;
	err = measure(skel, (double)numbers[3]);
	bpf_link__destroy(link); /* closes the event */
	return err ? (fprintf(stderr, "stackid: %s\n", strerror(-err)), 1) : 0;
}
