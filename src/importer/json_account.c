// SPDX-License-Identifier: Apache-2.0
#include "importer/json_account.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

struct in {
	struct json_reader *r;
	struct buffer *key, *text;
};

/* Fields of the account, by key. */
static const struct number_field {
	const char *key;
	size_t offset;
	bool is_u32;
} number_fields[] = {
#define NUMBER(field) { #field, offsetof(struct account, field), sizeof(((struct account *)NULL)->field) == 4 }
	NUMBER(freq_hz),
	NUMBER(period),
	NUMBER(start_unix_ns),
	NUMBER(duration_ns),
	NUMBER(nr_cpus),
	NUMBER(expected),
	NUMBER(events),
	NUMBER(throttled),
	NUMBER(throttled_ns),
	NUMBER(unscheduled_ns),
	NUMBER(ticks),
	NUMBER(recorded),
	NUMBER(missed_user),
	NUMBER(missed_kernel),
	NUMBER(missed_full),
	NUMBER(missed_collided),
	NUMBER(late),
	NUMBER(late_refused),
	NUMBER(late_cut),
	NUMBER(lost_sideband),
	NUMBER(audited),
	NUMBER(audit_agreed),
	NUMBER(audit_differed),
	NUMBER(cpu_user_ns),
	NUMBER(cpu_system_ns),
	NUMBER(max_rss_bytes),
	NUMBER(bpf_map_bytes),
	NUMBER(startup_ns),
	NUMBER(unwind_rows),
	NUMBER(unwind_bytes),
	NUMBER(unwind_evicted),
	NUMBER(unwind_reloaded),
	NUMBER(unwind_cached),
	NUMBER(nr_processes),
	NUMBER(nr_objects),
	NUMBER(nr_notes_refused),
	NUMBER(runtime_missed),
	NUMBER(runtime_cache_hits),
	NUMBER(runtime_cache_checks),
	NUMBER(runtime_cache_wrong),
	NUMBER(labels_missed),
	NUMBER(nr_frames_unnamed),
	NUMBER(nr_runtimes_refused),
#undef NUMBER
};

static const struct text_field {
	const char *key;
	size_t offset, size;
} text_fields[] = {
#define TEXT(field) { #field, offsetof(struct account, field), sizeof(((struct account *)NULL)->field) }
	TEXT(command_line), TEXT(event), TEXT(event_unit), TEXT(host), TEXT(kernel),
#undef TEXT
};

static bool take_number(const struct in *in, struct account *account)
{
	for (size_t i = 0; i < ARRAY_SIZE(number_fields); i++) {
		char *at = (char *)account + number_fields[i].offset;
		uint64_t value;

		if (strcmp(in->key->data, number_fields[i].key) != 0)
			continue;
		value = json_read_u64(in->r);
		if (number_fields[i].is_u32)
			*(uint32_t *)at = value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
		else
			*(uint64_t *)at = value;
		return true;
	}
	return false;
}

static bool take_text(const struct in *in, struct account *account)
{
	for (size_t i = 0; i < ARRAY_SIZE(text_fields); i++) {
		if (strcmp(in->key->data, text_fields[i].key) != 0)
			continue;
		json_read_text(in->r, in->text);
		if (!in->text->err)
			snprintf((char *)account + text_fields[i].offset, text_fields[i].size, "%s", in->text->data);
		return true;
	}
	return false;
}

/* Reads an object of counts by name. Skips names of reasons that this version does not know. */
static void take_counts(const struct in *in, uint64_t *counts, int nr_counts, const char *(*name_of)(int reason))
{
	for (json_enter(in->r, '{'); json_next_key(in->r, in->key);) {
		uint64_t value = json_read_u64(in->r);

		for (int i = 0; i < nr_counts; i++) {
			if (!strcmp(in->key->data, name_of(i)))
				counts[i] = value;
		}
	}
}

static const char *filter_at(int reason)
{
	return filter_name((enum sonde_filter)reason);
}

static const char *drop_at(int reason)
{
	return drop_name((enum sonde_drop)reason);
}

static const char *stop_at(int reason)
{
	return stop_name((enum sonde_stop)reason);
}

static const char *runtime_stop_at(int reason)
{
	return runtime_stop_name((enum sonde_runtime_stop)reason);
}

