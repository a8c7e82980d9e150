/* SPDX-License-Identifier: Apache-2.0 */
/* profile_file: the inside of struct sonde_profile, for the files of this folder that show or compare what was read. */
#pragma once
#include <sonde/sonde.h>

#include "base/buffer.h"
#include "base/diag.h"
#include "model/profile.h"
#include "show/diff.h"
#include "show/show.h"

struct sonde_profile {
	struct profile *profile; /* NULL: nothing was read yet, or it could not be */
	struct diag diag;        /* of the last failure */
	int exit_code;
	struct diff diff;        /* of sonde_profile_diff; its profile is the one above */
	struct buffer text;      /* what sonde_profile_show gave */
	uint64_t nr_bytes;       /* of the files that it was read from; 0: of a stream that is not kept */
	bool histograms_alone;   /* it will never have samples */
	uint32_t nr_reported_notes;  /* of the account: those that sonde_profile_warning gave, and those that the file had itself */
};

/* What the profile holds, or held, is given up. */
void profile_file_forget(struct sonde_profile *profile);
/* Makes the values of this type the ones that are shown. 0 or -EINVAL. */
MUST_CHECK int profile_file_show_value(struct sonde_profile *profile, const char *type);
/* Source and instructions of a function (show.h), from files of this machine. 0, -ENOENT, -ENOMEM. */
MUST_CHECK int annotate_function(const struct profile *profile, const char *function, const struct show_options *options, struct diag *diag,
				 struct buffer *buffer);
