// SPDX-License-Identifier: Apache-2.0
/* The measurement of the run queue: histograms, with a report after each interval, or each long wait as a line, followed by the stacks of
 * the thread that had the CPU. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpus.h"
#include "base/sized.h"
#include "collect/runq_programs.h"
#include "engine/measurement.h"
#include "frames/frame_text.h"
#include "offcpu/offcpu.h"
#include "offcpu/runq_report.h"

#define LINES_BYTES_MAX ((size_t)64 << 20)
#define LINES_BYTES_MANY ((size_t)1 << 20) /* then the lines are handed over */
#define WAITS_BYTES_MAX ((size_t)64 << 20) /* of the open window: beyond that, while symbols are late, waits are dropped */

struct runq {
	struct measurement base;
	struct sonde_runq_options options;
	struct sonde_config filters;
	uint64_t new_ns;             /* processes that sonde starts after that are its helpers */
	struct profile *profile;     /* of the histograms */
	struct runq_report *report;
	struct runq_programs *programs;
	struct buffer lines;
	int text_err;                /* atomic: the error of the caller's function for lines: it is not called again */
	struct buffer waits;         /* with stacks: struct sonde_runqslower_record each, of the open window */
	uint64_t nr_unsaid;          /* waits that found no room there */
	uint64_t unix_offset_ns;
	struct cpus_watch cpus;
	uint64_t looked_ns;          /* when the list of CPUs was last read */
};

static struct runq *runq_of(struct measurement *measurement)
{
	return (struct runq *)measurement;
}

static const struct runq *const_runq_of(const struct measurement *measurement)
{
	return (const struct runq *)measurement;
}

/* --- creation ------------------------------------------------------------------------------------------------------------------------- */

static int check_slower(const struct sonde_runq_options *o, struct diag *diag)
{
	if (o->slower && o->what != SONDE_RUNQ_LATENCY)
		return diag_errno(diag, EINVAL, "only run queue latency has waits longer than a limit");
	if (o->slower && o->by && !o->histogram)
		return diag_errno(diag, EINVAL,
				  "histograms by something need --hist: single waits have all details anyway");
	if (o->histogram && !o->slower)
		return diag_errno(diag, EINVAL, "there is a histogram anyway");
	if (o->stacks && !o->slower)
		return diag_errno(diag, EINVAL, "stacks need waits longer than a limit: they are those of the thread that had the CPU");
	return 0;
}

static int check_length(const struct sonde_runq_options *o, const struct sonde_session_options *common, struct diag *diag)
{
	if (o->what != SONDE_RUNQ_LENGTH)
		return 0;
	if (common->nr_tgids || common->nr_tids || common->comm || common->cgroup)
		return diag_errno(diag, EINVAL, "the length of a queue is a CPU's, not of threads: ask for all of them");
	if (o->by && o->by != SONDE_RUNQ_BY_CPU)
		return diag_errno(diag, EINVAL, "the length of a queue is a CPU's: a histogram for each CPU, or one for all");
	return o->milliseconds ? diag_errno(diag, EINVAL, "the length of a queue is a number of threads, no time") : 0;
}

static int check(struct sonde_runq_options *o, const struct sonde_session_options *common, struct diag *diag)
{
	if (!common->text || o->what > SONDE_RUNQ_LENGTH || o->by > SONDE_RUNQ_BY_COMM)
		return diag_errno(diag, EINVAL, "the options ask for nothing that there is");
	if (common->command)
		return diag_errno(diag, EINVAL, "run queues take no command: start it, then give its process id");
	if (o->slower && !o->slower_ns)
		o->slower_ns = SONDE_DEFAULT_SLOWER_NS;
	return check_slower(o, diag) ?: check_length(o, common, diag);
}

static int init(struct measurement *measurement, struct sampler_options *sampling, struct diag *diag)
{
	const struct sonde_session_options *common = measurement->parts.options;
	struct runq *runq = runq_of(measurement);
	struct sonde_runq_options *o = &runq->options;
	int err = sized_options(o, sizeof(*o), common->runq, diag) ?: check(o, common, diag);

	runq->lines = BUFFER_INIT(LINES_BYTES_MAX);
	runq->waits = BUFFER_INIT(WAITS_BYTES_MAX);
	if (err)
		return err;
	measurement->needs_engine = o->stacks;
	measurement->has_stacks = false;
	measurement->has_histograms = true;
	measurement->watches_all = measurement->prints_windows = true;
	runq->filters = sampling->config;
	runq->new_ns = clock_ns();
	sampling->config = (struct sonde_config){ .user_stacks = 1, .kernel_stacks = 1 };
	runq->profile = profile_new();
	runq->report = runq->profile ? runq_report_new(o, runq->profile) : NULL;
	return runq->report ? 0 : -ENOMEM;
}

