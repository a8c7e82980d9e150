// SPDX-License-Identifier: Apache-2.0
/* The run queue: from the options to the reports. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>

#include <sonde/runq.h>

#include "base/clock.h"
#include "base/sized.h"
#include "base/stop_fd.h"
#include "session/account_common.h"
#include "session/failure.h"
#include "session/engine.h"
#include "session/prev_stacks.h"
#include "session/profile_file.h"
#include "session/runq_report.h"
#include "session/target.h"
#include "session/whose.h"

#define LINES_BYTES_MAX ((size_t)64 << 20)
#define LINES_BYTES_MANY ((size_t)1 << 20) /* are not gathered any further */

struct sonde_runq {
	struct sonde_runq_options options; /* texts and lists are not kept */
	struct diag diag;
	int exit_code, stop_fd;
	uint64_t looked_ns; /* at the list of CPUs */
	bool is_ready;                     /* to run, once */
	struct targets targets;
	struct sonde_profile *file;
	struct runq_report *report;
	struct prev_stacks *stacks;        /* NULL: not asked for */
	struct runq_programs *programs;
	struct buffer lines, account;
	uint64_t unix_offset_ns;
};

static int fail(struct sonde_runq *runq, enum sonde_exit code, int err)
{
	if (!runq->exit_code)
		runq->exit_code = code;
	return err;
}

static int fail_setup(struct sonde_runq *runq, int err)
{
	return fail(runq, failure_code(err, &runq->diag), err);
}

static int check_options(struct sonde_runq *runq)
{
	struct sonde_runq_options *o = &runq->options;
	bool latency = o->question == SONDE_RUNQ_LATENCY, length = o->question == SONDE_RUNQ_LENGTH;

	if (!o->text || o->question > SONDE_RUNQ_LENGTH || o->by > SONDE_RUNQ_BY_COMM)
		return diag_errno(&runq->diag, EINVAL, "the options ask for nothing that there is");
	if (o->slower && !latency)
		return diag_errno(&runq->diag, EINVAL, "waits longer than a limit are told of run queue latency alone");
	if (o->slower && o->by && !o->histogram)
		return diag_errno(&runq->diag, EINVAL, "a histogram for each of something is one of --hist: waits are told with all that there is to them");
	if (o->histogram && !o->slower)
		return diag_errno(&runq->diag, EINVAL, "there is a histogram anyway");
	if (o->stacks && !o->slower)
		return diag_errno(&runq->diag, EINVAL, "stacks are those of who had the CPU in a wait: they go with waits longer than a limit");
	if (length && (o->nr_tgids || o->nr_tids || o->comm || o->cgroup))
		return diag_errno(&runq->diag, EINVAL, "the length of a queue is a CPU's, not of threads: ask for all of them");
	if (length && o->by && o->by != SONDE_RUNQ_BY_CPU)
		return diag_errno(&runq->diag, EINVAL, "the length of a queue is a CPU's: a histogram for each CPU, or one for all");
	if (length && o->milliseconds)
		return diag_errno(&runq->diag, EINVAL, "the length of a queue is a number of threads, no time");
	if (o->slower && !o->slower_ns)
		o->slower_ns = SONDE_DEFAULT_SLOWER_NS;
	return 0;
}

