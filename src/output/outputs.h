/* SPDX-License-Identifier: Apache-2.0 */
/* outputs: where a session's profiles go. With windows a path is a pattern (output_pattern.h). One thread at a time. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "model/profile.h"
#include "output/export.h"

#define OUTPUTS_MAX 16

struct output {
	char *path;
	enum export_format format;
	bool is_written;
};

/* Zeros are none. */
struct outputs {
	struct output list[OUTPUTS_MAX];
	uint32_t nr;
	struct export_options export;
	bool has_windows;
	uint32_t keep;                /* of each output so many files stay; 0: all */
	uint64_t newest_s;            /* of the windows that were written: output_words_of */
	struct kept_output *kept;
	uint32_t nr_kept, max_kept;
};

struct output_window {
	uint32_t number;
	uint64_t start_unix_ns;
};

void outputs_done(struct outputs *outputs);
/* "-" is stdout; the format by its name, or NULL: by the path's suffix. 0; -EINVAL: the format is not known, or the path is no pattern for
 * windows; or it cannot be written. */
MUST_CHECK int outputs_add(struct outputs *outputs, const char *path, const char *format, struct diag *diag);
/* Writes all, each whole or not at all, and removes what is too old. `window`: NULL without windows. The first failure is returned, the
 * others are tried. */
MUST_CHECK int outputs_write(struct outputs *outputs, const struct profile *profile, const struct output_window *window, struct diag *diag);
bool outputs_want_lines(const struct outputs *outputs); /* does any format show them? */
bool outputs_have_stdout(const struct outputs *outputs);