static void done(struct measurement *measurement)
{
	struct runq *runq = runq_of(measurement);

	runq_programs_free(runq->programs);
	runq_report_free(runq->report);
	profile_free(runq->profile);
	cpus_watch_done(&runq->cpus);
	buffer_done(&runq->lines);
	buffer_done(&runq->waits);
}

static int load_programs(struct runq *runq, const uint32_t *ids, uint32_t nr_ids, struct diag *diag)
{
	static const enum runq_what whats[] = {
		[SONDE_RUNQ_LATENCY] = RUNQ_WAITS, [SONDE_RUNQ_ON_CPU] = RUNQ_STAYS, [SONDE_RUNQ_LENGTH] = RUNQ_LENGTHS
	};
	static const enum sonde_runq_key_kind keys[] = { [SONDE_RUNQ_BY_PID] = SONDE_RUNQ_KEY_TGID,
							 [SONDE_RUNQ_BY_TID] = SONDE_RUNQ_KEY_TID,
							 [SONDE_RUNQ_BY_CGROUP] = SONDE_RUNQ_KEY_CGROUP,
							 [SONDE_RUNQ_BY_COMM] = SONDE_RUNQ_KEY_COMM };
	const struct sonde_runq_options *o = &runq->options;
	const struct runq_programs_options options = {
		.what = whats[o->what],
		.each_cpu = o->by == SONDE_RUNQ_BY_CPU,
		.config = runq->filters,
		.own_since_ns = runq->new_ns,
		.runq = { .slower_ns = o->slower ? o->slower_ns : SONDE_RUNQ_NONE_SLOWER,
			  .unit_ns = o->milliseconds ? NS_PER_MS : NS_PER_US,
			  .histogram = !o->slower || o->histogram,
			  .stacks = o->stacks,
			  .key = o->by < ARRAY_SIZE(keys) ? keys[o->by] : SONDE_RUNQ_KEY_NONE },
		.targets = ids,
		.nr_targets = nr_ids,
		.freq_hz = SONDE_RUNQ_LENGTH_HZ,
		.sampler = runq->base.parts.engine->sampler,
	};

	return runq_programs_new(&options, diag, &runq->programs);
}

static int load(struct measurement *measurement, const struct targets *targets, uint32_t command_tgid, struct diag *diag)
{
	CLEANUP(freep) uint32_t *ids = calloc(targets->nr ?: 1, sizeof(*ids));

	if (!ids)
		return -ENOMEM;
	for (uint32_t i = 0; i < targets->nr; i++)
		ids[i] = targets->list[i].tid ? targets->list[i].tid : targets->list[i].tgid;
	return load_programs(runq_of(measurement), ids, targets->nr, diag);
}

/* --- lines ---------------------------------------------------------------------------------------------------------------------------- */

/* Hands over the lines so far. With stacks the thread that resolves them calls it, before and after that the session's thread. */
static int tell(struct runq *runq, struct buffer *lines)
{
	const struct sonde_session_options *common = runq->base.parts.options;
	int err = lines->err ?: __atomic_load_n(&runq->text_err, __ATOMIC_RELAXED);

	if (!err && lines->size) {
		err = common->text(common->arg, lines->data);
		__atomic_store_n(&runq->text_err, err, __ATOMIC_RELAXED);
	}
	lines->size = 0;
	return err;
}

static int start(struct measurement *measurement, struct diag *diag, uint64_t *ret_start_ns)
{
	struct runq *runq = runq_of(measurement);
	int err;

	runq->unix_offset_ns = clock_unix_offset_ns();
	err = runq_programs_start(runq->programs, diag);
	*ret_start_ns = clock_ns();
	if (!err && runq->options.slower)
		runq_report_waits_heading(&runq->lines, runq->options.slower_ns);
	return err ? err : tell(runq, &runq->lines);
}

