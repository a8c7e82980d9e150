// SPDX-License-Identifier: Apache-2.0
#include "model/account.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/plain_text.h"

#define X(id, name, text) name,
static const char *const filter_names[] = { SONDE_FILTER_LIST(X) };
static const char *const drop_names[] = { SONDE_DROP_LIST(X) };
static const char *const stop_names[] = { SONDE_STOP_LIST(X) };
static const char *const runtime_stop_names[] = { SONDE_RUNTIME_STOP_LIST(X) };
static const char *const audit_reason_names[] = { AUDIT_REASON_LIST(X) };
#undef X
#define X(id, name, text) text,
static const char *const drop_texts[] = { SONDE_DROP_LIST(X) };
static const char *const stop_marks[] = { SONDE_STOP_LIST(X) };
static const char *const runtime_stop_marks[] = { SONDE_RUNTIME_STOP_LIST(X) };
#undef X

#define NR_COUNTS (sizeof(struct account_counts) / sizeof(uint64_t))

void account_counts_add(struct account_counts *counts, const struct account_counts *more)
{
	uint64_t *to = (uint64_t *)counts;
	const uint64_t *from = (const uint64_t *)more;

	for (size_t i = 0; i < NR_COUNTS; i++)
		to[i] += from[i];
}

struct account_counts account_counts_since(struct account_counts *reported, const struct account_counts *now)
{
	struct account_counts since = { 0 };
	uint64_t *new = (uint64_t *)&since, *old = (uint64_t *)reported;
	const uint64_t *all = (const uint64_t *)now;

	for (size_t i = 0; i < NR_COUNTS; i++) {
		new[i] = all[i] > old[i] ? all[i] - old[i] : 0;
		old[i] += new[i];
	}
	return since;
}

void account_note(struct account *account, const char *fmt, ...)
{
	char *note;
	va_list args;

	if (account->nr_notes == ACCOUNT_MAX_NOTES) {
		account->nr_notes_refused++;
		return;
	}
	note = account->notes[account->nr_notes++];
	va_start(args, fmt);
	vsnprintf(note, ACCOUNT_NOTE_BYTES, fmt, args);
	va_end(args);
	plain_make(note);
}

bool account_has_note(const struct account *account, const char *note)
{
	for (uint32_t i = 0; i < account->nr_notes; i++) {
		if (!strcmp(account->notes[i], note))
			return true;
	}
	return false;
}

void account_add_notes(struct account *account, const struct account *more, uint32_t first)
{
	for (uint32_t i = first; i < more->nr_notes; i++) {
		if (!account_has_note(account, more->notes[i]))
			account_note(account, "%s", more->notes[i]);
	}
}

void account_runtime(struct account *account, const char *name, const char *version, uint32_t nr_processes)
{
	struct account_runtime runtime = { .nr_processes = nr_processes };
	uint32_t nr = account->nr_runtimes;

	snprintf(runtime.name, sizeof(runtime.name), "%s", name);
	snprintf(runtime.version, sizeof(runtime.version), "%s", version);
	plain_make(runtime.name);
	plain_make(runtime.version);
	for (uint32_t i = 0; i < nr; i++) {
		struct account_runtime *old = &account->runtimes[i];

		if (!strcmp(old->name, runtime.name) && !strcmp(old->version, runtime.version)) {
			old->nr_processes += nr_processes > UINT32_MAX - old->nr_processes ? UINT32_MAX - old->nr_processes : nr_processes;
			return;
		}
	}
	if (nr == ACCOUNT_MAX_RUNTIMES) {
		account->nr_runtimes_refused += account->nr_runtimes_refused < UINT32_MAX;
		return;
	}
	account->runtimes[account->nr_runtimes++] = runtime;
}

const char *filter_name(enum sonde_filter filter)
{
	return filter_names[filter];
}

const char *drop_name(enum sonde_drop drop)
{
	return drop_names[drop];
}

const char *stop_name(enum sonde_stop stop)
{
	return stop_names[stop];
}

const char *runtime_stop_name(enum sonde_runtime_stop stop)
{
	return runtime_stop_names[stop];
}

const char *audit_reason_name(enum audit_reason reason)
{
	return audit_reason_names[reason];
}

const char *drop_text(enum sonde_drop drop)
{
	return drop_texts[drop];
}

const char *stop_mark(enum sonde_stop stop)
{
	return stop_marks[stop];
}

const char *runtime_stop_mark(enum sonde_runtime_stop stop)
{
	return runtime_stop_marks[stop];
}
