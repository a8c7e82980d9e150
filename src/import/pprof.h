/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the pprof reader share. Fields may stand in any order, so there are several passes over the message: sizes and strings,
 * then what samples refer to, then the samples. */
#pragma once
#include "base/id_table.h"
#include "codec/protobuf_read.h"
#include "importer/importer.h"

/* Field numbers of google/pprof, proto/profile.proto. */
enum {
	PPROF_SAMPLE_TYPE = 1,
	PPROF_SAMPLE,
	PPROF_MAPPING,
	PPROF_LOCATION,
	PPROF_FUNCTION,
	PPROF_STRING_TABLE,
	PPROF_DROP_FRAMES,
	PPROF_KEEP_FRAMES,
	PPROF_TIME_NANOS,
	PPROF_DURATION_NANOS,
	PPROF_PERIOD_TYPE,
	PPROF_PERIOD,
	PPROF_COMMENT,
	PPROF_DEFAULT_SAMPLE_TYPE,
	PPROF_NR_FIELDS
};

struct pprof_location { /* its lines: locations of the profile, innermost first */
	uint32_t first_line, nr_lines;
};

struct pprof_mapping {
	uint32_t number;
	uint32_t path; /* string */
	bool is_kernel;
};

struct pprof_stack { /* the bytes in the file and the stacks made from them */
	struct reader bytes;
	uint32_t user, kernel;
};

struct pprof_reader {
	struct importer *importer;
	uint64_t nr_fields[PPROF_NR_FIELDS];
	uint32_t *strings;   /* by index in the table: strings of the profile */
	uint32_t nr_strings;
	struct id_table mappings, functions, locations;
	struct pprof_mapping *mapping_list;
	struct pprof_location *location_list;
	uint32_t *lines;
	uint32_t nr_mappings, nr_locations, nr_lines, max_lines;
	struct profile_value_type types[IMPORT_MAX_VALUES], period_type;
	uint32_t nr_types, default_type; /* a string */
	uint32_t kept[PROFILE_MAX_VALUES], nr_kept; /* which values of a sample are kept */
	int64_t period;
	/* So far each sample's second value is its first one times the period, so it is no value of its own. */
	bool is_ticks;
	const uint8_t *first[PPROF_NR_FIELDS], *behind[PPROF_NR_FIELDS]; /* range in the file of the fields of a number */
	struct u64_map stack_index; /* from the hash of its bytes to a stack already read */
	struct pprof_stack *stacks;
	uint32_t nr_stacks, max_stacks;
};

/* Looks up the string index in a field. 0 or -EBADMSG. */
MUST_CHECK int pprof_string(struct pprof_reader *reader, const struct protobuf_field *field, uint32_t *ret_string);
int pprof_bad(struct pprof_reader *reader, const void *at, const char *why);

/* Each reads one message. 0, -EBADMSG or -ENOMEM. */
MUST_CHECK int pprof_read_mapping(struct pprof_reader *reader, struct reader message);
MUST_CHECK int pprof_read_function(struct pprof_reader *reader, struct reader message);
MUST_CHECK int pprof_read_location(struct pprof_reader *reader, struct reader message);
/* Clears reader->is_ticks if this sample contradicts it. */
MUST_CHECK int pprof_read_sample(struct pprof_reader *reader, struct reader message);