static int take_wait(void *arg, const struct sonde_runq_record *record)
{
	struct runq *runq = arg;

	runq_report_wait(&runq->lines, record, runq->unix_offset_ns);
	return 0;
}

/* Opens the queues of CPUs that came online later. */
static int follow_online(struct runq *runq, uint64_t now_ns, struct diag *diag)
{
	const struct cpus *online;

	if (now_ns - runq->looked_ns < ENGINE_STEP_NS)
		return 0;
	runq->looked_ns = now_ns;
	if (cpus_watch_look(&runq->cpus, &online))
		return 0;
	return runq_programs_follow_cpus(runq->programs, online, diag);
}

static int step(struct measurement *measurement, uint64_t now_ns, struct diag *diag)
{
	struct runq *runq = runq_of(measurement);

	return follow_online(runq, now_ns, diag) ?: runq_programs_waits(runq->programs, take_wait, runq) ?: tell(runq, &runq->lines);
}

static int fd(const struct measurement *measurement)
{
	return runq_programs_wake_fd(const_runq_of(measurement)->programs);
}

static int report(struct runq *runq)
{
	const struct sonde_runq_options *o = &runq->options;
	int err;

	if (o->timestamps && !o->quiet)
		runq_report_time(&runq->lines, clock_ns() + runq->unix_offset_ns);
	err = runq_report_take(runq->report, runq->programs, o->quiet ? NULL : &runq->lines);
	return err ? err : tell(runq, &runq->lines);
}

static int interval(struct measurement *measurement, uint64_t border_ns)
{
	struct runq *runq = runq_of(measurement);

	return runq->options.slower ? 0 : report(runq);
}

/* --- the other thread's stacks -------------------------------------------------------------------------------------------------------- */

static int take_record(struct measurement *measurement, const void *record)
{
	struct runq *runq = runq_of(measurement);

	if (runq->waits.size + sizeof(struct sonde_runqslower_record) > WAITS_BYTES_MAX) {
		runq->nr_unsaid++;
		return 0;
	}
	buffer_append(&runq->waits, record, sizeof(struct sonde_runqslower_record));
	return runq->waits.err;
}

static struct stack_ids ids_of(const struct sonde_runqslower_record *record)
{
	return (
	    struct stack_ids){ .ids = record->ids, .tgid = record->wait.prev.tgid, .user_generation = record->generation, .at_event = 1 };
}

static bool is_due(const struct measurement *measurement)
{
	return const_runq_of(measurement)->waits.size != 0;
}

static size_t window_bytes(const struct measurement *measurement)
{
	return const_runq_of(measurement)->waits.size;
}

static int close_window(struct measurement *measurement, const struct process_table *processes, struct window *window)
{
	struct runq *runq = runq_of(measurement);
	const struct sonde_runqslower_record *waits = (const struct sonde_runqslower_record *)runq->waits.data;
	int err = 0;

	for (size_t i = 0; !err && i < runq->waits.size / sizeof(*waits); i++) {
		const struct stack_ids ids = ids_of(&waits[i]);

		err = stack_recorder_keep(measurement->parts.engine->recorder, &ids, 0, processes);
	}
	window->waits = runq->waits;
	runq->waits = BUFFER_INIT(WAITS_BYTES_MAX);
	return err;
}

static int print_wait(struct runq *runq, const struct sonde_runqslower_record *record, struct stack_builder *builder,
		      const struct profile *profile, struct buffer *lines)
{
	const struct stack_ids ids = ids_of(record);
	struct profile_sample sample = { 0 };
	int err = stack_builder_sample(builder, &ids, 1, &sample);

	if (err)
		return err;
	runq_report_wait(lines, &record->wait, runq->unix_offset_ns);
	frame_text_stack(lines, profile, sample.kernel_stack, false, "    ");
	frame_text_stack(lines, profile, sample.user_stack, false, "    ");
	return lines->size < LINES_BYTES_MANY ? 0 : tell(runq, lines);
}

