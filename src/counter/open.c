// SPDX-License-Identifier: Apache-2.0
/* Opens one counter: attributes, targets, and the reason in words when that fails. */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/small_file.h"
#include "counter/set.h"

static uint64_t flags_of(const struct sonde_counters *set, const struct counter *counter)
{
	return set->flags | counter->spec.event.flags | (counter->is_user_only ? SONDE_COUNTER_NO_KERNEL : 0);
}

static bool is_sampling(const struct counter *counter)
{
	return counter->spec.event.period || counter->spec.event.freq_hz;
}

static struct perf_event_attr attr_of(const struct sonde_counters *set, const struct counter *counter, bool is_leader, uint32_t type)
{
	const struct sonde_event *event = &counter->spec.event;
	uint64_t flags = flags_of(set, counter), kind = counter->spec.is_sum ? (uint64_t)type << PERF_PMU_TYPE_SHIFT : 0;
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = counter->spec.is_sum ? event->type : type,
		.config = event->config | kind,
		.config1 = event->config1,
		.config2 = event->config2,
		.read_format =
		    PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING | (counter->reads_group ? PERF_FORMAT_GROUP : 0),
		.disabled = is_leader && !(flags & SONDE_COUNTER_ENABLED), /* members follow their leader */
		.enable_on_exec = is_leader && flags & SONDE_COUNTER_ON_EXEC,
		.inherit = !(flags & SONDE_COUNTER_NO_INHERIT) && !set->targets.whole,
		.pinned = is_leader && flags & SONDE_COUNTER_PINNED,
		.exclusive = is_leader && flags & SONDE_COUNTER_EXCLUSIVE,
		.exclude_hv = !(flags & SONDE_COUNTER_HYPERVISOR) && !counter->without_excludes,
		.exclude_user = !!(flags & SONDE_COUNTER_NO_USER),
		.exclude_kernel = !!(flags & SONDE_COUNTER_NO_KERNEL),
		.exclude_host = !!(flags & SONDE_COUNTER_NO_HOST),
		.exclude_guest = !!(flags & SONDE_COUNTER_NO_GUEST),
		.exclude_idle = !!(flags & SONDE_COUNTER_NO_IDLE),
	};

	if (!is_sampling(counter))
		return attr;
	attr.freq = event->freq_hz != 0;
	attr.sample_period = event->freq_hz ? event->freq_hz : event->period; /* one field, two names */
	if (set->rings.bytes)
		rings_attr(&attr, set->max_callers);
	if (set->rings.bytes && !counter->without_lost)
		attr.read_format |= PERF_FORMAT_LOST;
	return attr;
}

static int perf_event_open(struct perf_event_attr *attr, struct target target, int group_fd, bool is_cgroup)
{
	return (int)syscall(SYS_perf_event_open, attr, target.pid, target.cpu, group_fd,
			    PERF_FLAG_FD_CLOEXEC | (is_cgroup ? PERF_FLAG_PID_CGROUP : 0));
}

/* Opens one descriptor. PMUs outside the cores know no modes and refuse to exclude one. Returns a negative errno on failure. */
static int open_target(const struct sonde_counters *set, struct counter *counter, struct target target, uint32_t type, int group_fd)
{
	struct perf_event_attr attr = attr_of(set, counter, group_fd < 0, type);
	int fd = perf_event_open(&attr, target, group_fd, set->targets.cgroup_fd >= 0);
	int err = fd < 0 ? -errno : 0;

	if (err == -EINVAL && attr.read_format & PERF_FORMAT_LOST) {
		attr.read_format &= ~(uint64_t)PERF_FORMAT_LOST;
		fd = perf_event_open(&attr, target, group_fd, set->targets.cgroup_fd >= 0);
		err = fd < 0 ? -errno : 0;
		counter->without_lost = !err;
	}
	if ((err == -EINVAL || err == -EOPNOTSUPP) && attr.exclude_hv && !attr.exclude_user && !attr.exclude_kernel) {
		attr.exclude_hv = 0;
		fd = perf_event_open(&attr, target, group_fd, set->targets.cgroup_fd >= 0);
		counter->without_excludes = fd >= 0;
	}
	if (fd >= 0)
		counter->reads_lost = attr.read_format & PERF_FORMAT_LOST;
	return fd < 0 ? err : fd;
}

