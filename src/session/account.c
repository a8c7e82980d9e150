// SPDX-License-Identifier: Apache-2.0
/* What the account says of the run as a whole, and the account in words. */
#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/plain_text.h"
#include "model/account_text.h"
#include "session/session.h"

#define OFF_CPU_EVENT "sched:sched_switch" /* perf's name */

static uint64_t timeval_ns(struct timeval time)
{
	return (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_usec * NS_PER_US;
}

void session_begin_cost(struct sonde_session *session)
{
	struct rusage usage = { 0 };

	getrusage(RUSAGE_THREAD, &usage);
	session->cost_user_ns -= timeval_ns(usage.ru_utime);
	session->cost_system_ns -= timeval_ns(usage.ru_stime);
}

void session_end_cost(struct sonde_session *session)
{
	struct rusage usage = { 0 };

	getrusage(RUSAGE_THREAD, &usage);
	session->cost_user_ns += timeval_ns(usage.ru_utime);
	session->cost_system_ns += timeval_ns(usage.ru_stime);
}

static void fill_counters(const struct sonde_session *session, struct account *account)
{
	struct sonde_counters counters;

	sampler_counters(session->sampler, &counters);
	account->ticks = counters.ticks;
	account->recorded = counters.recorded;
	account->late = counters.raws;
	account->runtime_missed += counters.runtimes_missed;
	account->late_refused = counters.raws_refused;
	account->late_cut = counters.raws_cut;
	memcpy(account->filtered, counters.filtered, sizeof(account->filtered));
	memcpy(account->dropped, counters.dropped, sizeof(account->dropped));
}

static void fill_event(const struct sonde_session *session, struct account *account)
{
	struct cpu_events_total total = sampler_events(session->sampler);

	if (session->sampling.no_ticks) {
		snprintf(account->event, sizeof(account->event), "%s", OFF_CPU_EVENT);
		snprintf(account->event_unit, sizeof(account->event_unit), "count");
		account->period = 1;
		return;
	}
	snprintf(account->event, sizeof(account->event), "%s", session->event.name);
	snprintf(account->event_unit, sizeof(account->event_unit), "%s", session->event.is_clock ? "nanoseconds" : "count");
	account->freq_hz = session->options.freq_hz;
	account->period = session->options.period;
	if (session->options.freq_hz && session->event.is_clock) /* the kernel's clocks keep a rate as a fixed period */
		account->period = NS_PER_S / session->options.freq_hz;
	account->expected = total.expected;
	account->throttled = total.nr_throttled;
	account->throttled_ns = total.throttled_ns;
	account->unscheduled_ns = total.unscheduled_ns;
	account->events = total.count;
}

void session_fill_account(struct sonde_session *session)
{
	struct account *account = profile_account(session->profile);
	struct rusage usage;

	fill_counters(session, account);
	fill_event(session, account);
	account->start_unix_ns = session->start_ns + session->unix_offset_ns;
	account->nr_cpus = session->sampling.no_ticks ? (uint32_t)sysconf(_SC_NPROCESSORS_ONLN) : sampler_nr_cpus(session->sampler);
	account->bpf_map_bytes = sampler_map_bytes(session->sampler);
	if (session->waiting)
		waiting_account(session->waiting, account);
	tracker_account(session->tracker, account);
	account->cpu_user_ns = session->cost_user_ns;
	account->cpu_system_ns = session->cost_system_ns;
	if (!getrusage(RUSAGE_SELF, &usage))
		account->max_rss_bytes = (uint64_t)usage.ru_maxrss * 1024;
}

/* BCC's words. A side of a sample that is missed counts as a stack trace. */
static void write_missed(const struct account *account, struct buffer *buffer)
{
	uint64_t nr_missed = account->missed_user + account->missed_kernel;

	if (nr_missed)
		buffer_printf(buffer, "WARNING: %" PRIu64 " stack traces could not be displayed.%s\n", nr_missed,
			      account->missed_full ? " Consider increasing --stack-storage-size." : "");
}

static bool writes_to_stdout(const struct sonde_session *session)
{
	for (uint32_t i = 0; i < session->nr_outputs; i++) {
		if (!strcmp(session->outputs[i].path, "-"))
			return true;
	}
	return false;
}

static void write_path(const char *path, struct buffer *buffer)
{
	buffer_text(buffer, "written: ");
	plain_text(buffer, path, ';');
	buffer_text(buffer, "\n");
}

const char *sonde_session_account(struct sonde_session *session)
{
	const struct account *account;

	if (!session || !session->profile)
		return "";
	account = profile_account_of(session->profile);
	buffer_done(&session->account_text);
	if (!writes_to_stdout(session) && export_write(session->profile, EXPORT_TOP, &session->export, &session->account_text, NULL))
		buffer_done(&session->account_text); /* a look at the report is all that is missing then */
	account_text(account, session->nr_told_notes, &session->account_text);
	for (uint32_t i = 0; i < session->nr_outputs; i++) {
		if (session->outputs[i].is_written && strcmp(session->outputs[i].path, "-"))
			write_path(session->outputs[i].path, &session->account_text);
	}
	write_missed(account, &session->account_text);
	return session->account_text.data ? session->account_text.data : "";
}
