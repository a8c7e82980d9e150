// SPDX-License-Identifier: Apache-2.0
/* What can be traced: system calls by the kernel's headers, tracepoints by BTF, kernel functions by /proc/kallsyms. */
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sonde/sonde.h>

#include "base/buffer.h"
#include "base/tracefs.h"
#include "probing/probe_spec.h"
#include "programs/call_numbers.h"
#include "programs/kernel_functions.h"
#include "programs/kernel_types.h"

#define LINES_BYTES_MANY ((size_t)1 << 16)
#define LINE_BYTES	 1024
#define GROUP_BYTES	 64

struct listing {
	struct kernel_types *types;
	char pattern[LINE_BYTES];  /* of a name, or of type:name */
	char group[GROUP_BYTES];   /* of tracepoints; "": any */
	int tracefs_fd;            /* knows the groups; -1: there is none */
	const char *function_type; /* as which functions are listed */
	bool verbose, has_functions;
	struct buffer lines;
	int (*text)(void *arg, const char *lines);
	void *arg;
	uint64_t nr;
};

/* Takes also what perf and bpftrace call it: sched:sched_switch, t:sched:sched_switch, syscalls:sys_enter_read. */
static void set_pattern(struct listing *listing, const char *pattern)
{
	static const char tracepoint[] = "tracepoint";
	const char *text = pattern && *pattern ? pattern : "*";
	size_t size;
	const char *kind = probe_spec_kind(text, &size), *name = kind ? text + size : text;
	const char *colon = !kind || !strcmp(kind, tracepoint) ? strchr(name, ':') : NULL;

	if (!strncmp(name, "syscalls:sys_enter_", 19) || !strncmp(name, "syscalls:sys_exit_", 18)) {
		kind = "syscall";
		name = strchr(name + 13, '_') + 1;
	} else if (colon && (size_t)(colon - name) < sizeof(listing->group)) {
		memcpy(listing->group, name, (size_t)(colon - name));
		kind = tracepoint;
		name = colon + 1;
	}
	snprintf(listing->pattern, sizeof(listing->pattern), "%s%s%s", kind ?: "", kind ? ":" : "", name);
}

static bool is_in_group(const struct listing *listing, const char *name)
{
	char path[GROUP_BYTES + LINE_BYTES];

	if (!*listing->group || listing->tracefs_fd < 0)
		return true;
	snprintf(path, sizeof(path), "events/%s/%s", listing->group, name);
	return !faccessat(listing->tracefs_fd, path, F_OK, 0);
}

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
		kernel_types_text(args, &listing->lines);
		buffer_text(&listing->lines, ")");
	}
	buffer_printf(&listing->lines, "%s\n", rest);
	return listing->lines.size < LINES_BYTES_MANY ? listing->lines.err : tell(listing);
}

static int list_calls(struct listing *listing)
{
	struct kernel_args args = { 0 };
	int err = 0;

	for (const struct call_number *call = call_numbers_64; !err && call->name; call++) {
		if (!is_asked_for(listing, "syscall", call->name))
			continue;
		if (listing->verbose)
			kernel_types_call(listing->types, call->name, &args);
		err = list(listing, "syscall", call->name, args.nr ? &args : NULL,
			   listing->verbose && !args.nr ? "(arg0, arg1, arg2, arg3, arg4, arg5)" : "");
	}
	return err;
}

static int list_tracepoints(struct listing *listing)
{
	struct kernel_cursor cursor = { 0 };
	struct kernel_args args;
	const char *name;
	int err = 0;

	while (!err && (name = kernel_types_next_tracepoint(listing->types, &cursor)) != NULL) {
		if (is_asked_for(listing, "tracepoint", name) && is_in_group(listing, name) &&
		    !kernel_types_tracepoint(listing->types, name, &args))
			err = list(listing, "tracepoint", name, &args, "");
	}
	return err;
}

static int list_function(void *arg, const struct kernel_function *function)
{
	struct listing *listing = arg;
	struct kernel_args args;
	char rest[256];
	bool has_args;

	if (!is_asked_for(listing, listing->function_type, function->name))
		return 0;
	has_args = listing->verbose && !kernel_types_function(listing->types, function->name, &args);
	snprintf(rest, sizeof(rest), "%s%s%s%s", *function->module ? " [" : "", function->module, *function->module ? "]" : "",
		 !listing->has_functions   ? " (not here: this kernel has neither kprobes nor fentry)"
		 : function->is_forbidden ? " (cannot be probed: it is where the kernel enters, idles or handles probes)"
					  : "");
	return list(listing, listing->function_type, function->name, has_args ? &args : NULL, rest);
}

int sonde_trace_list(const char *pattern, bool verbose, int (*text)(void *arg, const char *lines), void *arg)
{
	bool has_kprobes = kernel_functions_have_kprobes(), has_fentry = !has_kprobes && kernel_functions_have_fentry();
	struct listing listing = { .verbose = verbose,
				   .tracefs_fd = -1,
				   .function_type = has_kprobes || !has_fentry ? "kprobe" : "fentry",
				   .has_functions = has_kprobes || has_fentry,
				   .lines = BUFFER_INIT(LINES_BYTES_MANY * 2),
				   .text = text,
				   .arg = arg };
	struct diag diag = { 0 };
	const char *where;
	int err = kernel_types_new(&diag, &listing.types);

	set_pattern(&listing, pattern);
	if (*listing.group && tracefs_open(NULL, &listing.tracefs_fd, &where))
		listing.tracefs_fd = -1; /* then any group will do */
	if (!err)
		err = list_calls(&listing) ?: list_tracepoints(&listing) ?: kernel_functions_each(list_function, &listing);
	if (!err)
		err = tell(&listing);
	buffer_done(&listing.lines);
	if (listing.tracefs_fd >= 0)
		close(listing.tracefs_fd);
	kernel_types_free(listing.types);
	return err ? err : listing.nr ? 0 : -ENOENT;
}