/* Events that happen in the kernel only: without the kernel the count would be a 0 that says nothing. */
static bool is_of_kernel_alone(const struct counter *counter)
{
	const struct sonde_event *event = &counter->spec.event;

	return event->type == PERF_TYPE_SOFTWARE &&
	       (event->config == PERF_COUNT_SW_CONTEXT_SWITCHES || event->config == PERF_COUNT_SW_CPU_MIGRATIONS ||
		event->config == PERF_COUNT_SW_CGROUP_SWITCHES);
}

/* --- reasons -------------------------------------------------------------------------------------------------------------------------- */

static bool is_of_cores(const struct counter *counter)
{
	uint32_t type = counter->spec.event.type;

	return type == PERF_TYPE_HARDWARE || type == PERF_TYPE_HW_CACHE || type == PERF_TYPE_RAW;
}

/* Without the right to count the kernel, user space would be left to count. */
static bool has_user_part(const struct sonde_counters *set, const struct counter *counter)
{
	return !set->targets.whole && !(flags_of(set, counter) & (SONDE_COUNTER_NO_USER | SONDE_COUNTER_NO_KERNEL));
}

static int not_permitted(const struct sonde_counters *set, const struct counter *counter, int err, struct diag *diag)
{
	bool is_kernel = is_of_kernel_alone(counter), may_count_user = !is_kernel && has_user_part(set, counter);
	char level[16] = "?";
	int unread = small_file_read(AT_FDCWD, "/proc/sys/kernel/perf_event_paranoid", level, sizeof(level));

	return diag_errno(diag, err,
			  "'%s'%s is not permitted (kernel.perf_event_paranoid is %s): run as root, or give CAP_PERFMON to the program%s",
			  counter->spec.event.name, is_kernel ? " happens in the kernel, and counting that" : "",
			  unread ? "not to be read" : level, may_count_user ? "; user space alone (:u) may be permitted" : "");
}

static int say_why(const struct sonde_counters *set, const struct counter *counter, int err, struct diag *diag)
{
	const char *name = counter->spec.event.name;

	switch (err) {
	case EACCES:
	case EPERM:
		return not_permitted(set, counter, err, diag);
	case ENOENT:
	case ENODEV:
	case ENXIO:
	case EOPNOTSUPP:
		if (counter->spec.is_sum)
			return diag_errno(diag, err,
					  "not all kinds of cores of this machine count '%s': name the PMU of one that does, as in %s/%s/",
					  name, counter->spec.pmu.name, name);
		if (is_of_cores(counter))
			return diag_errno(diag, err, "the processors of this machine do not count '%s' (a virtual machine may hide them)",
					  name);
		return diag_errno(
		    diag, err, "this kernel does not count '%s' here%s", name,
		    set->targets.cgroup_fd >= 0
			? " (nothing is counted of cgroups of version 2 where /proc/cgroups has a hierarchy other than 0 for perf_event)"
			: "");
	case EINVAL:
		if (counter->spec.is_sum)
			return diag_errno(diag, err,
					  "this kernel does not count '%s' on all kinds of cores together: name the PMU of one and an "
					  "event that it has (" PMU_DEVICES "/%s/events)",
					  name, counter->spec.pmu.name);
		return diag_errno(diag, err, "the kernel refuses '%s' with these options%s", name,
				  is_of_cores(counter) || counter->spec.event.type == PERF_TYPE_SOFTWARE
				      ? ""
				      : ": not all PMUs count threads, or user space alone");
	case ESRCH:
		return diag_errno(diag, err, "the target of '%s' has ended or never existed", name);
	case EMFILE:
		return diag_errno(diag, err, "too many open files for '%s': ulimit -n %u, or more", name,
				  2 * set->nr * set->targets.nr + 64);
	case EBUSY:
		return diag_errno(diag, err, "another program has the PMU of '%s' for itself", name);
	default:
		return diag_errno(diag, err, "cannot open '%s': %s", name, strerror(err));
	}
}

