// SPDX-License-Identifier: Apache-2.0
/* The options of a session: what is missing is filled in, what makes no sense is refused before anything starts. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "abi/unwind.h"
#include "abi/wait.h"
#include "base/clock.h"
#include "base/number.h"
#include "base/sized.h"
#include "base/small_file.h"
#include "session/session.h"
#include "session/whose.h"

#define MAX_RATE_PATH "/proc/sys/kernel/perf_event_max_sample_rate"
#define MAX_STACK_STORAGE (1u << 26)
#define MIN_WINDOW_NS NS_PER_S
#define MIN_CLOCK_PERIOD_NS 10000 /* what the kernel makes of a shorter one: perf_swevent_start_hrtimer, kernel/events/core.c */

/* 0 when the kernel does not say. */
static uint64_t max_rate_hz(void)
{
	char text[32];
	uint64_t hz;

	return small_file_read(AT_FDCWD, MAX_RATE_PATH, text, sizeof(text)) || number_u64(text, UINT64_MAX, &hz) ? 0 : hz;
}

static int check_rate(struct sonde_session *session)
{
	struct sonde_profile_options *o = &session->options;
	uint64_t max_hz = max_rate_hz();

	if (o->freq_hz && o->period)
		return diag_errno(&session->diag, EINVAL, "a rate and a period exclude each other");
	if (!o->freq_hz && !o->period)
		o->freq_hz = SONDE_DEFAULT_FREQ_HZ;
	if (max_hz && o->freq_hz > max_hz)
		return diag_errno(&session->diag, EINVAL, "this kernel samples at up to %" PRIu64 " Hertz; to allow more: sudo sysctl kernel.perf_event_max_sample_rate=%" PRIu64,
				  max_hz, o->freq_hz);
	if (session->event.is_clock && o->period && o->period < MIN_CLOCK_PERIOD_NS) {
		account_note(session_account(session), "the kernel samples a clock every %d ns at most: that is the period", MIN_CLOCK_PERIOD_NS);
		o->period = MIN_CLOCK_PERIOD_NS;
	}
	if (o->period >> 63)
		return diag_errno(&session->diag, EINVAL, "the period is too large");
	return 0;
}

static int check_sides(struct sonde_session *session)
{
	if (session->options.user_only && session->options.kernel_only)
		return diag_errno(&session->diag, EINVAL, "user stacks only and kernel stacks only exclude each other");
	if (session->options.lines && session->options.no_lines)
		return diag_errno(&session->diag, EINVAL, "with lines and without lines exclude each other");
	return 0;
}

static int check_whose(struct sonde_session *session)
{
	const struct sonde_profile_options *o = &session->options;
	const struct whose whose = { .tgids = o->tgids, .tids = o->tids, .nr_tgids = o->nr_tgids, .nr_tids = o->nr_tids, .comm = o->comm, .cgroup = o->cgroup,
				     .has_command = o->command != NULL };
	int err = whose_resolve(&whose, session_account(session), &session->diag, &session->sampling.config, &session->targets);

	if (err && err != -EINVAL)
		session_fail(session, err == -EOPNOTSUPP ? SONDE_EXIT_KERNEL_CANNOT : SONDE_EXIT_FAILED, err);
	return err;
}

static int check_storage(struct sonde_session *session)
{
	session->renews_bodies = !session->options.stack_storage;
	if (!session->options.stack_storage)
		session->options.stack_storage = SONDE_DEFAULT_STACK_STORAGE;
	if (session->options.stack_storage > MAX_STACK_STORAGE)
		return diag_errno(&session->diag, EINVAL, "the stack storage holds up to %u stacks", MAX_STACK_STORAGE);
	if (!session->options.debuginfod_timeout_ns)
		session->options.debuginfod_timeout_ns = SONDE_DEFAULT_DEBUGINFOD_TIMEOUT_NS;
	if (!session->options.unwind_bytes)
		session->options.unwind_bytes = SONDE_DEFAULT_UNWIND_BYTES;
	if (session->options.unwind_bytes < SONDE_CHUNK_BYTES)
		return diag_errno(&session->diag, EINVAL, "unwind tables and mappings need %u bytes at least", SONDE_CHUNK_BYTES);
	return 0;
}