static int load(struct sonde_runq *runq, struct runq_programs_options *options)
{
	static const enum runq_what questions[] = { [SONDE_RUNQ_LATENCY] = RUNQ_WAITS, [SONDE_RUNQ_ON_CPU] = RUNQ_STAYS, [SONDE_RUNQ_LENGTH] = RUNQ_LENGTHS };
	static const enum sonde_runq_key_kind keys[] = { [SONDE_RUNQ_BY_PID] = SONDE_RUNQ_KEY_TGID, [SONDE_RUNQ_BY_TID] = SONDE_RUNQ_KEY_TID,
							 [SONDE_RUNQ_BY_CGROUP] = SONDE_RUNQ_KEY_CGROUP, [SONDE_RUNQ_BY_COMM] = SONDE_RUNQ_KEY_COMM };
	const struct sonde_runq_options *o = &runq->options;
	CLEANUP(freep) uint32_t *ids = calloc(runq->targets.nr ?: 1, sizeof(*ids));
	int err;

	if (!ids)
		return -ENOMEM;
	for (uint32_t i = 0; i < runq->targets.nr; i++)
		ids[i] = runq->targets.list[i].tid ? runq->targets.list[i].tid : runq->targets.list[i].tgid;
	options->targets = ids;
	options->nr_targets = runq->targets.nr;
	options->what = questions[o->question];
	options->each_cpu = o->by == SONDE_RUNQ_BY_CPU;
	options->freq_hz = SONDE_RUNQ_LENGTH_HZ;
	options->runq.slower_ns = o->slower ? o->slower_ns : SONDE_RUNQ_NONE_SLOWER;
	options->runq.unit_ns = o->milliseconds ? NS_PER_MS : NS_PER_US;
	options->runq.histogram = !o->slower || o->histogram;
	options->runq.stacks = o->stacks;
	options->sampler = o->stacks ? prev_stacks_sampler(runq->stacks) : NULL;
	options->runq.key = o->by < ARRAY_SIZE(keys) ? keys[o->by] : SONDE_RUNQ_KEY_NONE;
	err = runq_programs_new(options, &runq->diag, &runq->programs);
	options->targets = NULL;
	return err;
}

static int set_up(struct sonde_runq *runq, const struct sonde_runq_options *options)
{
	const struct whose whose = { .tgids = options->tgids, .tids = options->tids, .nr_tgids = options->nr_tgids, .nr_tids = options->nr_tids, .comm = options->comm,
				     .cgroup = options->cgroup };
	struct runq_programs_options programs = { 0 };
	struct account *account;
	int err;

	runq->stop_fd = stop_fd_new();
	runq->file = sonde_profile_new();
	if (runq->file)
		runq->file->profile = profile_new();
	if (!runq->file || !runq->file->profile || runq->stop_fd < 0)
		return fail_setup(runq, -ENOMEM);
	runq->file->histograms_alone = true;
	account = profile_account(runq->file->profile);
	account_begin(account, options->command_line);
	err = whose_resolve(&whose, account, &runq->diag, &programs.config, &runq->targets);
	if (err)
		return err == -EINVAL ? fail(runq, SONDE_EXIT_USAGE, err) : fail_setup(runq, err);
	runq->report = runq_report_new(&runq->options, runq->file->profile);
	err = runq->report ? 0 : -ENOMEM;
	if (!err && runq->options.stacks)
		err = prev_stacks_new(&runq->diag, &runq->stacks);
	if (!err)
		err = load(runq, &programs);
	if (!err && runq->stacks)
		err = prev_stacks_start(runq->stacks, &runq->diag);
	runq->is_ready = !err;
	return err ? fail_setup(runq, err) : 0;
}

int sonde_runq_new(const struct sonde_runq_options *options, struct sonde_runq **ret_runq)
{
	struct sonde_runq *runq = calloc(1, sizeof(*runq));
	int err;

	*ret_runq = runq;
	if (!runq)
		return -ENOMEM;
	runq->stop_fd = -1;
	runq->lines = BUFFER_INIT(LINES_BYTES_MAX);
	runq->account = BUFFER_INIT(1 << 16);
	err = sized_options(&runq->options, sizeof(runq->options), options, &runq->diag) ?: check_options(runq);
	return err ? fail(runq, SONDE_EXIT_USAGE, err) : set_up(runq, &runq->options);
}

void sonde_runq_free(struct sonde_runq *runq)
{
	if (!runq)
		return;
	runq_programs_free(runq->programs);
	prev_stacks_free(runq->stacks);
	runq_report_free(runq->report);
	sonde_profile_free(runq->file);
	targets_done(&runq->targets);
	buffer_done(&runq->lines);
	buffer_done(&runq->account);
	closep(&runq->stop_fd);
	free(runq);
}

const char *sonde_runq_error(const struct sonde_runq *runq)
{
	return runq ? runq->diag.text : strerror(ENOMEM);
}

