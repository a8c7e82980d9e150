/* SPDX-License-Identifier: Apache-2.0 */
/* process_scan: reads what all processes have mapped, root's and our user's first. Others may have so many mappings and so many processes
 * as they like: what reading them may take is bounded for each user, and for all of them together. One thread. */
#pragma once
#include "base/diag.h"
#include "model/account.h"
#include "process/process_table.h"
#include "proxy/proxy.h"

struct process_scan {
	struct process_table *processes; /* borrowed */
	struct proxy *proxy;             /* borrowed; NULL: none */
	int stop_fd;                     /* -1: none; borrowed: whoever has told it does not wait for the rest */
	uint64_t user_ns, all_ns;        /* of CPU time beyond the first millisecond of each process: of one user's, and of all users' */
};

/* What was left out in the end. */
struct process_scan_left {
	uint32_t nr;
	uint32_t tgid, uid; /* of the first */
};

/* What there is to read at `time_ns`. *left grows. 0; -ENOMEM; or what /proc gave. */
MUST_CHECK int process_scan_run(const struct process_scan *scan, uint64_t time_ns, struct process_scan_left *left, struct diag *diag);
void process_scan_account(const struct process_scan_left *left, struct account *account);
