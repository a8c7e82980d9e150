/* SPDX-License-Identifier: Apache-2.0 */
/* target_options: the options that select threads. The same for every verb that measures. */
#pragma once
#include "cli/option.h"

#define TARGET_MAX_ID 4194304 /* the kernel's PID_MAX_LIMIT */

struct target_options {
	struct option_ids tgids, tids;
	const char *comm, *cgroup; /* NULL: not given */
};

/* Rows of an option table. `type` is that of the verb's arguments, `field` its struct target_options. */
#define TARGET_OPTIONS_IDS(type, field) \
	{ .group = "Whose", \
	  .letter = 'p', \
	  .name = "pid", \
	  .metavar = "PID[,PID...]", \
	  .kind = OPTION_IDS, \
	  .offset = offsetof(type, field.tgids), \
	  .min = 1, \
	  .max = TARGET_MAX_ID, \
	  .values = OPTION_VALUES_PROCESS, \
	  .help = "only these processes; may be repeated" }, \
	    { .letter = 'L', \
	      .name = "tid", \
	      .metavar = "TID[,TID...]", \
	      .kind = OPTION_IDS, \
	      .offset = offsetof(type, field.tids), \
	      .min = 1, \
	      .max = TARGET_MAX_ID, \
	      .excludes = "pid", \
	      .instead = "a thread (-L) is in one process already, leave -p out", \
	      .help = "only these threads; may be repeated" }
#define TARGET_OPTION_CGROUP(type, field) \
	{ .letter = 'G', \
	  .name = "cgroup", \
	  .metavar = "CGROUP", \
	  .kind = OPTION_TEXT, \
	  .offset = offsetof(type, field.cgroup), \
	  .values = OPTION_VALUES_FILE, \
	  .help = "only what is in this cgroup (version 2) or below it: its path, with or without the mount point, or its id" }
#define TARGET_OPTIONS(type, field) \
	TARGET_OPTIONS_IDS(type, field), \
	{ .letter = 'n', .name = "comm", .metavar = "NAME", .kind = OPTION_TEXT, .offset = offsetof(type, field.comm), \
	  .help = "only threads of this name, and all threads of processes of this name" }, \
	TARGET_OPTION_CGROUP(type, field)

/* Checks what the table cannot express. `command`: what the verb starts, or NULL. 0; -EINVAL with a line. */
MUST_CHECK int target_options_check(const struct target_options *targets, char *const *command, struct diag *diag);
/* Appends "PID 1,2", "TID 3", the command's name or "all threads", then the name and the cgroup: for the header. */
void target_options_text(const struct target_options *targets, char *const *command, struct buffer *buffer);
