// SPDX-License-Identifier: Apache-2.0
/* Writes what `perf script --header --ns` prints (tools/perf/builtin-script.c), which many tools read. Each sample is an entry of its own,
 * since readers count entries. The text of a location is built once and copied. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "formats/formats.h"
#include "frames/frame_source.h"
#include "frames/frame_text.h"
#include "frames/tick.h"
#include "frames/tracks.h"
#include "model/account_text.h"

#define KERNEL_DSO  "[kernel.kallsyms]"
#define UNKNOWN	    "[unknown]"
#define MAX_ENTRIES ((uint64_t)1 << 24) /* a line of folded stacks may claim any number of samples */

struct script {
	const struct profile *profile;
	struct buffer *buffer;
	struct buffer frames; /* lines of all locations, concatenated */
	size_t *ends;	      /* by location: where its line ends */
	struct buffer event;
	uint64_t period;
	bool counts;	      /* the values are samples: each gets its own entry */
};

/* Replaces blanks and colons: for most readers a blank ends the word. */
static void word(struct buffer *buffer, const char *text, const char *instead)
{
	size_t from = buffer->size;

	plain_text(buffer, *text ? text : instead, ';');
	for (size_t i = from; i < buffer->size && !buffer->err; i++) {
		if (buffer->data[i] == ' ' || buffer->data[i] == ':')
			buffer->data[i] = '_';
	}
}

/* "ext4_readpage [ext4]": the offset of the kernel module's name, or of the end of the text. */
static size_t module_at(const char *name)
{
	const char *bracket = strrchr(name, '[');
	size_t size = strlen(name);

	return bracket > name + 1 && bracket[-1] == ' ' && name[size - 1] == ']' ? (size_t)(bracket - name) : size;
}

static void write_kernel_name(struct buffer *line, const struct profile_location *location, const char *name)
{
	CLEANUP(buffer_done) struct buffer symbol = BUFFER_INIT(line->max);
	size_t module = module_at(name);

	buffer_append(&symbol, name, name[module] ? module - 1 : module);
	if (symbol.err)
		line->err = symbol.err;
	else
		plain_text(line, symbol.data ? symbol.data : "", ';');
	buffer_printf(line, "+0x%" PRIx64 " (", location->function_off);
	plain_text(line, name[module] ? name + module : KERNEL_DSO, ';');
}

/* Writes an interpreted frame: address 0, as perf prints frames without one, and the source file in place of the binary, since readers show
 * that. Many readers accept no blank there. */
static void write_interpreted(struct buffer *line, const struct profile *profile, const struct profile_location *location)
{
	const char *name = profile_string_text(profile, profile_function_at(profile, location->function)->name);
	const char *path = profile_string_text(profile, frame_path(profile, location));
	size_t from;

	buffer_printf(line, "\t%16" PRIx64 " ", location->pc);
	plain_text(line, *name ? name : UNKNOWN, ';');
	buffer_text(line, " (");
	from = line->size;
	plain_text(line, *path ? path : UNKNOWN, ';');
	for (size_t i = from; i < line->size && !line->err; i++) {
		if (line->data[i] == ' ')
			line->data[i] = '_';
	}
	buffer_text(line, ")\n");
}

static void write_frame(struct buffer *line, const struct profile *profile, const struct profile_location *location)
{
	const char *name = profile_string_text(profile, profile_function_at(profile, location->function)->name), *path = UNKNOWN;
	bool is_code = location->kind == FRAME_NATIVE || location->kind == FRAME_KERNEL, has_symbol = *name && *name != '[';

	if (frame_is_interpreted(location->kind)) {
		write_interpreted(line, profile, location);
		return;
	}
	if (location->mapping != PROFILE_NONE)
		path = profile_string_text(profile, profile_mapping_at(profile, location->mapping)->path);
	buffer_printf(line, "\t%16" PRIx64 " ", location->pc);
	if (location->kind == FRAME_KERNEL && has_symbol) {
		write_kernel_name(line, location, name);
	} else {
		plain_text(line, !*name || (is_code && !has_symbol) ? UNKNOWN : name, ';');
		if (is_code && has_symbol && !location->is_inlined)
			buffer_printf(line, "+0x%" PRIx64, location->function_off);
		buffer_text(line, " (");
		plain_text(line, location->is_inlined ? "inlined" : location->kind == FRAME_KERNEL ? KERNEL_DSO : path, ';');
	}
	buffer_text(line, ")\n");
}

static int write_frames(struct script *script)
{
	uint32_t nr_locations = profile_nr_locations(script->profile);

	script->ends = malloc(((size_t)nr_locations + 1) * sizeof(*script->ends));
	if (!script->ends)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr_locations; i++) {
		write_frame(&script->frames, script->profile, profile_location_at(script->profile, i));
		script->ends[i] = script->frames.size;
	}
	return script->frames.err;
}

static void write_stack(struct script *script, struct buffer *entry, uint32_t stack)
{
	const uint32_t *locations;
	uint32_t nr_locations;

	if (stack == PROFILE_NONE)
		return;
	locations = profile_stack_at(script->profile, stack, &nr_locations);
	for (uint32_t i = 0; i < nr_locations; i++) {
		size_t from = locations[i] ? script->ends[locations[i] - 1] : 0;

		buffer_append(entry, script->frames.data + from, script->ends[locations[i]] - from);
	}
}

