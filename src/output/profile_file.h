/* SPDX-License-Identifier: Apache-2.0 */
/* profile_file: the members of struct sonde_profile, for the files of this folder that show or compare profiles. */
#pragma once
#include <sonde/sonde.h>

#include "base/buffer.h"
#include "base/diag.h"
#include "model/profile.h"
#include "show/annotation.h"
#include "show/diff.h"
#include "show/show.h"

struct sonde_profile {
	struct profile *profile; /* NULL: nothing was read yet, or reading failed */
	struct diag diag;        /* of the last failure */
	int exit_code;
	struct diff diff;        /* of sonde_profile_diff; its profile is the one above */
	struct buffer text;      /* returned by sonde_profile_show */
	char name[256];          /* of the file it was read from */
	uint64_t nr_bytes;       /* size of the files it was read from; 0: a perf recording from a pipe */
	bool histograms_alone;   /* it will never have samples */
	uint32_t nr_reported_notes;  /* notes of the account returned by sonde_profile_warning, and notes from the file itself */
};

/* Frees the contents; the struct can be used again. */
void profile_file_forget(struct sonde_profile *profile);
/* Selects the values of this type for showing. 0 or -EINVAL. */
MUST_CHECK int profile_file_show_value(struct sonde_profile *profile, const char *type);
/* Writes the source and instructions of a function (show.h), from files of this machine. 0, -ENOENT, -ENOMEM. */
MUST_CHECK int annotate_function(const struct profile *profile, const char *function, const struct show_options *options, struct diag *diag,
				 struct buffer *buffer);
/* The source and instructions of the hottest functions, for a page. `near_lines`: of source, before and after those with samples. What could
 * not be read is said in the rows. 0 or -ENOMEM. */
MUST_CHECK int annotate_hottest(const struct profile *profile, uint32_t near_lines, struct diag *diag, struct annotated_code *code);
