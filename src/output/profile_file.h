/* SPDX-License-Identifier: Apache-2.0 */
/* profile_file: the members of struct sonde_profile, for the files of this folder that show or compare profiles. */
#pragma once
#include <sonde/sonde.h>

#include "base/buffer.h"
#include "base/diag.h"
#include "model/profile.h"
#include "show/diff.h"

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
