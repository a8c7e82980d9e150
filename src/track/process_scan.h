/* SPDX-License-Identifier: Apache-2.0 */
/* process_scan: reads the mappings of all processes, first those of root and our own user. Other users may have any number of processes and
 * mappings, so the time for reading them is bounded for each user and for all of them together. One thread. */
#pragma once
#include "base/diag.h"
#include "model/account.h"
#include "process/process_table.h"
#include "proxy/proxy.h"

struct process_scan {
	struct process_table *processes; /* borrowed */
	struct proxy *proxy;             /* borrowed; NULL: none */
	int stop_fd;                     /* -1: none; borrowed. Once it is set, the scan stops */
	/* CPU time beyond the first millisecond of each process: for one user, and for all users. */
	uint64_t user_ns, all_ns;
};

/* The processes that were left out. */
struct process_scan_left {
	uint32_t nr;
	uint32_t tgid, uid; /* of the first */
};

/* Scans the processes as of `time_ns`. Adds to *left. 0; -ENOMEM; or the error of /proc. */
MUST_CHECK int process_scan_run(const struct process_scan *scan, uint64_t time_ns, struct process_scan_left *left, struct diag *diag);
void process_scan_account(const struct process_scan_left *left, struct account *account);
