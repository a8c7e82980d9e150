/* SPDX-License-Identifier: Apache-2.0 */
/* verbs: the list of verbs, and the texts about all of them. */
#pragma once
#include "cli/option.h"

extern const struct verb sonde_verb; /* sonde itself: its options precede the verb */
extern const struct verb profile_verb, offcpu_verb, runq_verb, wall_verb, show_verb, diff_verb, convert_verb, stat_verb, doctor_verb;
extern const struct verb files_verb, io_verb, trace_verb;
extern const struct verb leak_verb;
extern const struct verb alloc_verb;
extern const struct verb agent_verb;

const struct verb *verb_at(size_t i); /* NULL ends */
const struct verb *verb_find(const char *name);
const char *verb_nearest(const char *name); /* for "did you mean"; may be NULL */

/* Runs a verb. argv[0] is its name. Returns the exit code. */
int verb_run(const struct verb *verb, int argc, char **argv);

/* The exit codes that all verbs share, with their meaning. False: no i-th one. */
bool exit_code_at(size_t i, int *ret_code, const char **ret_text);

void sonde_help(bool colour, struct buffer *buffer);
void verb_man(const struct verb *verb, struct buffer *buffer);      /* a manual page, section 1 */
void complete_bash(struct buffer *buffer);
void complete_zsh(struct buffer *buffer);
