/* SPDX-License-Identifier: Apache-2.0 */
/* transfers_report: sums of what was read and written, as text or JSON lines. One thread. */
#pragma once
#include <sonde/sonde.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/io.h"
#include "base/buffer.h"

struct transfers_row {
	uint32_t tgid, call; /* 0: not asked for */
	uint32_t file, pad;  /* the caller's number of its name; TEXTS_NONE: not asked for, or lost */
	char comm[SONDE_COMM_BYTES];
	/* the key ends here */
	struct sonde_io_side sides[SONDE_IO_SIDES];
};

#define TRANSFERS_ROW_KEY_BYTES offsetof(struct transfers_row, sides)
void transfers_heading(struct buffer *lines, const struct sonde_io_options *options, const char *command_line);
/* Appends the rows, those with the most bytes first, `options->top` of them at most. Sorts `rows`. `texts`: the texts that their numbers
 * of names are in. `call_name`: the name of a call's number. */
void transfers_rows(struct buffer *lines, const struct sonde_io_options *options, struct transfers_row *rows, uint32_t nr,
		    const char *texts, const char *(*call_name)(uint32_t call), uint64_t time_unix_ns);
