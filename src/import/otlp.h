/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the OTLP reader share. It reads OpenTelemetry's profiles (opentelemetry-proto, profiles/v1development) from version 1.8
 * on. Samples refer to a dictionary that follows them, so the dictionary is read first. */
#pragma once
#include "codec/protobuf_read.h"
#include "importer/importer.h"

struct otlp_mapping {
	uint32_t number, path; /* number: of the profile; path: a string */
	bool is_kernel;
};

struct otlp_location { /* its lines: locations of the profile, innermost first */
	uint32_t first_line, nr_lines;
};

struct otlp_link { /* strings; "": none */
	uint32_t trace, span;
};

struct otlp_list { /* entries of one size, by index in the file's table */
	void *items;
	uint32_t nr, max;
};

struct otlp_reader {
	struct importer *importer;
	const void *bytes; /* the message */
	size_t size;
	/* The message was made from JSON: positions in it mean nothing, and field numbers are those of 1.10. */
	bool is_json;
	struct otlp_list strings, functions, lines; /* uint32_t: numbers in the profile */
	struct otlp_list attributes;                /* struct profile_label; key PROFILE_NONE: a kind of value that a label cannot hold */
	struct otlp_list mappings, locations;       /* struct otlp_mapping, struct otlp_location */
	struct otlp_list stacks;                    /* struct reader: their messages */
	struct otlp_list links;                     /* struct otlp_link */
	struct otlp_list resource;                  /* struct profile_label: of the current resource */
	struct profile_value_type types[PROFILE_MAX_VALUES];
	uint32_t nr_types;
};

void *otlp_add(struct otlp_list *list, size_t item_bytes); /* zeroed; NULL: no memory */
int otlp_bad(struct otlp_reader *reader, const void *at, const char *why);
/* Looks up an index in the string table. 0 or -EBADMSG. */
MUST_CHECK int otlp_string_at(struct otlp_reader *reader, uint64_t place, uint32_t *ret_string);
MUST_CHECK int otlp_read_dictionary(struct otlp_reader *reader, struct reader message);
/* Reads an AnyValue into the label. 0, -EBADMSG or -ENOMEM. */
MUST_CHECK int otlp_read_value(struct otlp_reader *reader, struct reader message, struct profile_label *label);
