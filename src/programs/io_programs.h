/* SPDX-License-Identifier: Apache-2.0 */
/* io_programs: the kernel side of `io` (bpf/io.bpf.c): sums of calls that read and write, and records that name their files (struct
 * sonde_io_name with the text behind it). */
#pragma once
#include "abi/io.h"
#include "programs/call_programs.h"

/* `io`: without calls and facts. As call_programs_new. */
MUST_CHECK int io_programs_new(const struct call_options *options, const struct sonde_io_config *io, struct diag *diag,
			       struct call_programs **ret_programs);
/* The name of a call, by its index in a key; borrowed for ever. */
const char *io_programs_call_name(uint32_t index);
