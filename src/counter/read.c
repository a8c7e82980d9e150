// SPDX-License-Identifier: Apache-2.0
/* What can be done with an open set. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/clock.h"
#include "counter/set.h"


/* `what` is the word for messages: "'cycles' cannot be started". */
static int control(struct sonde_counters *set, unsigned long request, const char *what)
{
	int err = 0;

	if (!set)
		return -EINVAL;
	pthread_mutex_lock(&set->lock);
	for (uint32_t i = 0; i < set->nr; i++) {
		const struct counter *counter = &set->counters[i];

		/* the state of a leader is that of its group */
		for (uint32_t k = 0; counter->leader == i && k < counter->nr_fds; k++) {
			if (counter->fds[k] >= 0 && ioctl(counter->fds[k], request, 0) && !err)
				err = counters_fail(set, -errno, "'%s' cannot be %s: %s", counter->spec.event.name, what, strerror(errno));
		}
	}
	pthread_mutex_unlock(&set->lock);
	return err;
}

int sonde_counters_start(struct sonde_counters *set)
{
	return control(set, PERF_EVENT_IOC_ENABLE, "started");
}

int sonde_counters_stop(struct sonde_counters *set)
{
	return control(set, PERF_EVENT_IOC_DISABLE, "stopped");
}

/* --- reading -------------------------------------------------------------------------------------------------------------------------- */

/* Where the leader reads lost overflows, each value is followed by their number. */
struct raw_group {
	uint64_t nr, enabled_ns, running_ns, values[2 * SPEC_MAX_EVENTS];
};

/* A pinned counter that found no room on the PMU reads as end of file. */
static int read_whole(int fd, void *raw, size_t size)
{
	ssize_t nr = read(fd, raw, size);

	if (nr < 0)
		return -errno;
	return nr == 0 ? -EBUSY : (size_t)nr == size ? 0 : -EIO;
}

static int read_alone(const struct counter *counter, uint32_t target, uint64_t raw[4])
{
	return read_whole(counter->fds[target], raw, (counter->reads_lost ? 4 : 3) * sizeof(*raw));
}

static int add_alone(const struct counter *counter, uint32_t target, struct reading *sum)
{
	uint64_t raw[4];
	int err = read_alone(counter, target, raw);

	if (err)
		return err;
	sum->value += raw[0];
	sum->enabled_ns += raw[1];
	sum->running_ns += raw[2];
	return 0;
}

static bool is_member_at(const struct sonde_counters *set, uint32_t i, uint32_t leader, uint32_t target)
{
	const struct counter *counter = &set->counters[i];

	return counter->leader == leader && counter->fds && counter->fds[target] >= 0;
}

static int read_group(const struct sonde_counters *set, uint32_t leader, uint32_t target, struct raw_group *raw)
{
	uint32_t nr = 0, words = set->counters[leader].reads_lost ? 2 : 1;
	int err;

	for (uint32_t i = leader; i < set->nr; i++)
		nr += is_member_at(set, i, leader, target);
	err = read_whole(set->counters[leader].fds[target], raw, offsetof(struct raw_group, values) + nr * words * sizeof(*raw->values));
	return err || raw->nr == nr ? err : -EIO;
}

/* Members are in the order in which they were opened. */
static int add_group(struct sonde_counters *set, uint32_t leader, uint32_t target)
{
	struct raw_group raw;
	uint32_t at = 0, words = set->counters[leader].reads_lost ? 2 : 1;
	int err = read_group(set, leader, target, &raw);

	if (err)
		return err;
	for (uint32_t i = leader; i < set->nr; i++) {
		if (!is_member_at(set, i, leader, target))
			continue;
		set->now[i].value += raw.values[words * at++];
		set->now[i].enabled_ns += raw.enabled_ns;
		set->now[i].running_ns += raw.running_ns;
	}
	return 0;
}

static bool is_read_by_leader(const struct sonde_counters *set, uint32_t i)
{
	return set->counters[i].leader != i && set->counters[set->counters[i].leader].reads_group;
}

/* A thread's counter for one CPU, or for one kind of cores, stays enabled while the thread runs elsewhere. So the sum of enabled times is
 * a multiple of the thread's time. With a list of some CPUs, how long the thread ran there uncounted is unknown. */
static void mend_time(const struct counter_targets *targets, const struct spec *spec, struct reading *reading)
{
	if (targets->is_split && targets->nr_all)
		reading->enabled_ns /= targets->nr_all;
	else if (!targets->is_split && !targets->whole && spec->is_sum)
		reading->enabled_ns /= spec->pmu.nr_types;
	if ((targets->is_split && !targets->nr_all) || ((targets->is_split || spec->is_sum) && reading->enabled_ns < reading->running_ns))
		reading->enabled_ns = reading->running_ns;
}

