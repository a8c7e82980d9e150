/* SPDX-License-Identifier: Apache-2.0 */
/* runq_report: turns what the programs of `runq` counted into named histograms, and waits into lines. One thread. */
#pragma once
#include <sonde/sonde.h>

#include "base/buffer.h"
#include "collect/runq_programs.h"
#include "model/profile.h"

#define RUNQ_REPORT_MAX_HISTOGRAMS 65536 /* in the profile; later ones are added to [others] */

struct runq_report;
/* Borrows the options and the profile, which gets all histograms of the run. NULL: no memory. */
struct runq_report *runq_report_new(const struct sonde_runq_options *options, struct profile *profile);
void runq_report_free(struct runq_report *report); /* takes NULL */
/* Adds what is new to the profile, and appends it as text; `lines` may be NULL. 0 or a negative errno. */
MUST_CHECK int runq_report_take(struct runq_report *report, struct runq_programs *programs, struct buffer *lines);
/* True if the profile has no room for more histograms. */
bool runq_report_is_full(const struct runq_report *report);
/* "14:05:59" and a newline. */
void runq_report_time(struct buffer *lines, uint64_t unix_ns);
/* The lines above those of the waits: the title and the column headings. */
void runq_report_waits_heading(struct buffer *lines, uint64_t slower_ns);
void runq_report_wait(struct buffer *lines, const struct sonde_runq_record *record, uint64_t unix_offset_ns);
