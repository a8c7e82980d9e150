// SPDX-License-Identifier: Apache-2.0
#include "track/process_scan.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/number.h"
#include "base/stop_fd.h"
#include "base/u64_map.h"
#include "proxy/credentials.h"

#define FREE_NS NS_PER_MS     /* not charged, for each process: enough for one with a thousand mappings */
#define MAX_LATER (1u << 22)  /* the kernel's PID_MAX_LIMIT */

struct strangers {
	uint32_t *tgids;
	uint32_t nr, max;
	struct u64_map spent_us;  /* by uid */
	uint64_t all_us;
};

static void strangers_done(struct strangers *strangers)
{
	free(strangers->tgids);
	u64_map_done(&strangers->spent_us);
}

/* Ignores processes that have ended or that we may not read. */
static int scan_one(const struct process_scan *scan, uint32_t tgid, uint64_t time_ns)
{
	int err = process_table_scan(scan->processes, tgid, time_ns, NULL);

	return err == -ENOMEM ? err : 0;
}

/* Scans the trusted processes; collects the others in `later`. */
static int scan_trusted(const struct process_scan *scan, DIR *proc, uint64_t time_ns, struct strangers *later)
{
	const struct dirent *entry;
	int err = 0;

	while (!err && (entry = readdir(proc)) && !stop_fd_is_set(scan->stop_fd)) {
		uint64_t tgid;

		if (number_u64(entry->d_name, UINT32_MAX, &tgid))
			continue;
		if (proxy_trusts(scan->proxy, (uint32_t)tgid))
			err = scan_one(scan, (uint32_t)tgid, time_ns);
		else if (!array_grow(&later->tgids, later->nr, &later->max, sizeof(*later->tgids), 256, MAX_LATER))
			err = -ENOMEM;
		else
			later->tgids[later->nr++] = (uint32_t)tgid;
	}
	return err;
}

static uint64_t cpu_ns(const struct process_scan *scan)
{
	return clock_of_ns(CLOCK_THREAD_CPUTIME_ID) + proxy_cpu_ns(scan->proxy);
}

static int charge(struct strangers *strangers, uint32_t uid, uint64_t took_ns)
{
	uint64_t us = took_ns > FREE_NS ? (took_ns - FREE_NS) / NS_PER_US : 0;
	uint32_t *spent = u64_map_find(&strangers->spent_us, uid);

	strangers->all_us += us;
	if (spent)
		*spent += (uint32_t)us;
	return spent || !us ? 0 : u64_map_add(&strangers->spent_us, uid, (uint32_t)us);
}

static bool has_left(const struct process_scan *scan, const struct strangers *strangers, uint32_t uid)
{
	const uint32_t *spent = u64_map_find(&strangers->spent_us, uid);

	return (spent ? *spent : 0) < scan->user_ns / NS_PER_US && strangers->all_us < scan->all_ns / NS_PER_US;
}

static void leave_out(struct process_scan_left *left, uint32_t tgid, uint32_t uid)
{
	if (!left->nr++) {
		left->tgid = tgid;
		left->uid = uid;
	}
}

static int scan_credentials(const struct process_scan *scan, uint32_t tgid, uint64_t time_ns, struct strangers *strangers,
			    struct process_scan_left *left)
{
	uint32_t uid = credentials_uid(tgid);
	uint64_t from_ns, to_ns;
	int err;

	if (uid == CREDENTIALS_GONE)
		return 0;
	if (!has_left(scan, strangers, uid)) {
		leave_out(left, tgid, uid);
		return 0;
	}
	from_ns = cpu_ns(scan);
	err = scan_one(scan, tgid, time_ns);
	to_ns = cpu_ns(scan);
	return err || to_ns < from_ns ? err : charge(strangers, uid, to_ns - from_ns); /* less: the proxy was restarted */
}

int process_scan_run(const struct process_scan *scan, uint64_t time_ns, struct process_scan_left *left, struct diag *diag)
{
	CLEANUP(closedirp) DIR *proc = opendir("/proc");
	CLEANUP(strangers_done) struct strangers later = { 0 };
	int err;

	if (!proc)
		return diag_errno(diag, errno, "cannot read /proc: %s", strerror(errno));
	err = scan_trusted(scan, proc, time_ns, &later);
	for (uint32_t i = 0; !err && i < later.nr && !stop_fd_is_set(scan->stop_fd); i++)
		err = scan_credentials(scan, later.tgids[i], time_ns, &later, left);
	return err;
}

void process_scan_account(const struct process_scan_left *left, struct account *account)
{
	if (left->nr)
		account_note(account,
			     "%u times the mappings of a process were not read, first of process %u of user %u, as others of his, or of "
			     "all users, have so many: its stacks end at their first frame",
			     left->nr, left->tgid, left->uid);
}
