/* SPDX-License-Identifier: Apache-2.0 */
/* option_rows: rows of option tables that several verbs have, each with its own help. `at`: the offset of the value. */
#pragma once
#include "cli/option.h"

#define OPTION_MAX_SECONDS 999999999 /* 31 years */

/* INTERVAL and COUNT; they begin the group of what is measured. */
#define OPTION_ROWS_INTERVALS(at, at_count, text) \
	{ .group = "What is measured", \
	  .metavar = "INTERVAL", \
	  .kind = OPTION_NUMBER, \
	  .offset = (at), \
	  .min = 1, \
	  .max = OPTION_MAX_SECONDS, \
	  .help = text }, \
	{ \
		.metavar = "COUNT", .kind = OPTION_NUMBER, .offset = (at_count), .min = 1, .max = UINT32_MAX, .help = "so many intervals" \
	}
#define OPTION_ROW_DURATION(at, text) \
	{ .metavar = "DURATION", .kind = OPTION_NUMBER, .offset = (at), .min = 1, .max = OPTION_MAX_SECONDS, .help = text }
/* The first of how it is shown. */
#define OPTION_ROW_BY(at, words, many, text) \
	{ .group = "How it is shown", \
	  .name = "by", \
	  .metavar = "WHAT" many, \
	  .kind = OPTION_TEXT, \
	  .offset = (at), \
	  .value_name = words, \
	  .help = text }
#define OPTION_ROW_TIMESTAMP(at, text) { .letter = 'T', .name = "timestamp", .kind = OPTION_FLAG, .offset = (at), .help = text }
#define OPTION_ROW_OUTPUT(at, text) \
	{ .letter = 'o', \
	  .name = "output", \
	  .metavar = "FILE", \
	  .kind = OPTION_TEXTS, \
	  .offset = (at), \
	  .values = OPTION_VALUES_FILE, \
	  .help = text }
#define OPTION_ROW_FORMAT(at, names, text) \
	{ .name = "format", .metavar = "NAME", .kind = OPTION_TEXT, .offset = (at), .value_name = names, .help = text }
#define OPTION_FORMAT_ANY "write in this format, whatever the suffix says"
#define OPTION_ROW_SOURCE(at, text) \
	{ .name = "source", \
	  .metavar = "N", \
	  .kind = OPTION_NUMBER, \
	  .offset = (at), \
	  .min = 1, \
	  .max = 100, \
	  .excludes = "no-lines", \
	  .instead = "source needs lines", \
	  .help = text }
#define OPTION_SOURCE_IN_PAGES \
	"in HTML, the instructions of the 20 hottest functions, and their source: lines with samples, and N before and after. Whoever " \
	"gets the page can read them"
