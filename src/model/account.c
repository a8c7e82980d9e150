// SPDX-License-Identifier: Apache-2.0
#include "model/account.h"

#include <stdarg.h>
#include <stdio.h>

#define X(id, name, text) name,
static const char *const filter_names[] = { SONDE_FILTER_LIST(X) };
static const char *const drop_names[] = { SONDE_DROP_LIST(X) };
static const char *const stop_names[] = { SONDE_STOP_LIST(X) };
#undef X
#define X(id, name, text) text,
static const char *const drop_texts[] = { SONDE_DROP_LIST(X) };
static const char *const stop_marks[] = { SONDE_STOP_LIST(X) };
#undef X

void account_note(struct account *account, const char *fmt, ...)
{
	va_list args;

	if (account->nr_notes == ACCOUNT_MAX_NOTES) {
		account->nr_notes_refused++;
		return;
	}
	va_start(args, fmt);
	vsnprintf(account->notes[account->nr_notes++], ACCOUNT_NOTE_BYTES, fmt, args);
	va_end(args);
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

const char *drop_text(enum sonde_drop drop)
{
	return drop_texts[drop];
}

const char *stop_mark(enum sonde_stop stop)
{
	return stop_marks[stop];
}