/* A member takes over the error of its leader. */
static void read_counters(struct sonde_counters *set)
{
	for (uint32_t i = 0; i < set->nr; i++)
		set->now[i] = (struct reading){ .err = set->counters[i].spec.err };
	for (uint32_t i = 0; i < set->nr; i++) {
		const struct counter *counter = &set->counters[i];

		if (!counter->fds)
			continue;
		if (is_read_by_leader(set, i)) {
			set->now[i].err = set->now[counter->leader].err;
			continue;
		}
		for (uint32_t k = 0; !set->now[i].err && k < counter->nr_fds; k++) {
			if (counter->fds[k] >= 0)
				set->now[i].err = counter->reads_group ? add_group(set, i, k) : add_alone(counter, k, &set->now[i]);
		}
	}
	for (uint32_t i = 0; i < set->nr; i++)
		mend_time(&set->targets, &set->counters[i].spec, &set->now[i]);
}

/* The first error of an open counter. */
static int first_error(struct sonde_counters *set)
{
	for (uint32_t i = 0; i < set->nr; i++) {
		int err = set->now[i].err;

		if (set->counters[i].fds && err)
			return counters_fail(set, err, "'%s' cannot be read: %s", set->counters[i].spec.event.name,
					     err == -EBUSY ? "it is pinned, and the PMU has no room for it" : strerror(-err));
	}
	return 0;
}

/* The kernel resets values, but neither times nor the counts of threads that have ended. So the old reading is subtracted. */
int sonde_counters_reset(struct sonde_counters *set)
{
	int err;

	if (!set)
		return -EINVAL;
	pthread_mutex_lock(&set->lock);
	read_counters(set);
	for (uint32_t i = 0; i < set->nr; i++) {
		if (!set->now[i].err)
			set->base[i] = set->now[i];
	}
	err = first_error(set);
	pthread_mutex_unlock(&set->lock);
	return err;
}

void sonde_count_scale(struct sonde_count *count)
{
	if (count->err || count->scaled || !count->running_ns || count->running_ns >= count->enabled_ns)
		return;
	count->value = (uint64_t)((unsigned __int128)count->value * count->enabled_ns / count->running_ns);
	count->scaled = true;
}

static struct sonde_count count_of(const struct reading *now, const struct reading *base, bool scale)
{
	struct sonde_count count = { .value = now->value - base->value,
				     .enabled_ns = now->enabled_ns - base->enabled_ns,
				     .running_ns = now->running_ns - base->running_ns };

	if (now->err)
		return (struct sonde_count){ .err = now->err };
	if (scale)
		sonde_count_scale(&count);
	return count;
}

int sonde_counters_read(struct sonde_counters *set, struct sonde_count *ret_counts, uint32_t nr)
{
	int err;

	if (!set)
		return -EINVAL;
	pthread_mutex_lock(&set->lock);
	read_counters(set);
	for (uint32_t i = 0; i < nr; i++)
		ret_counts[i] = i < set->nr ? count_of(&set->now[i], &set->base[i], set->flags & SONDE_COUNTER_SCALE)
					    : (struct sonde_count){ .err = -EINVAL };
	err = nr > set->nr ? counters_fail(set, -EINVAL, "the set has %u events, not %u", set->nr, nr) : first_error(set);
	pthread_mutex_unlock(&set->lock);
	return err;
}

/* --- overflows ------------------------------------------------------------------------------------------------------------------------ */

/* Adds a counter's lost overflows at one target. A pinned one that found no room on the PMU has no number. */
static int add_lost(const struct sonde_counters *set, uint32_t i, uint32_t target, uint64_t *sum)
{
	const struct counter *counter = &set->counters[i];
	struct raw_group group;
	uint64_t alone[4];
	int err = counter->reads_group ? read_group(set, i, target, &group) : read_alone(counter, target, alone);

	if (!err)
		*sum += counter->reads_group ? group.values[1] : alone[3];
	return err == -EBUSY ? 0 : err;
}

/* The number of lost overflows not reported yet. The rings report losses only with the next record. So where counters know the number, it
 * replaces that of the rings. */
static int count_lost(struct sonde_counters *set, uint64_t *ret_nr)
{
	bool reads_lost = false;
	uint64_t sum = 0;
	int err = 0;

	for (uint32_t i = 0; i < set->nr; i++) {
		const struct counter *counter = &set->counters[i];

		reads_lost |= counter->reads_lost;
		for (uint32_t k = 0; !err && counter->reads_lost && k < counter->nr_fds; k++)
			err = counter->fds[k] < 0 ? 0 : add_lost(set, i, k, &sum);
	}
	if (err || !reads_lost)
		return err;
	*ret_nr = sum > set->nr_lost ? sum - set->nr_lost : 0;
	set->nr_lost = sum;
	return 0;
}