static const char *audit_at(int reason)
{
	return audit_reason_name((enum audit_reason)reason);
}

static void take_notes(const struct in *in, struct account *account)
{
	for (json_enter(in->r, '['); json_next(in->r);) {
		json_read_text(in->r, in->text);
		if (!in->r->bad && !in->text->err)
			account_note(account, "%s", in->text->data);
	}
}

static void take_runtimes(const struct in *in, struct account *account)
{
	for (json_enter(in->r, '['); json_next(in->r);) {
		struct account_runtime runtime = { 0 };
		uint64_t nr_processes = 0;

		for (json_enter(in->r, '{'); !in->key->err && json_next_key(in->r, in->key);) {
			bool is_name = !strcmp(in->key->data, "name");

			if (!strcmp(in->key->data, "nr_processes")) {
				nr_processes = json_read_u64(in->r);
			} else if (is_name || !strcmp(in->key->data, "version")) {
				json_read_text(in->r, in->text);
				if (!in->text->err)
					snprintf(is_name ? runtime.name : runtime.version, sizeof(runtime.name), "%s", in->text->data);
			} else {
				json_skip(in->r);
			}
		}
		if (!in->r->bad)
			account_runtime(account, runtime.name, runtime.version,
					nr_processes > UINT32_MAX ? UINT32_MAX : (uint32_t)nr_processes);
	}
}

static void take_sides(const struct in *in, struct account *account)
{
	uint32_t nr = 0;

	for (json_enter(in->r, '['); json_next(in->r); nr++) {
		struct account_side other, *side = nr < ARRAY_SIZE(account->sides) ? &account->sides[nr] : &other;

		for (json_enter(in->r, '{'); !in->key->err && json_next_key(in->r, in->key);) {
			if (!strcmp(in->key->data, "all")) {
				side->all = json_read_u64(in->r);
			} else if (!strcmp(in->key->data, "nr_samples")) {
				side->nr_samples = json_read_u64(in->r);
			} else if (!strcmp(in->key->data, "name")) {
				json_read_text(in->r, in->text);
				if (!in->text->err)
					snprintf(side->name, sizeof(side->name), "%s", in->text->data);
			} else {
				json_skip(in->r);
			}
		}
	}
}

static void take_waits(const struct in *in, struct account *account)
{
	static const struct {
		const char *name;
		size_t offset;
	} fields[] = {
#define X(field) { #field, offsetof(struct account_waits, field) },
		ACCOUNT_WAIT_LIST(X)
#undef X
	};

	account->has_waits = true;
	for (json_enter(in->r, '{'); json_next_key(in->r, in->key);) {
		uint64_t value = json_read_u64(in->r);

		for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
			if (!strcmp(in->key->data, fields[i].name))
				*(uint64_t *)((char *)&account->waits + fields[i].offset) = value;
		}
	}
}

void json_account(struct json_reader *r, struct buffer *key, struct buffer *text, struct account *account)
{
	const struct in in = { .r = r, .key = key, .text = text };

	for (json_enter(r, '{'); !key->err && json_next_key(r, key);) {
		if (key->err || take_number(&in, account) || take_text(&in, account))
			continue;
		if (!strcmp(key->data, "filtered"))
			take_counts(&in, account->filtered, SONDE_FILTER_COUNT, filter_at);
		else if (!strcmp(key->data, "dropped"))
			take_counts(&in, account->dropped, SONDE_DROP_COUNT, drop_at);
		else if (!strcmp(key->data, "stopped"))
			take_counts(&in, account->stopped, SONDE_STOP_COUNT, stop_at);
		else if (!strcmp(key->data, "runtime_stopped"))
			take_counts(&in, account->runtime_stopped, SONDE_RUNTIME_STOP_COUNT, runtime_stop_at);
		else if (!strcmp(key->data, "waits"))
			take_waits(&in, account);
		else if (!strcmp(key->data, "sides"))
			take_sides(&in, account);
		else if (!strcmp(key->data, "runtimes"))
			take_runtimes(&in, account);
		else if (!strcmp(key->data, "audit_not_comparable"))
			take_counts(&in, account->audit_not_comparable, AUDIT_REASON_COUNT, audit_at);
		else if (!strcmp(key->data, "notes"))
			take_notes(&in, account);
		else
			json_skip(r);
	}
}