int sonde_runq_exit_code(const struct sonde_runq *runq)
{
	return runq ? runq->exit_code : SONDE_EXIT_FAILED;
}

struct sonde_profile *sonde_runq_profile(struct sonde_runq *runq)
{
	return runq ? runq->file : NULL;
}

void sonde_runq_stop(struct sonde_runq *runq)
{
	if (runq)
		stop_fd_tell(runq->stop_fd);
}

/* Hands over what has gathered. */
static int tell(struct sonde_runq *runq)
{
	int err = runq->lines.err;

	if (!err && runq->lines.size)
		err = runq->options.text(runq->options.arg, runq->lines.data);
	runq->lines.size = 0;
	return err;
}

static int take_wait(void *arg, const struct sonde_runq_record *record)
{
	struct sonde_runq *runq = arg;

	runq_report_wait(&runq->lines, record, runq->unix_offset_ns);
	return 0;
}

static int take_slow(void *arg, const struct sonde_slow_record *record)
{
	struct sonde_runq *runq = arg;
	int err;

	runq_report_wait(&runq->lines, &record->wait, runq->unix_offset_ns);
	err = prev_stacks_print(runq->stacks, record, &runq->lines);
	return err || runq->lines.size < LINES_BYTES_MANY ? err : tell(runq);
}

/* The waits that have come, as lines. */
static int take_waits(struct sonde_runq *runq, uint64_t max_records)
{
	return runq->stacks ? prev_stacks_read(runq->stacks, max_records, take_slow, runq, &runq->diag) : runq_programs_waits(runq->programs, take_wait, runq);
}

static int report(struct sonde_runq *runq)
{
	int err;

	if (runq->options.slower && !runq->options.histogram)
		return 0;
	if (runq->options.timestamps && !runq->options.quiet)
		runq_report_time(&runq->lines, clock_ns() + runq->unix_offset_ns);
	err = runq_report_take(runq->report, runq->programs, runq->options.quiet ? NULL : &runq->lines);
	return err ? err : tell(runq);
}

/* Waits for the next thing to do. True: the end has come. */
static bool is_end(struct sonde_runq *runq, uint64_t until_ns)
{
	int of_stacks[PREV_STACKS_FDS] = { -1, -1 };
	struct pollfd fds[2 + PREV_STACKS_FDS];
	uint64_t now = clock_ns();
	int timeout_ms = until_ns > now ? (int)((until_ns - now + NS_PER_MS - 1) / NS_PER_MS) : 0;

	if (runq->stacks)
		prev_stacks_fds(runq->stacks, of_stacks);
	fds[0] = (struct pollfd){ .fd = runq->stop_fd, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = runq_programs_wake_fd(runq->programs), .events = POLLIN };
	for (int i = 0; i < PREV_STACKS_FDS; i++)
		fds[2 + i] = (struct pollfd){ .fd = of_stacks[i], .events = POLLIN };
	if (poll(fds, ARRAY_SIZE(fds), timeout_ms) < 0 && errno != EINTR)
		return true;
	return fds[0].revents || targets_ended(&runq->targets);
}

/* A CPU that comes later has a queue, too. */
static int follow_online(struct sonde_runq *runq, uint64_t now)
{
	CLEANUP(cpus_done) struct cpus online = { 0 };

	if (now - runq->looked_ns < ENGINE_STEP_NS || cpus_read("online", NULL, &online))
		return 0;
	runq->looked_ns = now;
	if (runq->stacks)
		prev_stacks_follow_cpus(runq->stacks);
	return runq_programs_follow_cpus(runq->programs, &online, &runq->diag);
}

/* The reports of the intervals but for the last one, whose end is the run's. */
static int run_intervals(struct sonde_runq *runq, uint64_t start_ns)
{
	const struct sonde_runq_options *o = &runq->options;
	uint64_t nr = 1, next_ns = start_ns + o->interval_ns;
	int err = tell(runq);

	while (!err) {
		uint64_t now = clock_ns(), step_ns = now + ENGINE_STEP_NS;
		bool end = is_end(runq, o->interval_ns && next_ns < step_ns ? next_ns : step_ns);

		err = follow_online(runq, now) ?: take_waits(runq, ENGINE_STEP_RECORDS);
		if (!err)
			err = tell(runq);
		if (err || end)
			break;
		if (!o->interval_ns || clock_ns() < next_ns)
			continue;
		if (nr == o->nr_intervals)
			break;
		if (!o->slower)
			err = report(runq);
		nr++;
		next_ns += o->interval_ns;
	}
	return err;
}