static void write_head(struct script *script, struct buffer *entry, const struct profile_sample *sample, uint64_t period)
{
	const char *comm = profile_string_text(script->profile, sample->comm);
	uint64_t time_ns = sample->time_ns ? sample->time_ns : profile_account_of(script->profile)->start_unix_ns;

	if (*comm)
		plain_text(entry, comm, ';');
	else
		buffer_printf(entry, ":%" PRIu32, sample->tid); /* as perf names a thread without a name */
	buffer_printf(entry, " %5" PRIu32 "/%-5" PRIu32 " ", sample->tgid, sample->tid);
	if (sample->cpu != PROFILE_NONE)
		buffer_printf(entry, "[%03" PRIu32 "] ", sample->cpu);
	buffer_printf(entry, "%" PRIu64 ".%09" PRIu64 ": %10" PRIu64 " ", time_ns / NS_PER_S, time_ns % NS_PER_S, period);
	buffer_append(entry, script->event.data, script->event.size);
	buffer_text(entry, ": \n");
}

static int write_sample(struct script *script, struct buffer *entry, const struct profile_sample *sample)
{
	int64_t value = sample->values[profile_shown_value(script->profile)];

	if (value <= 0)
		return 0;
	entry->size = 0;
	write_head(script, entry, sample, script->counts ? script->period : (uint64_t)value);
	write_stack(script, entry, sample->kernel_stack);
	write_stack(script, entry, sample->user_stack);
	buffer_text(entry, "\n");
	if (entry->err)
		return entry->err;
	if (script->counts && (uint64_t)value > (script->buffer->max - script->buffer->size) / entry->size)
		return -EFBIG; /* before any of it is written */
	for (int64_t i = 0; i < (script->counts ? value : 1) && !script->buffer->err; i++) {
		buffer_append(script->buffer, entry->data, entry->size);
		buffer_settle(script->buffer);
	}
	return 0;
}

/* Writes the header of `perf script --header`; readers know the file by its first line. */
static int write_header(struct script *script)
{
	const struct account *account = profile_account_of(script->profile);
	CLEANUP(buffer_done) struct buffer lines = BUFFER_INIT(script->buffer->max);
	char *line, *end;

	buffer_text(&lines, "hostname : ");
	plain_text(&lines, account->host, ';');
	buffer_text(&lines, "\nos release : ");
	plain_text(&lines, account->kernel, ';');
	buffer_text(&lines, "\ncmdline : sonde ");
	plain_text(&lines, account->command_line, ';');
	buffer_text(&lines, "\n");
	account_text(account, 0, &lines);
	if (lines.err)
		return lines.err;
	buffer_text(script->buffer, "# ========\n");
	for (line = lines.data; (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		buffer_text(script->buffer, "# ");
		plain_text(script->buffer, line, ';');
		buffer_text(script->buffer, "\n");
	}
	buffer_text(script->buffer, "# ========\n#\n");
	return 0;
}

/* 0, or -E2BIG. */
static int check_nr_entries(const struct script *script)
{
	uint64_t nr = 0;

	for (uint32_t i = 0; script->counts && i < profile_nr_samples(script->profile); i++) {
		int64_t value = profile_sample_at(script->profile, i)->values[profile_shown_value(script->profile)];

		if (value > 0 && ((uint64_t)value > MAX_ENTRIES || (nr += (uint64_t)value) > MAX_ENTRIES))
			return -E2BIG;
	}
	return 0;
}

static void script_done(struct script *script)
{
	buffer_done(&script->frames);
	buffer_done(&script->event);
	free(script->ends);
}

int write_perf_script(const struct profile *profile, const struct export_options *options, struct buffer *buffer)
{
	const struct account *account = profile_account_of(profile);
	uint32_t nr_types;
	const struct profile_value_type *shown = &profile_value_types(profile, &nr_types)[profile_shown_value(profile)];
	const char *type = profile_string_text(profile, shown->type);
	CLEANUP(script_done) struct script script = {
		.profile = profile,
		.buffer = buffer,
		.frames = BUFFER_INIT(buffer->max),
		.event = BUFFER_INIT(buffer->max),
		.period = tick_period(profile),
		.counts = !strcmp(type, "samples"),
	};
	CLEANUP(buffer_done) struct buffer entry = BUFFER_INIT(buffer->max);
	CLEANUP(freep) uint32_t *samples = samples_by_time(profile);
	int err = samples ? write_frames(&script) : -ENOMEM;

	if (!script.period)
		script.period = 1;
	word(&script.event, script.counts ? account->event : type, "samples");
	if (!err)
		err = script.event.err;
	if (!err)
		err = check_nr_entries(&script);
	if (!err)
		err = write_header(&script);
	for (uint32_t i = 0; i < profile_nr_samples(profile) && !err && !buffer->err; i++)
		err = write_sample(&script, &entry, profile_sample_at(profile, samples[i]));
	return err;
}
