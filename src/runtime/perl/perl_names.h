/* SPDX-License-Identifier: Apache-2.0 */
/* perl_names: what the frames of Perl are called, as caller() and Carp say it: "Package::sub", "Package::__ANON__", "(eval)"; and the main
 * program, which they leave out. */
#pragma once
#include "abi/perl.h"
#include "runtime/runtime.h"

int perl_describe(const struct runtime_image *image, const void *process, const struct runtime_memory *memory,
		  const struct sonde_runtime_frame *frame, struct runtime_function *ret_function);
