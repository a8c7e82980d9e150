/* SPDX-License-Identifier: Apache-2.0 */
/* outputs: the files to which a session's profiles are written. With windows a path is a pattern (output_pattern.h). One thread at a
 * time. */
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

struct output_window {
	uint32_t number;
	uint64_t start_unix_ns;
};

/* Takes each window's profile as bytes; borrowed for the call. 0 or a negative errno. */
typedef int (*output_take_fn)(void *arg, const struct profile *profile, const struct output_window *window, const struct buffer *bytes);

struct output_receiver {
	output_take_fn take;
	output_take_fn take_timed;    /* gets it before, with the times of samples, which `take` then has not; NULL: `take` has them */
	void *arg;
	enum export_format format;
};

/* All zeros: no outputs. */
struct outputs {
	struct output list[OUTPUTS_MAX];
	uint32_t nr;
	struct export_options export;
	bool has_windows;
	uint32_t keep;                /* number of files kept per output; 0: all */
	uint64_t newest_s;            /* of the windows written so far: output_words_of */
	struct kept_output *kept;
	uint32_t nr_kept, max_kept;
	struct output_receiver receiver; /* take NULL: none */
};

void outputs_done(struct outputs *outputs);
/* `path` "-" is stdout. `format` NULL: chosen by the path's suffix. 0; -EINVAL: unknown format, or with windows no valid pattern; other
 * errors: the path cannot be written. */
MUST_CHECK int outputs_add(struct outputs *outputs, const char *path, const char *format, struct diag *diag);
/* Writes all outputs, each completely or not at all, and removes files beyond `keep`. `window`: NULL without windows. After a failure tries
 * the others; returns the first failure. */
MUST_CHECK int outputs_write(struct outputs *outputs, const struct profile *profile, const struct output_window *window, struct diag *diag);
bool outputs_want_lines(const struct outputs *outputs); /* does any format show them? */
bool outputs_have_stdout(const struct outputs *outputs);