static int check_windows(struct sonde_session *session)
{
	const struct sonde_profile_options *o = &session->options;

	if (o->every_ns && o->every_ns < MIN_WINDOW_NS)
		return diag_errno(&session->diag, EINVAL, "a window is a second long at least");
	if (o->every_ns > UINT64_MAX / 4)
		return diag_errno(&session->diag, EINVAL, "a window of that length never ends");
	if (o->every_ns && o->events)
		return diag_errno(&session->diag, EINVAL, "the file of events is one for the whole recording: --events and --every exclude each other");
	if (o->keep && !o->every_ns)
		return diag_errno(&session->diag, EINVAL, "to keep so many windows there have to be some: --keep needs --every");
	session->outputs.has_windows = o->every_ns;
	session->outputs.keep = o->keep;
	return 0;
}

static int check_waits(struct sonde_session *session)
{
	const struct sonde_profile_options *o = &session->options;

	if (o->user_threads_only && o->kernel_threads_only)
		return diag_errno(&session->diag, EINVAL, "user threads only and kernel threads only exclude each other");
	if (o->max_ns && o->max_ns < o->min_ns)
		return diag_errno(&session->diag, EINVAL, "no wait is at least %" PRIu64 " ns and at most %" PRIu64 " ns long", o->min_ns, o->max_ns);
	if (o->max_overhead_percent > 100 || (o->max_overhead_percent && o->question != SONDE_OFF_CPU))
		return diag_errno(&session->diag, EINVAL, "a limit of the overhead is 1 to 100 percent, and for waits alone");
	if (o->state < SONDE_STATE_PREEMPTED || o->state > UINT16_MAX)
		return diag_errno(&session->diag, EINVAL, "there is no such state of a thread: %" PRId32, o->state);
	return 0;
}

static void fill_waits(const struct sonde_profile_options *o, struct sonde_config *config)
{
	config->min_off_ns = o->min_ns;
	config->max_off_ns = o->max_ns;
	config->state = o->state == SONDE_STATE_PREEMPTED ? SONDE_WAIT_PREEMPTED : o->state ? o->state : -1;
	config->user_threads_only = o->user_threads_only;
	config->kernel_threads_only = o->kernel_threads_only;
	config->wake = o->wake;
	config->histograms = o->histograms;
	config->wall = o->question == SONDE_WALL;
	config->events = o->events != NULL;
	config->kernel_stacks = 1; /* they tell the kind of wait, shown or not */
}

static void fill_sampling(struct sonde_session *session)
{
	const struct sonde_profile_options *o = &session->options;
	struct sonde_config *config = &session->sampling.config;

	config->user_stacks = !o->kernel_only;
	config->kernel_stacks = !o->user_only;
	config->include_idle = o->idle;
	if (session_asks_for_waits(session))
		fill_waits(o, config);
	session->sampling.no_ticks = o->question == SONDE_OFF_CPU;
	config->more_levels = session_asks_for_waits(session); /* a tick strikes while a switch is looked at, a switch while the threads are gone through at the start */
	session->sampling.config.audit_every = o->audit_every;
	session->sampling.stack_storage = o->stack_storage;
	session->sampling.event = &session->event;
	session->sampling.freq_hz = o->freq_hz;
	session->sampling.period = o->period;
	session->sampling.cpu = o->cpu;
	session->outputs.export = (struct export_options){
		.delimited = o->delimited,
		.annotate = o->annotate,
		.offsets = o->offsets,
		.threads = o->threads,
		.of_tids = o->nr_tids > 0,
		.user_only = o->user_only,
		.kernel_only = o->kernel_only,
	};
}

int session_take_options(struct sonde_session *session, const struct sonde_profile_options *options)
{
	int err = sized_options(&session->options, sizeof(session->options), options, &session->diag);

	if (!err)
		err = event_parse(session->options.event ? session->options.event : "cpu-clock", &session->diag, &session->event);
	if (!err)
		err = check_rate(session);
	if (!err)
		err = check_sides(session);
	if (!err)
		err = check_storage(session);
	if (!err)
		err = check_waits(session);
	if (!err)
		err = check_windows(session);
	if (!err)
		err = check_whose(session);
	if (!err)
		fill_sampling(session);
	return err;
}