/* --- targets -------------------------------------------------------------------------------------------------------------------------- */

/* PMUs outside the cores count for the machine as a whole, on CPUs of their own choice. */
static int masked_targets(const struct sonde_counters *set, const struct counter *counter, struct counter_targets *ret_targets,
			  struct diag *diag)
{
	const struct cpus *mask = &counter->spec.pmu.mask;
	struct counter_targets targets = COUNTER_TARGETS_INIT;

	if (!set->targets.whole || set->targets.cgroup_fd >= 0)
		return diag_errno(diag, EINVAL, "'%s' is counted for the whole machine only, not for processes: ask for all CPUs",
				  counter->spec.event.name);
	targets.list = calloc(mask->nr, sizeof(*targets.list));
	if (!targets.list)
		return -ENOMEM;
	for (uint32_t i = 0; i < mask->nr; i++) {
		for (uint32_t k = 0; k < set->targets.nr; k++) {
			if (set->targets.list[k].cpu == (int32_t)mask->ids[i])
				targets.list[targets.nr++] = set->targets.list[k];
		}
	}
	targets.whole = targets.may_vanish = true;
	*ret_targets = targets;
	return targets.nr ? 0 : diag_errno(diag, ENODEV, "'%s' is not counted on these CPUs", counter->spec.event.name);
}

void counter_close(struct counter *counter)
{
	for (uint32_t i = 0; i < counter->nr_fds; i++)
		closep(&counter->fds[i]);
	free(counter->fds);
	counter->fds = NULL;
	counter->nr_fds = 0;
}

/* A PMU of some of the cores counts on no other CPU. */
static bool is_elsewhere(const struct counter *counter, struct target target, int err)
{
	return err == -ENOENT && target.cpu >= 0 && counter->spec.pmu.is_of_cores;
}

/* Opens the counter on each unit at one target. When the target does not exist any more, sets *gone to the error. Returns 0, or a negative
 * errno with its reason. */
static int open_units(const struct sonde_counters *set, struct counter *counter, const struct counter_targets *targets, uint32_t at,
		      int *gone, struct diag *diag)
{
	const struct counter *leader = &set->counters[counter->leader];
	const struct pmu *pmu = &counter->spec.pmu;
	uint32_t nr_tried = 0, nr_elsewhere = 0;

	for (uint32_t i = 0; i < pmu->nr_types; i++) {
		int group_fd = leader == counter ? -1 : leader->fds[counter->nr_fds], fd = -1;

		counter->fds[counter->nr_fds++] = -1;
		if (leader != counter && group_fd < 0)
			continue; /* without its leader it cannot be opened */
		fd = open_target(set, counter, targets->list[at], pmu->types[i], group_fd);
		nr_tried++;
		if (is_elsewhere(counter, targets->list[at], fd))
			nr_elsewhere++;
		else if (fd < 0 && (!targets->may_vanish || (fd != -ESRCH && fd != -ENODEV)))
			return say_why(set, counter, -fd, diag);
		*gone = fd < 0 ? fd : *gone;
		counter->fds[counter->nr_fds - 1] = fd < 0 ? -1 : fd;
	}
	/* each CPU is of one kind of cores; if no kind counts the event here, the sum would lack a part */
	return counter->spec.is_sum && nr_tried && nr_elsewhere == nr_tried ? say_why(set, counter, ENOENT, diag) : 0;
}

