// SPDX-License-Identifier: Apache-2.0
#include "naming/debug_files.h"

#include <errno.h>
#include <string.h>

#include "base/buffer.h"
#include "base/caller.h"
#include "base/clock.h"
#include "base/number.h"
#include "debuginfod/fetcher.h"
#include "naming/debug_roots.h"
#include "symbolize/debug_file.h"

#define PROGRAM "/proc/self/exe"
#define STEP_NS 20000000u /* short, because samples wait meanwhile */
#define WAIT_MS 50
#define BLANKS	" \t\n"

struct debug_files {
	struct parser *parser;
	struct fetcher *fetcher;
	struct proxy *proxy;
	bool lines;
	uint32_t next_location; /* the first that was not looked at yet */
	struct buffer seen;  /* one byte per object */
};

static void debug_files_freep(struct debug_files **files)
{
	debug_files_free(*files);
}

int debug_files_new(struct parser *parser, struct proxy *proxy, struct diag *diag, struct debug_files **ret_files)
{
	const char *urls = getenv("DEBUGINFOD_URLS"), *max = getenv("DEBUGINFOD_MAXSIZE");
	struct fetcher_options options = { .program = PROGRAM, .urls = urls };
	CLEANUP(debug_files_freep) struct debug_files *files = NULL;
	int err;

	if (!urls || !urls[strspn(urls, BLANKS)])
		return 0;
	files = calloc(1, sizeof(*files));
	if (!files)
		return -ENOMEM;
	files->parser = parser;
	files->seen = BUFFER_INIT(UINT32_MAX);
	files->proxy = proxy;
	if (max && number_u64(max, DEBUG_FILE_MAX_BYTES, &options.max_file_bytes))
		options.max_file_bytes = 0;
	err = fetcher_new(&options, diag, &files->fetcher);
	if (!err)
		*ret_files = MOVE(files);
	return err;
}

void debug_files_free(struct debug_files *files)
{
	if (!files)
		return;
	fetcher_free(files->fetcher);
	buffer_done(&files->seen);
	free(files);
}

void debug_files_want_lines(struct debug_files *files, bool lines)
{
	if (files)
		files->lines = lines;
}

/* --- requests ------------------------------------------------------------------------------------------------------------------------- */

/* Was the object looked at before? Marks it as looked at. */
static bool was_seen(struct debug_files *files, uint32_t object)
{
	bool seen;

	if (object >= files->seen.size) {
		size_t more = object + 1 - files->seen.size;
		char *bytes = buffer_reserve(&files->seen, more);

		if (!bytes)
			return true;
		memset(bytes, 0, more);
	}
	seen = files->seen.data[object];
	files->seen.data[object] = 1;
	return seen;
}

static void look_at(struct debug_files *files, const struct location *location, const struct process_table *processes)
{
	struct debug_asker asker;
	char build_id[2 * BUILD_ID_MAX + 1];
	const struct object *object;
	bool wants = false;

	if (!location->tgid || !location->in_elf || location->object == OBJECT_NONE || was_seen(files, location->object))
		return;
	object = object_table_at(process_table_objects(processes), location->object);
	debug_asker_init(&asker, files->proxy, location->tgid, object);
	if (!object->elf || elf_file_fd(object->elf) < 0) /* the vdso */
		return;
	build_id_text(elf_file_build_id(object->elf), build_id);
	if (fetcher_knows(files->fetcher, build_id))
		return;
	if (parser_wants_debug(
		files->parser,
		&(struct parser_names){
		    .elf = object->elf, .path = object->path, .lines = files->lines, .open = debug_asker_open, .open_arg = &asker },
		&wants) ||
	    !wants)
		return;
	if (fetcher_want(files->fetcher, build_id))
		return; /* no memory: goes without */
}

static void look(struct debug_files *files, const struct location_table *locations, const struct process_table *processes, uint64_t end_ns,
		 debug_files_stopped_fn is_stopped, void *arg)
{
	uint32_t nr = location_nr(locations);

	while (files->next_location < nr && clock_ns() < end_ns && !(is_stopped && is_stopped(arg)))
		look_at(files, location_at(locations, files->next_location++), processes);
}

void debug_files_step(struct debug_files *files, const struct location_table *locations, const struct process_table *processes)
{
	if (!files)
		return;
	look(files, locations, processes, clock_ns() + STEP_NS, NULL, NULL);
	fetcher_step(files->fetcher, 0);
}

void debug_files_end_window(struct debug_files *files)
{
	if (files)
		files->next_location = 0;
}

/* --- answers -------------------------------------------------------------------------------------------------------------------------- */

static void note(const struct debug_files *files, struct account *account)
{
	struct fetcher_counts counts = fetcher_counts(files->fetcher);

	if (counts.nr_open)
		account_note(
		    account,
		    "%u debug files had not come from the debuginfod servers in time: names or lines are missing (--debuginfod-timeout)",
		    counts.nr_open);
	if (counts.nr_failed)
		account_note(account, "%u debug files could not be fetched by debuginfod: %s", counts.nr_failed, counts.failure);
	if (counts.nr_refused)
		account_note(account, "%u debug files were not requested: one profile fetches up to %u", counts.nr_refused,
			     FETCHER_MAX_FILES);
}

void debug_files_wait(struct debug_files *files, const struct location_table *locations, const struct process_table *processes,
		      uint64_t end_ns, debug_files_stopped_fn is_stopped, void *arg, struct account *account)
{
	uint64_t now = clock_ns();

	if (!files)
		return;
	/* at least STEP_NS: files in the cache need no waiting */
	look(files, locations, processes, end_ns > now + STEP_NS ? end_ns : now + STEP_NS, is_stopped, arg);
	fetcher_step(files->fetcher, 0);
	while (fetcher_counts(files->fetcher).nr_open && (now = clock_ns()) < end_ns && !is_stopped(arg)) {
		uint64_t left_ms = (end_ns - now) / NS_PER_MS + 1;

		fetcher_step(files->fetcher, (int)(left_ms < WAIT_MS ? left_ms : WAIT_MS));
	}
	if (files->next_location < location_nr(locations))
		account_note(account, "there was no time to look for files without debug files (--debuginfod-timeout)");
	note(files, account);
}

int debug_files_fd(const struct debug_files *files, const struct elf_file *elf)
{
	char build_id[2 * BUILD_ID_MAX + 1];

	if (!files)
		return -1;
	build_id_text(elf_file_build_id(elf), build_id);
	return fetcher_fd(files->fetcher, build_id);
}

void debug_files_refuse(struct debug_files *files, const struct elf_file *elf)
{
	char build_id[2 * BUILD_ID_MAX + 1];

	if (!files || !caller_is(elf_file_owner(elf)))
		return;
	build_id_text(elf_file_build_id(elf), build_id);
	fetcher_refuse(files->fetcher, build_id);
}
