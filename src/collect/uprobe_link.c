// SPDX-License-Identifier: Apache-2.0
#include "collect/uprobe_link.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FLAG_RETURN 1u /* BPF_F_UPROBE_MULTI_RETURN */

struct link_create_uprobes {
	uint32_t prog_fd, target_fd, attach_type, flags;
	uint64_t path, offsets, ref_ctr_offsets, cookies;
	uint32_t nr, uprobe_flags, pid, pad;
};

enum bpf_attach_type uprobe_way_type(enum uprobe_way way)
{
	return way == UPROBE_SESSION ? UPROBE_LINK_SESSION : way == UPROBE_MULTI ? UPROBE_LINK_MULTI : 0;
}

static uint64_t address(const void *at)
{
	return (uint64_t)(uintptr_t)at;
}

int uprobe_link_multi(enum uprobe_way way, const struct bpf_program *program, const struct uprobe_points *points)
{
	struct link_create_uprobes create = { .prog_fd = (uint32_t)bpf_program__fd(program),
					      .attach_type = uprobe_way_type(way),
					      .path = address(points->path),
					      .offsets = address(points->offs),
					      .cookies = address(points->cookies),
					      .nr = points->nr,
					      .uprobe_flags = points->returns ? FLAG_RETURN : 0,
					      .pid = points->tgid };
	long fd = syscall(SYS_bpf, BPF_LINK_CREATE, &create, sizeof(create));

	return fd < 0 ? -errno : (int)fd;
}

/* The kernel looks at the path after all else: a directory is no file for probes (EBADF). Where it does not know the type, EINVAL. */
bool uprobe_way_exists(enum uprobe_way way, const struct bpf_program *program)
{
	static const uint64_t off, cookie;
	const struct uprobe_points points = { .path = "/", .offs = &off, .cookies = &cookie, .nr = 1 };

	return way == UPROBE_SINGLE || uprobe_link_multi(way, program, &points) == -EBADF;
}

int uprobe_link_single(const struct bpf_program *program, const struct uprobe_points *points, uint32_t number, struct bpf_link **ret_link)
{
	LIBBPF_OPTS(bpf_uprobe_opts, options, .retprobe = points->returns, .bpf_cookie = points->cookies[number]);
	struct bpf_link *link = bpf_program__attach_uprobe_opts(program, points->tgid ? (pid_t)points->tgid : -1, points->path,
								points->offs[number], &options);

	if (!link)
		return -errno;
	*ret_link = link;
	return 0;
}
