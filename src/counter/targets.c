// SPDX-License-Identifier: Apache-2.0
#include "counter/targets.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/cgroup.h"
#include "base/dir.h"
#include "base/number.h"
#include "base/u64_map.h"

void counter_targets_done(struct counter_targets *targets)
{
	free(targets->list);
	closep(&targets->cgroup_fd);
	*targets = (struct counter_targets)COUNTER_TARGETS_INIT;
}

/* Each pid once: twice would count twice. */
struct pids {
	int32_t *list;
	uint32_t nr, max;
	struct u64_map seen;
};

static void pids_done(struct pids *pids)
{
	free(pids->list);
	u64_map_done(&pids->seen);
}

static int add_pid(struct pids *pids, int32_t pid)
{
	if (u64_map_find(&pids->seen, (uint32_t)pid))
		return 0;
	if (u64_map_add(&pids->seen, (uint32_t)pid, 0))
		return -ENOMEM;
	if (!array_grow(&pids->list, pids->nr, &pids->max, sizeof(*pids->list), 16, TARGETS_MAX))
		return -ENOMEM;
	pids->list[pids->nr++] = pid;
	return 0;
}

/* Adds the threads that a process has now. Threads that they start later are counted with them. */
static int add_threads(struct pids *pids, uint32_t tgid, struct diag *diag)
{
	CLEANUP(closedirp) DIR *dir = NULL;
	const struct dirent *entry;
	bool has_any = false;
	char path[32];
	uint64_t tid;
	int err = 0;

	snprintf(path, sizeof(path), "/proc/%u/task", tgid);
	dir = opendir(path);
	if (!dir && errno == ENOENT)
		return diag_errno(diag, ESRCH, "there is no process %u", tgid);
	if (!dir)
		return diag_errno(diag, errno, "cannot read %s: %s", path, strerror(errno));
	while (!err && (entry = dir_next(dir, &err))) {
		if (number_u64(entry->d_name, INT32_MAX, &tid))
			continue;
		has_any = true;
		err = add_pid(pids, (int32_t)tid);
	}
	if (err && err != -ENOMEM)
		return diag_errno(diag, -err, "cannot read %s: %s", path, strerror(-err));
	return err || has_any ? err : diag_errno(diag, ESRCH, "process %u has just ended", tgid);
}

static int fill_pids(struct counter_targets *targets, const struct sonde_counter_options *options, struct pids *pids, struct diag *diag)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < options->nr_tids; i++)
		err = options->tids[i] > INT32_MAX ? diag_errno(diag, ESRCH, "there is no thread %u", options->tids[i])
						   : add_pid(pids, (int32_t)options->tids[i]);
	for (uint32_t i = 0; !err && i < options->nr_tgids; i++)
		err = add_threads(pids, options->tgids[i], diag);
	if (err || pids->nr)
		return err;
	targets->whole = options->cgroup || options->nr_cpus || options->all_cpus;
	return add_pid(pids, options->cgroup ? targets->cgroup_fd : targets->whole ? -1 : 0);
}

static int multiply(struct counter_targets *targets, const struct pids *pids, const uint32_t *cpus, uint32_t nr_cpus, struct diag *diag)
{
	uint64_t nr = (uint64_t)pids->nr * (nr_cpus ? nr_cpus : 1);

	if (nr > TARGETS_MAX)
		return diag_errno(diag, E2BIG, "%u threads on %u CPUs are more than can be counted", pids->nr, nr_cpus);
	targets->list = calloc(nr, sizeof(*targets->list));
	if (!targets->list)
		return -ENOMEM;
	for (uint32_t i = 0; i < pids->nr; i++) {
		for (uint32_t k = 0; k < (nr_cpus ? nr_cpus : 1); k++)
			targets->list[targets->nr++] = (struct target){ .pid = pids->list[i], .cpu = nr_cpus ? (int32_t)cpus[k] : -1 };
	}
	return 0;
}

int counter_targets_fill(struct counter_targets *targets, const struct sonde_counter_options *options, bool per_cpu, struct diag *diag)
{
	CLEANUP(pids_done) struct pids pids = { 0 };
	CLEANUP(cpus_done) struct cpus online = { 0 };
	int err = 0;

	if (options->cgroup && (options->nr_tids || options->nr_tgids))
		return diag_errno(diag, EINVAL, "a cgroup excludes processes and threads");
	if (options->nr_cpus && options->all_cpus)
		return diag_errno(diag, EINVAL, "all CPUs exclude a list of them");
	for (uint32_t i = 0; i < options->nr_cpus; i++) {
		if (options->cpus[i] >= CPUS_MAX)
			return diag_errno(diag, EINVAL, "there is no CPU %u", options->cpus[i]);
		for (uint32_t k = 0; k < i; k++) {
			if (options->cpus[k] == options->cpus[i])
				return diag_errno(diag, EINVAL, "CPU %u is in the list twice", options->cpus[i]);
		}
	}
	if (options->cgroup)
		err = cgroup_open(options->cgroup, diag, &targets->cgroup_fd);
	if (!err)
		err = fill_pids(targets, options, &pids, diag);
	if (err)
		return err;
	targets->is_split = !targets->whole && (options->nr_cpus || per_cpu);
	targets->may_vanish = options->nr_tgids || !options->nr_cpus;
	if (options->nr_cpus)
		return multiply(targets, &pids, options->cpus, options->nr_cpus, diag);
	if (!targets->whole && !per_cpu)
		return multiply(targets, &pids, NULL, 0, diag);
	err = cpus_read("online", diag, &online);
	targets->nr_all = online.nr;
	return err ? err : multiply(targets, &pids, online.ids, online.nr, diag);
}
