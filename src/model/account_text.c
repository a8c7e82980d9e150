// SPDX-License-Identifier: Apache-2.0
#include "model/account_text.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/plain_text.h"

#define SECOND_NS 1e9
#define MIB	  (1024.0 * 1024.0)

static uint64_t sum(const uint64_t *counts, size_t nr_counts)
{
	uint64_t total = 0;

	for (size_t i = 0; i < nr_counts; i++)
		total += counts[i];
	return total;
}

void account_text_notes(const struct account *account, uint32_t first_note, struct buffer *buffer)
{
	for (uint32_t i = first_note; i < account->nr_notes; i++)
		buffer_printf(buffer, "warning: %s\n", account->notes[i]);
	if (account->nr_notes_refused)
		buffer_printf(buffer, "warning: %" PRIu32 " more warnings found no room\n", account->nr_notes_refused);
}

/* True: the account has waits and no ticks. */
static bool is_of_waits(const struct account *account)
{
	return account->has_waits && !account->freq_hz && !account->ticks;
}

static void write_where(const struct account *account, struct buffer *buffer)
{
	buffer_printf(buffer, " on %" PRIu32 " CPUs for %.1f s\n", account->nr_cpus, (double)account->duration_ns / SECOND_NS);
}

static void write_period(const struct account *account, struct buffer *buffer)
{
	buffer_printf(buffer, " every %" PRIu64 " ", account->period);
	plain_text(buffer, account->event_unit, ';');
}

static void write_run(const struct account *account, struct buffer *buffer)
{
	buffer_text(buffer, "event: ");
	plain_text(buffer, account->event, ';'); /* a file from elsewhere can hold any text */
	if (is_of_waits(account)) {
		write_where(account, buffer);
		return;
	}
	if (account->freq_hz)
		buffer_printf(buffer, " at %" PRIu64 " Hz", account->freq_hz);
	else
		write_period(account, buffer);
	write_where(account, buffer);
}

/* Writes what happened to the waits, including those that are not in the report. */
static void write_waits(const struct account *account, struct buffer *buffer)
{
	const struct account_waits *waits = &account->waits;

	if (!account->has_waits)
		return;
	buffer_printf(buffer,
		      "waits: %" PRIu64 " of %" PRIu64 " switches; %" PRIu64 " filtered, %" PRIu64 " too short or too long, %" PRIu64
		      " of threads not seen before\n",
		      waits->waits, waits->switches, waits->filtered_target, waits->filtered_time, waits->unseen);
	if (waits->sums_full)
		buffer_printf(buffer,
			      "lost: %" PRIu64
			      " waits of %.3f s in all: no room for more different ones. Consider increasing --stack-storage-size.\n",
			      waits->sums_full, (double)waits->lost_ns / SECOND_NS);
	if (waits->slots_full)
		buffer_printf(buffer,
			      "lost: %" PRIu64
			      " waits in the histograms: no room for more different ones. Consider increasing --stack-storage-size.\n",
			      waits->slots_full);
	if (waits->no_storage)
		buffer_printf(buffer, "lost: %" PRIu64 " waits: no memory for the state of a thread\n", waits->no_storage);
	if (waits->events_lost)
		buffer_printf(buffer, "lost: %" PRIu64 " switches and wake-ups of the events' file: no room in the ring buffer\n",
			      waits->events_lost);
	if (waits->stack_cache_wrong)
		buffer_printf(buffer, "stacks taken from the cache: %" PRIu64 " of %" PRIu64 " that were walked all the same were not\n",
			      waits->stack_cache_wrong, waits->stack_cache_checks);
}

/* Writes which of the ticks that were due are missing. Ticks of clocks arrive late and merged if an idle or busy CPU, or the host, delays
 * them. */