/* Returns 0, or a negative errno with its reason. When all targets are gone: the error of the last one. */
static int open_targets(const struct sonde_counters *set, struct counter *counter, const struct counter_targets *targets, struct diag *diag)
{
	int err = 0, gone = -ESRCH;

	counter->fds = calloc((size_t)targets->nr * counter->spec.pmu.nr_types, sizeof(*counter->fds));
	if (!counter->fds)
		return -ENOMEM;
	for (uint32_t i = 0; !err && i < targets->nr; i++)
		err = open_units(set, counter, targets, i, &gone, diag);
	if (err)
		return err;
	for (uint32_t i = 0; i < counter->nr_fds; i++) {
		if (counter->fds[i] >= 0)
			return 0;
	}
	return say_why(set, counter, -gone, diag);
}

static int add_rings(struct sonde_counters *set, uint32_t i, const struct counter_targets *targets, struct diag *diag)
{
	struct counter *counter = &set->counters[i];
	uint32_t nr_before = set->rings.nr;
	int err = 0;

	if (!set->rings.bytes || !is_sampling(counter))
		return 0;
	for (uint32_t k = 0; !err && k < counter->nr_fds; k++) {
		if (counter->fds[k] >= 0)
			err = rings_add(&set->rings, i, counter->fds[k], targets->list[k / counter->spec.pmu.nr_types], diag);
	}
	if (err)
		rings_cut(&set->rings, nr_before);
	return err;
}

static int open_with_leader(struct sonde_counters *set, uint32_t i, struct diag *diag)
{
	struct counter *counter = &set->counters[i], *leader = &set->counters[counter->leader];
	CLEANUP(counter_targets_done) struct counter_targets masked = COUNTER_TARGETS_INIT;
	const struct counter_targets *targets = counter->spec.pmu.mask.nr ? &masked : &set->targets;
	int err = 0;

	if (is_of_kernel_alone(counter) && flags_of(set, counter) & SONDE_COUNTER_NO_KERNEL)
		return diag_errno(diag, EOPNOTSUPP, "'%s' happens in the kernel, which is not counted",
				  counter->spec.event.name);
	if (leader != counter && leader->spec.err)
		return diag_errno(diag, -leader->spec.err, "the first of its group, '%s', cannot be had", leader->spec.event.name);
	if (counter->spec.pmu.mask.nr)
		err = masked_targets(set, counter, &masked, diag);
	if (!err && leader != counter && leader->nr_fds != targets->nr * counter->spec.pmu.nr_types)
		err = diag_errno(diag, EINVAL, "'%s' and '%s' are of different PMUs: they cannot be one group", leader->spec.event.name,
				 counter->spec.event.name);
	if (!err)
		err = open_targets(set, counter, targets, diag);
	return err ? err : add_rings(set, i, targets, diag);
}

/* As perf does. Most tracepoints are in the kernel: in user space alone they would count a 0 that says nothing. */
static bool may_fall_back(const struct sonde_counters *set, const struct counter *counter)
{
	return has_user_part(set, counter) && !(set->flags & SONDE_COUNTER_NO_FALLBACK) && !is_of_kernel_alone(counter) &&
	       counter->spec.event.type != PERF_TYPE_TRACEPOINT;
}

int counter_open(struct sonde_counters *set, uint32_t i)
{
	struct counter *counter = &set->counters[i];
	struct diag diag = { 0 };
	int err;

	if (counter->spec.err)
		return 0;
	err = open_with_leader(set, i, &diag);
	if (err == -EACCES && may_fall_back(set, counter)) {
		counter_close(counter);
		counter->is_user_only = true;
		diag = (struct diag){ 0 };
		err = open_with_leader(set, i, &diag);
	}
	if (!err)
		return 0;
	counter_close(counter);
	if (!diag.err)
		return err; /* no memory */
	counter->spec.err = err;
	counter->spec.diag = diag;
	return 0;
}
