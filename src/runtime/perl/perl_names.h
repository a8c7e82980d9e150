/* SPDX-License-Identifier: Apache-2.0 */
/* perl_names: resolves the frames of Perl, with the names of caller() and Carp: "Package::sub", "Package::__ANON__", "(eval)"; also the
 * main program, which these leave out. */
#pragma once
#include "abi/perl.h"
#include "runtime/runtime.h"

int perl_describe(const struct runtime_image *image, const void *process, const struct runtime_memory *memory,
		  const struct sonde_runtime_frame *frame, struct runtime_function *ret_function);
