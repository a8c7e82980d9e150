/* SPDX-License-Identifier: Apache-2.0 */
/* traced_probes: what `trace` was asked for: probes, comparisons, fields of keys and lines, ready for the kernel side. With and without
 * stacks. One thread. */
#pragma once
#include <sonde/sonde.h>

#include "abi/probe.h"
#include "events/tracing_report.h"
#include "model/account.h"
#include "probing/probes.h"
#include "programs/interrupts.h"

struct late_filter { /* a comparison that is made in user space */
	struct sonde_probe_filter filter;
	uint32_t slot; /* of the value in a record; LATE_IN_RECORD: one of the record's own fields */
};
#define LATE_IN_RECORD UINT32_MAX

struct traced_probe {
	struct sonde_probe_config config;
	struct tracing_printed printed[SONDE_PROBE_PRINTED];
	uint32_t nr_shown; /* of those; the others are for late filters */
	struct late_filter late[SONDE_PROBE_FILTERS];
	uint32_t nr_late;
};

struct traced_probes {
	struct sonde_trace_options options; /* its texts are the copies below */
	struct probes probes;
	struct traced_probe list[MAX_PROBES];
	struct tracing_words words;
	char *command_line, *filter, *by_arg, *texts;
	struct interrupts *interrupts; /* of the start, if a handler is traced; NULL: not */
	int parse_err; /* the probes cannot be traced; parse_diag says why */
	struct diag parse_diag;
};

/* `with_stacks`: for bpf/event.bpf.c. Wrong words are refused here, as usage; what this kernel does not have, or cannot do, is kept for
 * when it is loaded. Call traced_probes_done after a failure, too. 0, -EINVAL or -ENOMEM. */
MUST_CHECK int traced_probes_init(struct traced_probes *traced, const struct sonde_session_options *common, bool with_stacks,
				  struct diag *diag);
void traced_probes_done(struct traced_probes *traced);
/* The probes begin: notes what they may do to programs. */
void traced_probes_start(struct traced_probes *traced, struct account *account);
/* Notes a probe that was not hit in that time: of an interrupt's handler, with the interrupts that came meanwhile. */
void traced_probes_note_silent(const struct traced_probes *traced, uint32_t probe, uint64_t duration_ns, struct account *account);
/* Notes a probe's hits that the filter could not be asked about, and those that the kernel left out. */
void traced_probes_note_unsure(const struct traced_probes *traced, uint32_t probe, uint64_t nr_unread, uint64_t nr_left_out,
			       struct account *account);
/* Appends lines of the summary: where names are from, and what was compared in user space, which rejected `nr_late` hits. */
void traced_probes_summary(const struct traced_probes *traced, uint64_t nr_late, struct buffer *lines);
/* Makes the comparisons that were left to user space. *ret_unread: it fails as a value was not in memory. */
bool traced_probe_passes(const struct traced_probe *probe, const struct sonde_probe_record *record, bool *ret_unread);