static void write_skipped(const struct account *account, struct buffer *buffer)
{
	bool is_clock = !strcmp(account->event_unit, "nanoseconds");

	if (account->expected > account->ticks)
		buffer_printf(buffer, "skipped: %" PRIu64 " of %" PRIu64 " expected ticks never came%s\n",
			      account->expected - account->ticks, account->expected,
			      is_clock ? ": held back by the kernel or the host, or while another BPF program ran"
				       : ": another BPF program ran, or too many came at once");
	if (account->events && !account->period && !is_clock) {
		buffer_printf(buffer, "counted: %" PRIu64 " ", account->events);
		plain_text(buffer, account->event, ';');
		buffer_text(buffer, "; the number of expected ticks is unknown, as the kernel varies the period\n");
	}
	if (account->throttled)
		buffer_printf(buffer,
			      "throttled: %" PRIu64 " times the kernel held the event back, for %.3f s over all CPUs: more ticks than "
						    "kernel.perf_event_max_sample_rate allows\n",
			      account->throttled, (double)account->throttled_ns / SECOND_NS);
	if (account->unscheduled_ns)
		buffer_printf(buffer, "not counted: others had the PMU for %.3f s over all CPUs\n",
			      (double)account->unscheduled_ns / SECOND_NS);
}

static void write_samples(const struct account *account, struct buffer *buffer)
{
	const char *between = " (";

	buffer_printf(buffer, "samples: %" PRIu64 " of %" PRIu64 " ticks; %" PRIu64 " filtered", account->recorded, account->ticks,
		      sum(account->filtered, SONDE_FILTER_COUNT));
	for (int i = 0; i < SONDE_FILTER_COUNT; i++) {
		if (!account->filtered[i])
			continue;
		buffer_printf(buffer, "%s%s %" PRIu64, between, filter_name(i), account->filtered[i]);
		between = ", ";
	}
	buffer_printf(buffer, "%s, %" PRIu64 " lost\n", *between == ',' ? ")" : "", sum(account->dropped, SONDE_DROP_COUNT));
	for (int i = 0; i < SONDE_DROP_COUNT; i++) {
		if (account->dropped[i])
			buffer_printf(buffer, "lost: %" PRIu64 " %s: %s\n", account->dropped[i], drop_name(i), drop_text(i));
	}
	write_skipped(account, buffer);
	if (account->lost_sideband)
		buffer_printf(buffer, "lost: %" PRIu64 " mapping and process events of the kernel\n", account->lost_sideband);
}

static void write_stacks(const struct account *account, struct buffer *buffer)
{
	buffer_printf(buffer, "user stacks: %" PRIu64 " complete", account->stopped[SONDE_STOP_COMPLETE]);
	for (int i = SONDE_STOP_COMPLETE + 1; i < SONDE_STOP_COUNT; i++) {
		if (account->stopped[i])
			buffer_printf(buffer, ", %" PRIu64 " %s", account->stopped[i], stop_name(i));
	}
	buffer_printf(buffer, "; missed: %" PRIu64 " user, %" PRIu64 " kernel", account->missed_user, account->missed_kernel);
	if (account->late)
		buffer_printf(buffer, "; %" PRIu64 " walked late", account->late);
	if (account->late_cut)
		buffer_printf(buffer, ", %" PRIu64 " of them not whole for want of room", account->late_cut);
	buffer_text(buffer, "\n");
	if (account->missed_collided)
		buffer_printf(buffer,
			      "missed: %" PRIu64 " stacks whose hash another stack had, too: which of the two they were is unknown\n",
			      account->missed_collided);
}

/* Writes nothing if there is nothing to report: most runs have no interpreter. */
static void write_runtimes(const struct account *account, struct buffer *buffer)
{
	const char *between = "runtimes: ";

	for (uint32_t i = 0; i < account->nr_runtimes; i++) {
		const struct account_runtime *runtime = &account->runtimes[i];

		buffer_printf(buffer, "%s%s%s%s (%" PRIu32 " process%s)", between, runtime->name, *runtime->version ? " " : "",
			      runtime->version, runtime->nr_processes, runtime->nr_processes == 1 ? "" : "es");
		between = ", ";
	}
	if (account->nr_runtimes_refused)
		buffer_printf(buffer, "%sfurther ones that found no room", between);
	if (account->nr_runtimes || account->nr_runtimes_refused)
		buffer_text(buffer, "\n");
	if (account->labels_missed)
		buffer_printf(buffer, "labels: those of %" PRIu64 " samples were lost\n", account->labels_missed);
	if (account->runtime_cache_wrong)
		buffer_printf(buffer, "interpreters: %" PRIu64 " of %" PRIu64 " checked frames from the cache were wrong\n",
			      account->runtime_cache_wrong, account->runtime_cache_checks);
	if (!sum(account->runtime_stopped, SONDE_RUNTIME_STOP_COUNT) && !account->nr_frames_unnamed && !account->runtime_missed)
		return;
	buffer_printf(buffer, "runtime stacks: %" PRIu64 " complete", account->runtime_stopped[SONDE_RUNTIME_STOP_COMPLETE]);
	for (int i = SONDE_RUNTIME_STOP_COMPLETE + 1; i < SONDE_RUNTIME_STOP_COUNT; i++) {
		if (account->runtime_stopped[i])
			buffer_printf(buffer, ", %" PRIu64 " %s", account->runtime_stopped[i], runtime_stop_name(i));
	}
	if (account->runtime_missed)
		buffer_printf(buffer, ", %" PRIu64 " lost", account->runtime_missed);
	if (account->nr_frames_unnamed)
		buffer_printf(buffer, "; %" PRIu64 " frames whose name could not be read", account->nr_frames_unnamed);
	buffer_text(buffer, "\n");
}

