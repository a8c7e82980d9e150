/* SPDX-License-Identifier: Apache-2.0 */
/* profile_file: the inside of struct sonde_profile, for the files of this folder that show or compare what was read. */
#pragma once
#include <sonde/sonde.h>

#include "base/diag.h"
#include "model/profile.h"

struct sonde_profile {
	struct profile *profile; /* NULL: nothing was read yet, or it could not be */
	struct diag diag;        /* of the last failure */
	int exit_code;
	uint32_t nr_told_notes;  /* of the account: those that sonde_profile_warning gave, and those that the file had itself */
};
