/* SPDX-License-Identifier: Apache-2.0 */
/* files_programs: the kernel side of `files` (bpf/files.bpf.c): each call that opens a file as a record (struct sonde_open_record with its
 * texts behind it), or sums of them. */
#pragma once
#include "abi/opens.h"
#include "programs/call_programs.h"

/* `opens`: without `calls`. As call_programs_new. */
MUST_CHECK int files_programs_new(const struct call_options *options, const struct sonde_opens_config *opens, struct diag *diag,
				  struct call_programs **ret_programs);
