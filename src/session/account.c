// SPDX-License-Identifier: Apache-2.0
/* account: fills in the account of a window or of the whole recording, and writes it as text. */
#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/plain_text.h"
#include "model/account_text.h"
#include "session/session.h"

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

	sampler_counters(session->engine.sampler, &counters);
	account->ticks = counters.ticks;
	account->recorded = counters.recorded;
	account->late = counters.deferred;
	account->runtime_missed += counters.runtimes_missed;
	account->runtime_cache_hits = counters.runtime_cache_hits;
	account->runtime_cache_checks = counters.runtime_cache_checks;
	account->runtime_cache_wrong = counters.runtime_cache_wrong;
	account->late_refused = counters.deferred_refused;
	account->late_cut = counters.deferred_cut;
	memcpy(account->filtered, counters.filtered, sizeof(account->filtered));
	memcpy(account->dropped, counters.dropped, sizeof(account->dropped));
}

struct account *session_account(struct sonde_session *session)
{
	return session->profile ? profile_account(session->profile) : &session->account;
}

/* Fills in all counts up to now, including those of closed windows. */
static void fill_all(const struct sonde_session *session, const struct window *window, struct account *account)
{
	struct rusage usage = { 0 };

	fill_counters(session, account);
	account->bpf_map_bytes = sampler_map_bytes(session->engine.sampler);
	if (session->measurement->type->account)
		session->measurement->type->account(session->measurement, account);
	tracker_account(session->engine.tracker, account);
	getrusage(RUSAGE_THREAD, &usage);
	account->cpu_user_ns = session->cost_user_ns + timeval_ns(usage.ru_utime);
	account->cpu_system_ns = session->cost_system_ns + timeval_ns(usage.ru_stime);
	if (!getrusage(RUSAGE_SELF, &usage))
		account->max_rss_bytes = (uint64_t)usage.ru_maxrss * 1024;
	account->start_unix_ns = window->start_ns + window->unix_offset_ns;
	account->duration_ns = window->end_ns - window->start_ns;
}

static bool was_noted(const struct sonde_session *session, uint64_t note)
{
	for (uint32_t i = 0; i < session->nr_noted; i++) {
		if (session->noted[i] == note)
			return true;
	}
	return false;
}

/* Drops the notes that the previous window also has: a note about the whole recording is printed once. */
static void drop_old_notes(struct sonde_session *session, struct account *account)
{
	uint64_t noted[ACCOUNT_MAX_NOTES];
	uint32_t nr = 0, nr_noted = account->nr_notes;

	for (uint32_t i = 0; i < nr_noted; i++) {
		noted[i] = hash_bytes(account->notes[i], strlen(account->notes[i]), 0);
		if (!was_noted(session, noted[i]))
			memmove(account->notes[nr++], account->notes[i], sizeof(account->notes[i]));
	}
	account->nr_notes = nr;
	memcpy(session->noted, noted, sizeof(noted));
	session->nr_noted = nr_noted;
}

void session_account_window(struct sonde_session *session, const struct window *window, struct account *ret_account)
{
	*ret_account = session->account;
	fill_all(session, window, ret_account);
	ret_account->counts = account_counts_since(&session->reported, &ret_account->counts);
	if (session->measurement->prints_windows) /* the notes gather for the one report at the end */
		return;
	drop_old_notes(session, ret_account);
	session->account.nr_notes = session->account.nr_notes_refused = 0;
}

void session_account_cost(struct sonde_session *session)
{
	struct account *account = session_account(session);
	struct rusage usage;

	account->cpu_user_ns = session->cost_user_ns;
	account->cpu_system_ns = session->cost_system_ns;
	if (!getrusage(RUSAGE_SELF, &usage))
		account->max_rss_bytes = (uint64_t)usage.ru_maxrss * 1024;
}

static uint64_t nr_lost(const struct account_counts *counts)
{
	uint64_t nr = counts->waits.sums_full + counts->waits.no_storage;

	for (int i = 0; i < SONDE_DROP_COUNT; i++)
		nr += counts->dropped[i];
	return nr;
}

const char *sonde_session_total(struct sonde_session *session)
{
	const struct window_totals *totals;

	if (!session || !session->naming || session->measurement->prints_windows)
		return "";
	totals = &session->totals;
	buffer_done(&session->account_text);
	if (session->measurement->type->summary) {
		session->measurement->type->summary(session->measurement, &session->account_text);
		return session->account_text.data ? session->account_text.data : "";
	}
	buffer_printf(&session->account_text, "total: %" PRIu32 " window%s, ", totals->nr, totals->nr == 1 ? "" : "s");
	if (session->options.mode != SONDE_ON_CPU)
		buffer_printf(&session->account_text, "%" PRIu64 " waits", totals->counts.waits.waits);
	else
		buffer_printf(&session->account_text, "%" PRIu64 " samples", totals->counts.recorded);
	buffer_printf(&session->account_text, ", %" PRIu64 " lost", nr_lost(&totals->counts));
	if (totals->nr_in_haste)
		buffer_printf(&session->account_text, ", %" PRIu32 " written early, with addresses for names", totals->nr_in_haste);
	if (totals->nr_failed)
		buffer_printf(&session->account_text, ", %" PRIu32 " not written", totals->nr_failed);
	buffer_text(&session->account_text, "\n");
	return session->account_text.data ? session->account_text.data : "";
}

/* Uses BCC's wording. Each missed side of a sample counts as one stack trace. */
static void write_missed(const struct account *account, struct buffer *buffer)
{
	uint64_t nr_missed = account->missed_user + account->missed_kernel;

	if (nr_missed)
		buffer_printf(buffer, "WARNING: %" PRIu64 " stack traces could not be displayed.%s\n", nr_missed,
			      account->missed_full ? " Consider increasing --stack-storage-size." : "");
}

static void write_path(const char *path, struct buffer *buffer)
{
	buffer_text(buffer, "written: ");
	plain_text(buffer, path, ';');
	buffer_text(buffer, "\n");
}

const char *sonde_session_account(struct sonde_session *session)
{
	const struct outputs *outputs;
	const struct account *account;

	if (!session || !session->profile)
		return "";
	outputs = &session->outputs;
	account = profile_account_of(session->profile);
	buffer_done(&session->account_text);
	if (session->measurement->has_stacks && !outputs_have_stdout(outputs) &&
	    export_write(session->profile, EXPORT_TOP, &outputs->export, &session->account_text, NULL))
		buffer_done(&session->account_text); /* only the top list is missing then */
	if (session->measurement->type->summary) {
		account_text_notes(account, session->nr_reported_notes, &session->account_text);
		session->measurement->type->summary(session->measurement, &session->account_text);
	} else {
		account_text(account, session->nr_reported_notes, &session->account_text);
	}
	for (uint32_t i = 0; i < outputs->nr; i++) {
		if (outputs->list[i].is_written && strcmp(outputs->list[i].path, "-"))
			write_path(outputs->list[i].path, &session->account_text);
	}
	write_missed(account, &session->account_text);
	return session->account_text.data ? session->account_text.data : "";
}