/* Uses only the names and stacks of the profile: it has no samples. */
static int print_window(struct measurement *measurement, struct window *window, struct stack_builder *builder, struct profile *profile)
{
	CLEANUP(buffer_done) struct buffer lines = BUFFER_INIT(LINES_BYTES_MAX);
	const struct sonde_runqslower_record *waits = (const struct sonde_runqslower_record *)window->waits.data;
	int err = 0;

	for (size_t i = 0; !err && i < window->waits.size / sizeof(*waits); i++)
		err = print_wait(runq_of(measurement), &waits[i], builder, profile, &lines);
	return err ? err : tell(runq_of(measurement), &lines);
}

/* --- the end -------------------------------------------------------------------------------------------------------------------------- */

static int stop(struct measurement *measurement, struct diag *diag, uint64_t *ret_end_ns)
{
	runq_programs_stop(runq_of(measurement)->programs);
	*ret_end_ns = clock_ns();
	return runq_programs_waits(runq_of(measurement)->programs, take_wait, measurement)
		   ?: tell(runq_of(measurement), &runq_of(measurement)->lines);
}

static void note_losses(const struct runq *runq, struct account *account)
{
	struct sonde_runq_counters count;

	runq_programs_counters(runq->programs, &count);
	if (count.no_time)
		account_note(account,
			     "%" PRIu64
			     " waits are not counted: when they began is unknown, to us and to the scheduler",
			     (uint64_t)count.no_time);
	if (count.keys_full)
		account_note(account, "%" PRIu64 " values are not counted: there is room for %d histograms in an interval",
			     (uint64_t)count.keys_full, SONDE_RUNQ_MAX_KEYS);
	if (count.lost)
		account_note(account,
			     "%" PRIu64 " of %" PRIu64 " waits found no room in the ring buffer and are not shown: they came too fast",
			     (uint64_t)count.lost, (uint64_t)(count.lost + count.sent));
	if (runq_report_is_full(runq->report))
		account_note(account, "the profile has room for %d histograms: later ones are counted in [others]",
			     RUNQ_REPORT_MAX_HISTOGRAMS);
	if (runq->nr_unsaid)
		account_note(account, "%" PRIu64 " waits are not shown: they came faster than names could be resolved and lines written",
			     runq->nr_unsaid);
}

static int finish(struct measurement *measurement, uint64_t start_ns, uint64_t end_ns, struct profile **ret_profile)
{
	struct runq *runq = runq_of(measurement);
	struct account *account = profile_account(runq->profile);
	int err = runq->options.slower && !runq->options.histogram ? 0 : report(runq);

	if (err)
		return err;
	note_losses(runq, measurement->parts.account);
	*account = *measurement->parts.account;
	account->start_unix_ns = start_ns + runq->unix_offset_ns;
	account->duration_ns = end_ns - start_ns;
	*ret_profile = MOVE(runq->profile);
	return 0;
}

static uint64_t nr(const struct measurement *measurement)
{
	struct sonde_runq_counters count;

	runq_programs_counters(const_runq_of(measurement)->programs, &count);
	return count.counted;
}

static void summary(const struct measurement *measurement, struct buffer *lines)
{
	const struct runq *runq = const_runq_of(measurement);
	struct sonde_runq_counters count;

	runq_programs_counters(runq->programs, &count);
	buffer_printf(lines, "%s: %" PRIu64 " counted, %" PRIu64 " filtered, %" PRIu64 " not known",
		      runq->options.what == SONDE_RUNQ_LENGTH ? "ticks" : "switches", (uint64_t)count.counted, (uint64_t)count.filtered,
		      (uint64_t)(count.no_time + count.keys_full));
	if (runq->options.slower)
		buffer_printf(lines, "; %" PRIu64 " waits shown, %" PRIu64 " lost", (uint64_t)count.sent - runq->nr_unsaid,
			      (uint64_t)count.lost + runq->nr_unsaid);
	if (count.by_account)
		buffer_printf(lines, "; %" PRIu64 " by the scheduler's own accounting, as their beginning was not seen",
			      (uint64_t)count.by_account);
	buffer_text(lines, "\n");
}

const struct measurement_type runq_measurement = {
	.bytes = sizeof(struct runq),
	.init = init,
	.done = done,
	.load = load,
	.start = start,
	.record = take_record,
	.step = step,
	.fd = fd,
	.interval = interval,
	.stop = stop,
	.finish = finish,
	.is_due = is_due,
	.close = close_window,
	.window_bytes = window_bytes,
	.profile = print_window,
	.nr = nr,
	.summary = summary,
};
