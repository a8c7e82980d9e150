/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup_owner: who made a process's cgroup, by its path: a container's runtime, Kubernetes, systemd. The paths are those of Docker,
 * containerd, CRI-O and Podman with both cgroup drivers (cgroupfs, systemd), the kubelet and systemd.unit(5). Any thread. */
#pragma once
#include <stdint.h>

struct cgroup_owner {
	char container_id[65], pod_uid[37], unit[128]; /* as in struct process_identity */
	char cgroup[256];
};

/* `text`: what /proc/PID/cgroup has. */
void cgroup_owner_parse(const char *text, struct cgroup_owner *ret_owner);
