/* SPDX-License-Identifier: Apache-2.0 */
/* tracing_report: hits of probes as text or JSON lines: sums, times, single hits. One thread. */
#pragma once
#include <sonde/sonde.h>
#include <stdint.h>

#include "abi/probe.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "probing/probes.h"

struct tracing_row {
	uint32_t probe; /* number of its text */
	struct sonde_probe_key key;
	struct sonde_probe_sum sum;
};

struct tracing_key_type { /* of the argument in keys */
	bool is_text, is_signed, is_address;
};

struct tracing_words { /* of a report; borrowed */
	const struct sonde_trace_options *options;
	const char *(*probe_text)(const void *arg, uint32_t probe);
	const void *arg;
	struct tracing_key_type key_types[MAX_PROBES]; /* by the number of the probe: those of one name may differ */
};

/* Appends the rows, those with the most hits last, where people look first. Sorts them. 0 or -ENOMEM. */
MUST_CHECK int tracing_rows(struct buffer *lines, const struct tracing_words *words, struct tracing_row *rows, uint32_t nr);

/* Appends one row, no times. `frames`: of its stack, leaf first, each ends with a newline; NULL: it has none. */
void tracing_row(struct buffer *lines, const struct tracing_words *words, const struct tracing_row *row, const char *frames);

/* Fills in a key's text from a record's; "..." behind it if there may have been more. */
void tracing_key_text(struct sonde_probe_key *key, const char text[SONDE_PROBE_TEXT_BYTES]);

struct tracing_printed { /* an argument of a line */
	const char *name;
	bool is_address;
	struct sonde_probe_field field;
};

void tracing_heading(struct buffer *lines, const struct sonde_trace_options *options, const char *command_line);
/* `frames`: as of tracing_row. */
void tracing_line(struct buffer *lines, const struct tracing_words *words, const struct sonde_probe_record *record,
		  const struct tracing_printed *printed, uint32_t nr_printed, uint64_t unix_offset_ns, const char *frames);