static void fill_account(struct sonde_runq *runq, uint64_t start_ns)
{
	struct account *account = profile_account(runq->file->profile);
	struct sonde_runq_counters count;

	runq_programs_counters(runq->programs, &count);
	account->start_unix_ns = start_ns + runq->unix_offset_ns;
	account->duration_ns = clock_ns() - start_ns;
	if (count.no_time)
		account_note(account, "%" PRIu64 " waits are not counted: no program was told when they began, and the scheduler keeps no time of them", (uint64_t)count.no_time);
	if (count.keys_full)
		account_note(account, "%" PRIu64 " values are not counted: there is room for %d histograms in an interval", (uint64_t)count.keys_full, SONDE_RUNQ_MAX_KEYS);
	if (count.lost)
		account_note(account, "%" PRIu64 " of %" PRIu64 " waits found no room in the ring buffer and are not told: they came too fast", (uint64_t)count.lost,
			     (uint64_t)(count.lost + count.sent));
	if (!count.counted && !runq->exit_code)
		runq->exit_code = SONDE_EXIT_NO_SAMPLES;
}

int sonde_runq_run(struct sonde_runq *runq)
{
	uint64_t start_ns;
	int err;

	if (!runq)
		return -EINVAL;
	if (!runq->is_ready)
		return fail(runq, SONDE_EXIT_USAGE, diag_errno(&runq->diag, EINVAL, "a run queue is measured once, and only when it could be set up"));
	runq->is_ready = false;
	runq->unix_offset_ns = clock_unix_offset_ns();
	err = runq_programs_start(runq->programs, &runq->diag);
	start_ns = clock_ns();
	if (!err && runq->options.started)
		runq->options.started(runq->options.arg);
	if (!err && runq->options.slower)
		runq_report_waits_heading(&runq->lines, runq->options.slower_ns);
	if (!err)
		err = run_intervals(runq, start_ns);
	runq_programs_stop(runq->programs);
	if (!err)
		err = take_waits(runq, UINT64_MAX); /* nothing is added any more */
	if (!err)
		err = tell(runq) ?: report(runq);
	if (!err)
		fill_account(runq, start_ns);
	return err ? fail_setup(runq, err) : 0;
}

static void add_notes(struct buffer *lines, const struct account *account)
{
	for (uint32_t i = 0; i < account->nr_notes; i++)
		buffer_printf(lines, "sonde: %s\n", account->notes[i]);
}

const char *sonde_runq_account(struct sonde_runq *runq)
{
	const struct account *account;
	struct sonde_runq_counters count;

	if (!runq || !runq->programs)
		return "";
	account = profile_account_of(runq->file->profile);
	runq_programs_counters(runq->programs, &count);
	runq->account.size = 0;
	add_notes(&runq->account, account);
	if (runq->stacks)
		add_notes(&runq->account, prev_stacks_account(runq->stacks));
	buffer_printf(&runq->account, "%s: %" PRIu64 " counted, %" PRIu64 " filtered, %" PRIu64 " not known", runq->options.question == SONDE_RUNQ_LENGTH ? "ticks" : "switches",
		      (uint64_t)count.counted, (uint64_t)count.filtered, (uint64_t)(count.no_time + count.keys_full));
	if (runq->options.slower)
		buffer_printf(&runq->account, "; %" PRIu64 " waits told, %" PRIu64 " lost", (uint64_t)count.sent, (uint64_t)count.lost);
	if (count.by_account)
		buffer_printf(&runq->account, "; %" PRIu64 " by the scheduler's account, as their begin was not seen", (uint64_t)count.by_account);
	buffer_text(&runq->account, "\n");
	return runq->account.err ? "" : runq->account.data;
}
