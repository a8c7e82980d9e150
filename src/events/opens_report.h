/* SPDX-License-Identifier: Apache-2.0 */
/* opens_report: opened files as text: a line for each call, or sums. One thread. */
#pragma once
#include <sonde/sonde.h>
#include <stdint.h>

#include "abi/opens.h"
#include "base/buffer.h"
#include "base/cleanup.h"

/* Appends the path that a call named: as it was given, behind its folder if it is relative. `text`: file->bytes of it. Any bytes. */
void opens_path(struct buffer *path, const struct sonde_open_record *record, const struct sonde_file_text *file, const char *text);
void opens_heading(struct buffer *lines, const struct sonde_files_options *options, const char *command_line);
void opens_line(struct buffer *lines, const struct sonde_files_options *options, const struct sonde_open_record *record, const char *path,
		uint64_t unix_offset_ns);

/* Sums by what was asked for. */
struct opens_row {
	uint32_t tgid, path; /* 0, TEXTS_NONE: not asked for; `path`: the caller's number of it */
	char comm[SONDE_COMM_BYTES];
	/* the key ends here */
	uint64_t opens, failed;
	uint32_t last_error;
	uint32_t pad;
};

#define OPENS_ROW_KEY_BYTES offsetof(struct opens_row, opens)
/* Appends the rows, the largest first, `options->top` of them at most. Sorts `rows`. `texts`: those that their paths
 * are in. */
void opens_rows(struct buffer *lines, const struct sonde_files_options *options, struct opens_row *rows, uint32_t nr, const char *texts,
		uint64_t time_unix_ns);
