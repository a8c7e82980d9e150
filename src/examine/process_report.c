// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/plain_text.h"
#include "examine/process_look.h"
#include "runtime/recognised.h"
#include "session/session_profile.h"

#define PATH_WIDTH 44

static void heading(struct buffer *buffer, bool colour, const char *text)
{
	buffer_printf(buffer, "\n%s%s%s\n", colour ? "\033[1m" : "", text, colour ? "\033[0m" : "");
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* --- runtimes ------------------------------------------------------------------------------------------------------------------------- */

static void runtime_line(struct buffer *buffer, const struct looked_file *file, const struct runtime_image *image)
{
	const struct recognised *recognised = image->runtime == SONDE_RUNTIME_NONE ? recognised_find(image->reason) : NULL;
	const char *called = recognised ? NULL : runtime_of(image->runtime)->called;

	if (recognised) {
		buffer_printf(buffer, "  %s: its frames are not walked\n", recognised->name);
	} else if (called) {
		buffer_printf(buffer, "  %s: %s%s\n", called, image->is_supported ? "samples have its labels" : "not supported: ",
			      image->reason);
	} else {
		buffer_printf(buffer, "  %s %u.%u", runtime_name(image->runtime), image->version[0], image->version[1]);
		if (image->is_supported)
			buffer_printf(buffer, ".%u: its frames are walked\n", image->version[2]);
		else
			buffer_printf(buffer, ": not supported: %s\n", image->reason);
	}
	buffer_printf(buffer, "    file    %s\n", file->path);
	if (image->is_supported)
		buffer_printf(buffer, "    layout  %s\n", runtime_of(image->runtime)->layout);
	if (recognised)
		buffer_printf(buffer, "    helps   %s\n", recognised->help);
}

static void runtime_lines(struct buffer *buffer, const struct process_look *look, bool colour)
{
	uint32_t nr = 0;

	heading(buffer, colour, "Runtimes");
	for (uint32_t i = 0; i < look->nr_files; i++) {
		for (uint32_t image = 0; image < look->files[i].runtimes.nr_images; image++, nr++)
			runtime_line(buffer, &look->files[i], &look->files[i].runtimes.images[image]);
	}
	if (!nr)
		buffer_text(buffer, "  none: native code alone\n");
	for (uint32_t i = 0; i < look->account.nr_notes; i++)
		buffer_printf(buffer, "  %s\n", look->account.notes[i]);
}

/* --- files ---------------------------------------------------------------------------------------------------------------------------- */

/* The end of a long path: the beginning is the less telling part. */
static const char *end_of(const char *path)
{
	size_t length = strlen(path);

	path += length > PATH_WIDTH ? length - PATH_WIDTH : 0;
	while ((*path & 0xc0) == 0x80) /* within a character */
		path++;
	return path;
}

static void file_line(struct buffer *buffer, const struct looked_file *file)
{
	buffer_printf(buffer, "  %-*s ", PATH_WIDTH, end_of(file->path));
	if (file->no_table[0])
		buffer_printf(buffer, "%8s %7s  ", "none", "");
	else
		buffer_printf(buffer, "%8u %6" PRIu64 "K  ", file->nr_rows, (file->table_bytes + 1023) / 1024);
	buffer_printf(buffer, "%-10s %s\n", look_names_text(file->names), file->has_lines ? "yes" : "no");
	if (file->no_table[0])
		buffer_printf(buffer, "      no unwind table: %s\n", file->no_table);
}

/* Names the largest files without lines, with the command that brings them. */
static void debug_lines(struct buffer *buffer, const struct process_look *look)
{
	const struct looked_file *largest = NULL;
	const char *urls = getenv("DEBUGINFOD_URLS");
	uint32_t nr = 0;

	for (uint32_t i = 0; i < look->nr_files; i++) {
		const struct looked_file *file = &look->files[i];

		if (file->has_lines || !file->build_id[0])
			continue;
		nr++;
		largest = !largest || file->nr_rows > largest->nr_rows ? file : largest;
	}
	if (!nr)
		return;
	buffer_printf(buffer, "  %u file%s no debug file here. ", nr, nr > 1 ? "s have" : " has");
	if (urls && urls[0])
		buffer_printf(buffer, "Recordings fetch them from $DEBUGINFOD_URLS; by hand:\n    debuginfod-find debuginfo %s   # %s\n",
			      largest->build_id, largest->path);
	else
		buffer_printf(buffer, "With $DEBUGINFOD_URLS set to your distribution's server recordings\n  fetch them, as does\n"
				      "    debuginfod-find debuginfo %s   # %s\n",
			      largest->build_id, largest->path);
}

static void file_lines(struct buffer *buffer, const struct process_look *look, bool colour)
{
	heading(buffer, colour, "Files with code");
	if (!look->nr_files) {
		buffer_text(buffer, "  none: a thread of the kernel, or it has just ended\n");
		return;
	}
	buffer_printf(buffer, "  %-*s %8s %7s  %-10s %s\n", PATH_WIDTH, "file", "rows", "table", "names", "lines");
	for (uint32_t i = 0; i < look->nr_files; i++)
		file_line(buffer, &look->files[i]);
	debug_lines(buffer, look);
}

static void made_lines(struct buffer *buffer, const struct process_look *look, bool colour)
{
	if (!look->nr_made)
		return;
	heading(buffer, colour, "Code in no file");
	buffer_printf(buffer, "  %u mapping%s, %" PRIu64 " KiB: ", look->nr_made, look->nr_made > 1 ? "s" : "", look->made_bytes / 1024);
	if (look->nr_name_files)
		buffer_printf(buffer, "its names are in a perf map or jitdump (%u)\n", look->nr_name_files);
	else if (look->nr_name_files_refused)
		buffer_text(buffer, "its perf map or jitdump is refused: it must be a regular file of the process's user\n");
	else
		buffer_text(buffer, "no perf map and no jitdump\n");
}

/* --- stacks --------------------------------------------------------------------------------------------------------------------------- */

static void stack_lines(struct buffer *buffer, const struct process_look *look, bool colour)
{
	const struct account *account = look->session ? profile_account_of(session_profile(look->session)) : NULL;

	heading(buffer, colour, "Stacks of its threads, running and waiting");
	if (look->no_stacks[0] || !account) {
		buffer_printf(buffer, "  not taken%s%s\n", look->no_stacks[0] ? ": " : "", look->no_stacks);
		return;
	}
	buffer_printf(buffer, "  %.1f %% of %.1f seconds of threads' time have whole user stacks\n", percent(look->whole_ns, look->all_ns),
		      (double)look->all_ns / 1e9);
	for (uint32_t i = 0; i < look->nr_marks; i++)
		buffer_printf(buffer, "  %5.1f %% %s\n", percent(look->marks[i].ns, look->all_ns), look->marks[i].name);
	for (uint32_t i = 0; i < account->nr_runtimes; i++) {
		if (account->runtimes[i].version[0]) /* else it has no frames */
			buffer_printf(buffer, "  %s %s: walked, %" PRIu64 " frame%s without a name\n", account->runtimes[i].name,
				      account->runtimes[i].version, account->nr_frames_unnamed,
				      account->nr_frames_unnamed == 1 ? "" : "s");
	}
}

void process_report(struct process_look *look, bool colour, struct buffer *buffer)
{
	plain_make(look->comm);
	for (uint32_t i = 0; i < look->nr_files; i++)
		plain_make(look->files[i].path);
	buffer_printf(buffer, "%sProcess %u%s: %s, %u thread%s\n", colour ? "\033[1m" : "", look->tgid, colour ? "\033[0m" : "", look->comm,
		      look->nr_threads, look->nr_threads > 1 ? "s" : "");
	runtime_lines(buffer, look, colour);
	file_lines(buffer, look, colour);
	made_lines(buffer, look, colour);
	stack_lines(buffer, look, colour);
}