static int fail_overflows(struct sonde_counters *set, int err)
{
	return counters_fail(set, err, "%s",
			     err == -ENODATA
				 ? "no overflows are recorded: that takes events with a period or a frequency, and memory for them"
			     : err == -ESRCH ? "all that was counted has ended"
					     : strerror(-err));
}

int sonde_counters_overflows(struct sonde_counters *set, void (*callback)(void *arg, const struct sonde_overflow *overflow), void *arg,
			     uint64_t *ret_nr_lost)
{
	uint64_t nr_lost = 0;
	int err;

	if (!set)
		return -EINVAL;
	pthread_mutex_lock(&set->lock);
	err = set->rings.nr ? rings_read(&set->rings, callback, arg, &nr_lost) : -ENODATA;
	if (!err)
		err = count_lost(set, &nr_lost);
	if (err)
		fail_overflows(set, err);
	pthread_mutex_unlock(&set->lock);
	if (!err && ret_nr_lost)
		*ret_nr_lost = nr_lost;
	return err;
}

/* Rings whose threads have ended would be ready for ever, so they are not polled again. Returns how many are polled. */
static uint32_t fill_polls(struct sonde_counters *set, struct pollfd *polls, bool *ret_has_data)
{
	uint32_t nr_asked = 0;

	pthread_mutex_lock(&set->lock);
	for (uint32_t i = 0; i < set->rings.nr; i++) {
		struct ring *ring = &set->rings.list[i];

		ring->is_over |= !!(polls[i].revents & (POLLHUP | POLLERR));
		polls[i] = (struct pollfd){ .fd = ring->is_over ? -1 : ring->fd, .events = POLLIN };
		nr_asked += !ring->is_over;
	}
	*ret_has_data = rings_have_data(&set->rings);
	pthread_mutex_unlock(&set->lock);
	return nr_asked;
}

/* The rest of the time, rounded up. */
static int left_ms(uint64_t end_ns)
{
	uint64_t now_ns = clock_ns();

	return end_ns > now_ns ? (int)((end_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS) : 0;
}

static int wait_for(struct sonde_counters *set, int timeout_ms)
{
	CLEANUP(freep) struct pollfd *polls = NULL;
	uint64_t end_ns = clock_ns() + (timeout_ms > 0 ? (uint64_t)timeout_ms * NS_PER_MS : 0);
	bool has_data = false;
	int nr_ready = 1;

	if (!set->rings.nr)
		return -ENODATA;
	polls = calloc(set->rings.nr, sizeof(*polls));
	if (!polls)
		return -ENOMEM;
	while (nr_ready > 0) {
		uint32_t nr_asked = fill_polls(set, polls, &has_data);

		if (has_data)
			return 1;
		if (!nr_asked)
			return -ESRCH;
		nr_ready = poll(polls, set->rings.nr, timeout_ms < 0 ? -1 : left_ms(end_ns));
	}
	return nr_ready < 0 && errno != EINTR ? -errno : 0;
}

int sonde_counters_wait(struct sonde_counters *set, int timeout_ms)
{
	int result = set ? wait_for(set, timeout_ms) : -EINVAL;

	if (!set || result >= 0)
		return result;
	pthread_mutex_lock(&set->lock);
	fail_overflows(set, result);
	pthread_mutex_unlock(&set->lock);
	return result;
}

/* The kernel runs a tracepoint's program once per hit of the tracepoint, whoever counts it. So one counter is enough. */
static int attach(struct sonde_counters *set, uint32_t i, int program_fd)
{
	const struct counter *counter = i < set->nr ? &set->counters[i] : NULL;

	if (!counter)
		return counters_fail(set, -EINVAL, "the set has %u events, and none with the number %u", set->nr, i);
	if (!counter->fds)
		return counters_fail(set, counter->spec.err, "%s", counter->spec.diag.text);
	for (uint32_t k = 0; k < counter->nr_fds; k++) {
		if (counter->fds[k] < 0)
			continue;
		if (ioctl(counter->fds[k], PERF_EVENT_IOC_SET_BPF, program_fd))
			return counters_fail(set, -errno, "the program cannot be attached to '%s': %s", counter->spec.event.name,
					     strerror(errno));
		if (counter->spec.event.type == PERF_TYPE_TRACEPOINT)
			break;
	}
	return 0;
}

int sonde_counters_attach_bpf(struct sonde_counters *set, uint32_t i, int program_fd)
{
	int err;

	if (!set)
		return -EINVAL;
	pthread_mutex_lock(&set->lock);
	err = attach(set, i, program_fd);
	pthread_mutex_unlock(&set->lock);
	return err;
}
