// SPDX-License-Identifier: Apache-2.0
/* perf_profile_account: the account of a recording: what it is, and what is missing. Also compares its kernel with the running one. */
#include <inttypes.h>
#include <sys/utsname.h>

#include "base/reader.h"
#include "replay/perf_profile_private.h"
#include "symbolize/symbolizer.h"
#include "track/account_common.h"

#define NOTES_PATH "/sys/kernel/notes"
#define KERNEL_PATH "[kernel.kallsyms]"
#define NOTE_GNU_BUILD_ID 3
#define NOTES_BYTES_MAX 65536

/* Reads the running kernel's build id. Size 0: not known. */
static void read_kernel_id(struct build_id *ret_id)
{
	CLEANUP(fclosep) FILE *file = fopen(NOTES_PATH, "re");
	CLEANUP(freep) uint8_t *bytes = malloc(NOTES_BYTES_MAX);
	struct reader r;

	ret_id->size = 0;
	if (!file || !bytes)
		return;
	r = reader_of(bytes, fread(bytes, 1, NOTES_BYTES_MAX, file));
	while (reader_left(&r) >= 12) {
		uint32_t name_bytes = reader_u32(&r), id_bytes = reader_u32(&r), type = reader_u32(&r);
		struct reader name = reader_sub(&r, (size_t)(name_bytes + 3ull) / 4 * 4),
			      id = reader_sub(&r, (size_t)(id_bytes + 3ull) / 4 * 4);

		if (type != NOTE_GNU_BUILD_ID || name_bytes != 4 || memcmp(name.pos, "GNU", 4) || id.bad || id_bytes > BUILD_ID_MAX)
			continue;
		ret_id->size = (uint8_t)id_bytes;
		memcpy(ret_id->bytes, id.pos, id_bytes);
		return;
	}
}

/* Does the running kernel's text begin at the same address as the recorded one's? It changes at each boot (KASLR). */
static bool is_at_same_place(const struct perf_import *import)
{
	struct symbolizer *symbolizer = symbolizer_new(NULL);
	struct symbol_name name;
	bool is_same = symbolizer && !symbolizer_kernel(symbolizer, import->kernel_base, &name) && name.start == import->kernel_base;

	symbolizer_free(symbolizer);
	return is_same;
}

bool perf_import_is_same_kernel(struct perf_import *import)
{
	const struct build_id *recorded = perf_files_build_id(import->files, KERNEL_PATH);
	struct build_id own;
	struct utsname name;

	read_kernel_id(&own);
	if (!perf_files_are_ours(import->files) || uname(&name) ||
	    (import->info->kernel[0] && strncmp(import->info->kernel, name.release, sizeof(import->info->kernel) - 1)))
		return false;
	return !recorded || !own.size || (recorded->size >= own.size && !memcmp(recorded->bytes, own.bytes, own.size));
}

bool perf_import_has_kernel(struct perf_import *import, const char **ret_why)
{
	*ret_why = "another kernel runs here";
	if (!perf_import_is_same_kernel(import))
		return false;
	*ret_why = "it does not tell where its kernel stood";
	if (!import->kernel_base)
		return false;
	*ret_why = "the kernel was started again since, or hides its addresses (CAP_SYSLOG is needed, or kernel.kptr_restrict=0)";
	return is_at_same_place(import);
}

static void note_reading(const struct perf_import *import)
{
	const struct perf_data_info *info = import->info;
	struct account *account = import->account;

	if (info->is_cut)
		account_note(account, "the recording is cut short (was perf killed, or is the disk full?): what is complete was read");
	if (info->nr_disordered)
		account_note(account, "%" PRIu64 " records of perf came out of order: some mappings may have been known too late",
			     info->nr_disordered);
	if (info->nr_refused)
		account_note(account, "%" PRIu64 " records of perf are invalid and left out", info->nr_refused);
	if (info->nr_unknown_event)
		account_note(account, "%" PRIu64 " samples belong to no event of the recording and are left out", info->nr_unknown_event);
	if (import->nr_lost)
		account_note(account, "%" PRIu64 " records did not find room in perf's buffers: samples, or what processes did",
			     import->nr_lost);
	if (import->nr_throttled)
		account_note(account, "the kernel throttled the event %" PRIu64 " times: samples are missing there", import->nr_throttled);
	if (import->nr_no_column)
		account_note(account, "%" PRIu64 " samples of further events are left out: a profile has room for %d", import->nr_no_column,
			     PROFILE_MAX_VALUES);
	if (import->nr_guest)
		account_note(account, "%" PRIu64 " samples are of virtual machines: their stacks have no frames", import->nr_guest);
	if (import->nr_bad_chain)
		account_note(account, "%" PRIu64 " frame pointer chains lead to addresses without code: they are marked, and end there",
			     import->nr_bad_chain);
	if (import->has_unwalkable)
		account_note(
		    account,
		    "stacks recorded as memory are not walked: they lack registers, or are from another kind of machine (%s)",
		    info->arch);
}

static void note_files(const struct perf_import *import)
{
	const char *path;
	uint32_t nr_changed, nr = perf_files_nr_missing(import->files, &nr_changed, &path);

	if (nr)
		account_note(import->account,
			     "%u files of the recording are missing (%u were replaced): they have no names, and no stack is walked through "
			     "them: %s%s",
			     nr, nr_changed, path, nr > 1 ? ", ..." : "");
}

void perf_import_account(struct perf_import *import)
{
	const struct perf_data_info *info = import->info;
	struct account *account = import->account;

	for (uint32_t i = 0; i < info->nr_events; i++) {
		const struct perf_data_event *event = &info->events[i];

		if (import->column_of[i] == PROFILE_MAX_VALUES || account->event[0])
			continue;
		snprintf(account->event, sizeof(account->event), "%.63s", event->name);
		snprintf(account->event_unit, sizeof(account->event_unit), "%s",
			 event->type == 1 && event->config <= 1 ? "nanoseconds" : "count");
		*(event->is_freq ? &account->freq_hz : &account->period) = event->period_or_freq;
	}
	snprintf(account->command_line, sizeof(account->command_line), "%s", info->command_line);
	snprintf(account->host, sizeof(account->host), "%s", info->host);
	snprintf(account->kernel, sizeof(account->kernel), "%s", info->kernel);
	account->nr_cpus = info->nr_cpus;
	account->start_unix_ns = info->has_clock ? import->first_ns + info->unix_offset_ns : 0;
	account->duration_ns = import->last_ns - import->first_ns;
	account->dropped[SONDE_DROP_RING_FULL] = import->nr_lost_samples;
	account->recorded = import->nr_samples - import->nr_no_column;
	account->ticks = account->recorded + account->dropped[SONDE_DROP_RING_FULL];
	account->lost_sideband = import->nr_lost;
	account_processes(account, import->processes);
	account_proxy(account, import->proxy);
	if (import->options.timestamps && !info->has_clock)
		account_note(account,
			     "the recording has no time of day (perf record -k CLOCK_MONOTONIC adds it): its times count from boot");
	note_reading(import);
	note_files(import);
}
