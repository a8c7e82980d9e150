// SPDX-License-Identifier: Apache-2.0
#include "formats/account_json.h"

static void write_sides(struct json *json, const struct account_side sides[2])
{
	json_key(json, "sides");
	json_open(json, '[');
	for (int i = 0; i < 2; i++) {
		json_open(json, '{');
		json_key_text(json, "name", sides[i].name);
		json_key_u64(json, "all", sides[i].all);
		json_key_u64(json, "nr_samples", sides[i].nr_samples);
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void write_run(struct json *json, const struct account *account)
{
	json_key_text(json, "command_line", account->command_line);
	json_key_text(json, "event", account->event);
	json_key_text(json, "event_unit", account->event_unit);
	json_key_u64(json, "freq_hz", account->freq_hz);
	json_key_u64(json, "period", account->period);
	json_key_text(json, "host", account->host);
	json_key_text(json, "kernel", account->kernel);
	json_key_u64(json, "start_unix_ns", account->start_unix_ns);
	json_key_u64(json, "duration_ns", account->duration_ns);
	json_key_u64(json, "nr_cpus", account->nr_cpus);
	if (account->sides[0].all)
		write_sides(json, account->sides);
}

static void write_reasons(struct json *json, const struct account *account)
{
	json_key(json, "filtered");
	json_open(json, '{');
	for (int i = 0; i < SONDE_FILTER_COUNT; i++)
		json_key_u64(json, filter_name(i), account->filtered[i]);
	json_close(json, '}');
	json_key(json, "dropped");
	json_open(json, '{');
	for (int i = 0; i < SONDE_DROP_COUNT; i++)
		json_key_u64(json, drop_name(i), account->dropped[i]);
	json_close(json, '}');
	json_key(json, "stopped");
	json_open(json, '{');
	for (int i = 0; i < SONDE_STOP_COUNT; i++)
		json_key_u64(json, stop_name(i), account->stopped[i]);
	json_close(json, '}');
}

static void write_runtimes(struct json *json, const struct account *account)
{
	json_key(json, "runtime_stopped");
	json_open(json, '{');
	for (int i = 0; i < SONDE_RUNTIME_STOP_COUNT; i++)
		json_key_u64(json, runtime_stop_name(i), account->runtime_stopped[i]);
	json_close(json, '}');
	json_key_u64(json, "runtime_missed", account->runtime_missed);
	json_key_u64(json, "runtime_cache_hits", account->runtime_cache_hits);
	json_key_u64(json, "runtime_cache_checks", account->runtime_cache_checks);
	json_key_u64(json, "runtime_cache_wrong", account->runtime_cache_wrong);
	json_key_u64(json, "labels_missed", account->labels_missed);
	json_key_u64(json, "nr_frames_unnamed", account->nr_frames_unnamed);
	json_key(json, "runtimes");
	json_open(json, '[');
	for (uint32_t i = 0; i < account->nr_runtimes; i++) {
		json_open(json, '{');
		json_key_text(json, "name", account->runtimes[i].name);
		json_key_text(json, "version", account->runtimes[i].version);
		json_key_u64(json, "nr_processes", account->runtimes[i].nr_processes);
		json_close(json, '}');
	}
	json_close(json, ']');
	json_key_u64(json, "nr_runtimes_refused", account->nr_runtimes_refused);
}

static void write_waits(struct json *json, const struct account_waits *waits)
{
	json_key(json, "waits");
	json_open(json, '{');
#define X(field) json_key_u64(json, #field, waits->field);
	ACCOUNT_WAIT_LIST(X)
#undef X
	json_close(json, '}');
}

static void write_audit(struct json *json, const struct account *account)
{
	json_key_u64(json, "audited", account->audited);
	json_key_u64(json, "audit_agreed", account->audit_agreed);
	json_key_u64(json, "audit_differed", account->audit_differed);
	json_key(json, "audit_not_comparable");
	json_open(json, '{');
	for (int i = 0; i < AUDIT_REASON_COUNT; i++)
		json_key_u64(json, audit_reason_name(i), account->audit_not_comparable[i]);
	json_close(json, '}');
}

static void write_cost(struct json *json, const struct account *account)
{
	json_key_u64(json, "cpu_user_ns", account->cpu_user_ns);
	json_key_u64(json, "cpu_system_ns", account->cpu_system_ns);
	json_key_u64(json, "max_rss_bytes", account->max_rss_bytes);
	json_key_u64(json, "bpf_map_bytes", account->bpf_map_bytes);
	json_key_u64(json, "startup_ns", account->startup_ns);
	json_key_u64(json, "unwind_rows", account->unwind_rows);
	json_key_u64(json, "unwind_bytes", account->unwind_bytes);
	json_key_u64(json, "unwind_evicted", account->unwind_evicted);
	json_key_u64(json, "unwind_reloaded", account->unwind_reloaded);
	json_key_u64(json, "unwind_cached", account->unwind_cached);
	json_key_u64(json, "nr_processes", account->nr_processes);
	json_key_u64(json, "nr_objects", account->nr_objects);
}

void write_account(struct json *json, const struct account *account)
{
	json_open(json, '{');
	write_run(json, account);
	json_key_u64(json, "expected", account->expected);
	json_key_u64(json, "events", account->events);
	json_key_u64(json, "throttled", account->throttled);
	json_key_u64(json, "throttled_ns", account->throttled_ns);
	json_key_u64(json, "unscheduled_ns", account->unscheduled_ns);
	json_key_u64(json, "ticks", account->ticks);
	json_key_u64(json, "recorded", account->recorded);
	write_reasons(json, account);
	json_key_u64(json, "missed_user", account->missed_user);
	json_key_u64(json, "missed_kernel", account->missed_kernel);
	json_key_u64(json, "missed_full", account->missed_full);
	json_key_u64(json, "missed_collided", account->missed_collided);
	json_key_u64(json, "late", account->late);
	json_key_u64(json, "late_refused", account->late_refused);
	json_key_u64(json, "late_cut", account->late_cut);
	json_key_u64(json, "lost_sideband", account->lost_sideband);
	if (account->has_waits)
		write_waits(json, &account->waits);
	write_runtimes(json, account);
	write_audit(json, account);
	write_cost(json, account);
	json_key(json, "notes");
	json_open(json, '[');
	for (uint32_t i = 0; i < account->nr_notes; i++)
		json_text(json, account->notes[i]);
	json_close(json, ']');
	json_key_u64(json, "nr_notes_refused", account->nr_notes_refused);
	json_close(json, '}');
}
