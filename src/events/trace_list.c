// SPDX-License-Identifier: Apache-2.0
/* What can be traced: system calls by the kernel's headers, tracepoints by BTF, kernel functions by /proc/kallsyms. */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include <sonde/sonde.h>

#include "base/buffer.h"
#include "programs/call_numbers.h"
#include "events/probe_spec.h"

#define LINES_BYTES_MANY ((size_t)1 << 16)
#define LINE_BYTES	 1024

struct listing {
	struct kernel_types *types;
	const char *pattern;
	bool verbose, has_kprobes;
	struct buffer lines;
	int (*text)(void *arg, const char *lines);
	void *arg;
	uint64_t nr;
};

static int tell(struct listing *listing)
{
	int err = listing->lines.err ?: listing->lines.size ? listing->text(listing->arg, listing->lines.data) : 0;

	listing->lines.size = 0;
	return err;
}

/* Is it asked for, with or without its type? */
static bool is_asked_for(const struct listing *listing, const char *type, const char *name)
{
	char full[LINE_BYTES];

	snprintf(full, sizeof(full), "%s:%s", type, name);
	return !fnmatch(listing->pattern, name, 0) || !fnmatch(listing->pattern, full, 0);
}

/* `args`: NULL: not known. `rest`: behind the name. */
static int list(struct listing *listing, const char *type, const char *name, const struct kernel_args *args, const char *rest)
{
	listing->nr++;
	buffer_printf(&listing->lines, "%s:%s", type, name);
	if (listing->verbose && args) {
		buffer_text(&listing->lines, "(");
		kernel_types_text(listing->types, args, &listing->lines);
		buffer_text(&listing->lines, ")");
	}
	buffer_printf(&listing->lines, "%s\n", rest);
	return listing->lines.size < LINES_BYTES_MANY ? listing->lines.err : tell(listing);
}

static int list_calls(struct listing *listing)
{
	int err = 0;

	for (const struct call_number *call = call_numbers_64; !err && call->name; call++) {
		if (!is_asked_for(listing, "syscall", call->name))
			continue;
		err = list(listing, "syscall", call->name, NULL, listing->verbose ? "(arg0, arg1, arg2, arg3, arg4, arg5)" : "");
	}
	return err;
}

static int list_tracepoints(struct listing *listing)
{
	struct kernel_args args;
	uint32_t cursor = 0;
	bool is_tracepoint;
	const char *name;
	int err = 0;

	while (!err && kernel_types_next(listing->types, &cursor, &is_tracepoint, &name)) {
		if (is_tracepoint && is_asked_for(listing, "tracepoint", name) && !kernel_types_tracepoint(listing->types, name, &args))
			err = list(listing, "tracepoint", name, &args, "");
	}
	return err;
}

/* A line of /proc/kallsyms: "ffffffff81000000 T name\t[module]". */
static int list_symbol(struct listing *listing, char *line)
{
	char type = 0, name[512] = "", module[128] = "", rest[256];
	struct kernel_args args;
	bool has_args;

	if (sscanf(line, "%*s %c %511s %127s", &type, name, module) < 2 || (type != 't' && type != 'T' && type != 'w' && type != 'W'))
		return 0;
	if (!is_asked_for(listing, "kprobe", name))
		return 0;
	has_args = listing->verbose && !kernel_types_function(listing->types, name, &args);
	snprintf(rest, sizeof(rest), "%s%s%s", *module ? " " : "", module,
		 listing->has_kprobes ? "" : " (not here: this kernel has no kprobes)");
	return list(listing, "kprobe", name, has_args ? &args : NULL, rest);
}

static int list_functions(struct listing *listing)
{
	FILE *file = fopen("/proc/kallsyms", "re");
	char *line = NULL;
	size_t size = 0;
	int err = file ? 0 : -errno;

	while (!err && getline(&line, &size, file) > 0)
		err = list_symbol(listing, line);
	free(line);
	if (file)
		fclose(file);
	return err;
}

int sonde_trace_list(const char *pattern, bool verbose, int (*text)(void *arg, const char *lines), void *arg)
{
	struct listing listing = { .pattern = pattern && *pattern ? pattern : "*",
				   .verbose = verbose,
				   .has_kprobes = probe_has_kprobes(),
				   .lines = BUFFER_INIT(LINES_BYTES_MANY * 2),
				   .text = text,
				   .arg = arg };
	struct diag diag = { 0 };
	int err = kernel_types_new(&diag, &listing.types);

	if (!err)
		err = list_calls(&listing) ?: list_tracepoints(&listing) ?: list_functions(&listing) ?: tell(&listing);
	buffer_done(&listing.lines);
	kernel_types_free(listing.types);
	return err ? err : listing.nr ? 0 : -ENOENT;
}
