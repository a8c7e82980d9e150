// SPDX-License-Identifier: Apache-2.0
#include "session/target_filter.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cgroup.h"

#define ROOT_PID_NAMESPACE 0xEFFFFFFCu /* PROC_PID_INIT_INO, include/linux/proc_ns.h */

/* The kernel side knows only ids of the root namespace. Our own ids, and those in /proc, may differ. */
static bool in_root_pid_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) || st.st_ino == ROOT_PID_NAMESPACE;
}

int target_filter_find(const struct target_filter *filter, struct diag *diag, struct targets *ret_targets)
{
	if (filter->nr_tgids && filter->nr_tids)
		return diag_errno(diag, EINVAL, "process ids and thread ids exclude each other");
	if (filter->nr_tgids)
		return targets_of_tgids(filter->tgids, filter->nr_tgids, diag, ret_targets);
	return filter->nr_tids ? targets_of_tids(filter->tids, filter->nr_tids, diag, ret_targets) : 0;
}

static int find_targets(const struct target_filter *filter, struct account *account, struct diag *diag, struct targets *ret_targets)
{
	if (!in_root_pid_namespace()) {
		if (filter->nr_tgids || filter->nr_tids || filter->has_command)
			return diag_errno(diag, EXDEV,
					  "the kernel sees other process ids than a container: run sonde in the host's pid namespace");
		account_note(account, "run in a container's pid namespace: processes cannot be told apart; run sonde in the host's");
	}
	if (filter->has_command && (filter->nr_tgids || filter->nr_tids))
		return diag_errno(diag, EINVAL, "process ids, thread ids and a command exclude each other");
	return target_filter_find(filter, diag, ret_targets);
}

static int set_comm(const char *comm, struct diag *diag, struct sonde_config *config)
{
	if (!*comm || strlen(comm) >= SONDE_COMM_BYTES)
		return diag_errno(diag, EINVAL, "a name has 1 to %d characters, as the kernel keeps it: '%s'", SONDE_COMM_BYTES - 1, comm);
	config->filter_comm = 1;
	memcpy(config->comm, comm, strlen(comm));
	return 0;
}

static int set_cgroup(const char *text, struct diag *diag, struct sonde_config *config)
{
	struct cgroup cgroup = { 0 };
	int err = cgroup_find(text, diag, &cgroup);

	config->filter_cgroup = 1;
	config->cgroup_level = cgroup.level;
	config->cgroup_id = cgroup.id;
	return err;
}

int target_filter_resolve(const struct target_filter *filter, struct account *account, struct diag *diag, struct sonde_config *config,
			  struct targets *ret_targets)
{
	int err = filter->comm ? set_comm(filter->comm, diag, config) : 0;

	if (!err && filter->cgroup)
		err = set_cgroup(filter->cgroup, diag, config);
	if (!err)
		err = find_targets(filter, account, diag, ret_targets);
	config->filter_tgid = filter->nr_tgids || filter->has_command;
	config->filter_tid = filter->nr_tids != 0;
	return err;
}
