/* SPDX-License-Identifier: Apache-2.0 */
/* process_identity: what a process belongs to: its service, container, pod, unit and program. The texts come from the process (its
 * environment, the name of its file) or from whoever named its cgroup: they are claims, and prove nothing. All are UTF-8 and plain
 * (base/plain_text.h); one that is longer than its member ends with "...". Any thread. */
#pragma once
#include <stdint.h>

#include "base/cleanup.h"
#include "identity/environment.h"
#include "identity/kubelet_names.h"

struct process_identity {
	/* OTEL_SERVICE_NAME of its environment, or service.name in its OTEL_RESOURCE_ATTRIBUTES; else its systemd unit; else its
	 * container's name in Kubernetes; else the first 12 digits of its container's id; else the name of its executable. "": a kernel
	 * thread */
	char service[128];
	char executable[128];  /* base name of /proc/PID/exe, without " (deleted)"; "": a kernel thread */
	char container_id[65]; /* 64 hexadecimal digits; "": it is in none */
	char pod_uid[37];      /* with dashes; a static pod's has 32 digits without; "": it is in none */
	struct kubelet_names kubernetes; /* "": it is in no container of this machine's kubelet */
	char unit[128];        /* nginx.service; "": none. A session and the manager of a user (user@1000.service) are none */
	char cgroup[256];      /* path in cgroup v2; where that is the root, in the v1 hierarchy of systemd, cpu or memory */
};

/* Reads it of a running process through /proc, and the values of those variables of its environment; `pid` is as in ours. 0; -ESRCH: the
 * process has ended, maybe while it was read; -EAGAIN: it is about to execute a program, or hides its environment: try again, but not for
 * ever; or another negative errno. What we may not read is "". All reading is bounded in bytes, but not in time (identity/environment.h):
 * for processes of other users use proxy_identity (proxy/proxy.h), or a thread that may wait. */
MUST_CHECK int process_identity_read(uint32_t pid, const struct environment_names *names, struct process_identity *ret_identity,
				     struct environment_values *ret_values);
