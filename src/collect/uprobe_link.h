/* SPDX-License-Identifier: Apache-2.0 */
/* uprobe_link: attaches a program to many instructions of a file at once (links of the type uprobe_multi, Linux 6.6; sessions, which run it
 * at entry and return, Linux 6.13), by bpf(2) itself: libbpf 1.1 does not know them. Layout: struct link_create in linux/bpf.h of 6.13. */
#pragma once
#include <bpf/libbpf.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"

/* Of enum bpf_attach_type, since Linux 6.6 and 6.13. */
#define UPROBE_LINK_MULTI ((enum bpf_attach_type)48)
#define UPROBE_LINK_SESSION ((enum bpf_attach_type)57)

enum uprobe_way {
	UPROBE_SESSION,
	UPROBE_MULTI,
	UPROBE_SINGLE, /* a perf event for each probe */
	UPROBE_WAYS,
};

/* The attach type with which programs for that way are loaded; 0 for UPROBE_SINGLE. */
enum bpf_attach_type uprobe_way_type(enum uprobe_way way);
/* Does this kernel have that way? `program` was loaded for it. Always true for UPROBE_SINGLE. */
bool uprobe_way_exists(enum uprobe_way way, const struct bpf_program *program);

struct uprobe_points {
	const char *path;          /* of the file, for the kernel: /proc/self/fd/N also for one that has no path any more */
	uint32_t tgid;             /* this process alone; 0: all */
	const uint64_t *offs;      /* in the file */
	const uint64_t *cookies;   /* for bpf_get_attach_cookie */
	uint32_t nr;
	bool returns;              /* at the returns of the functions with these entries. Not with UPROBE_SESSION */
};
/* Of UPROBE_SESSION and UPROBE_MULTI. Returns a link's descriptor, or what bpf(2) returned. */
MUST_CHECK int uprobe_link_multi(enum uprobe_way way, const struct bpf_program *program, const struct uprobe_points *points);
/* One probe of UPROBE_SINGLE. 0 or what libbpf returned. */
MUST_CHECK int uprobe_link_single(const struct bpf_program *program, const struct uprobe_points *points, uint32_t number,
				  struct bpf_link **ret_link);