/* "123 of 124" leaves out stacks that are not comparable: they say nothing about the walk. */
static void write_audit(const struct account *account, struct buffer *buffer)
{
	const char *between = " (";

	if (!account->audited)
		return;
	buffer_printf(buffer, "audit: %" PRIu64 " of %" PRIu64 " stacks agree with libdw, %" PRIu64 " not comparable",
		      account->audit_agreed, account->audit_agreed + account->audit_differed,
		      sum(account->audit_not_comparable, AUDIT_REASON_COUNT));
	for (int i = 0; i < AUDIT_REASON_COUNT; i++) {
		if (!account->audit_not_comparable[i])
			continue;
		buffer_printf(buffer, "%s%s %" PRIu64, between, audit_reason_name(i), account->audit_not_comparable[i]);
		between = ", ";
	}
	buffer_printf(buffer, "%s\n", *between == ',' ? ")" : "");
}

static void write_cost(const struct account *account, struct buffer *buffer)
{
	buffer_printf(buffer, "own cost: %.2f s user, %.2f s system, %.1f MiB memory, %.1f MiB BPF maps, first sample after %.0f ms\n",
		      (double)account->cpu_user_ns / SECOND_NS, (double)account->cpu_system_ns / SECOND_NS,
		      (double)account->max_rss_bytes / MIB, (double)account->bpf_map_bytes / MIB, (double)account->startup_ns / 1e6);
	buffer_printf(buffer, "unwind tables: %" PRIu64 " rows in %.1f MiB, %" PRIu32 " files of %" PRIu32 " processes",
		      account->unwind_rows, (double)account->unwind_bytes / MIB, account->nr_objects, account->nr_processes);
	if (account->unwind_cached)
		buffer_printf(buffer, "; %" PRIu64 " from the cache", account->unwind_cached);
	if (account->unwind_evicted)
		buffer_printf(buffer, "; %" PRIu64 " made room for others, %" PRIu64 " came back", account->unwind_evicted,
			      account->unwind_reloaded);
	buffer_text(buffer, "\n");
}

void account_text(const struct account *account, uint32_t first_note, struct buffer *buffer)
{
	account_text_notes(account, first_note, buffer);
	if (!account->nr_cpus) /* from a file without data about the run */
		return;
	write_run(account, buffer);
	if (!is_of_waits(account))
		write_samples(account, buffer);
	write_waits(account, buffer);
	write_stacks(account, buffer);
	write_runtimes(account, buffer);
	write_audit(account, buffer);
	write_cost(account, buffer);
}

const char *account_command(const struct account *account)
{
	static const char word[] = "sonde ";
	bool has_word = !strncmp(account->command_line, word, strlen(word));

	return account->command_line + (has_word ? strlen(word) : 0);
}

void account_text_run(const struct account *account, struct buffer *buffer)
{
	if (account->nr_cpus) {
		write_run(account, buffer);
		if (!is_of_waits(account))
			write_samples(account, buffer);
		write_waits(account, buffer);
		write_stacks(account, buffer);
		write_runtimes(account, buffer);
	}
	account_text_notes(account, 0, buffer);
}
