/* SPDX-License-Identifier: Apache-2.0 */
/* demangle: linker names to what the programmer wrote: C++ with parameters, Rust v0 and legacy without their hashes; a clone's
 * suffix as c++filt shows it, "f(int) [clone .cold]". Names are a stranger's: a short one can stand for gigabytes of text (each
 * parameter a pair of the one before), so what comes out is capped, and a name over a cap stays as linked. */
#pragma once
#include <stdbool.h>

#define DEMANGLE_MAX_NAME 4096u		/* bytes in */
#define DEMANGLE_MAX_TEXT (64u * 1024u) /* bytes out */

/* Whether the name looks mangled: a cheap first question. */
bool demangle_is_candidate(const char *name);
/* What stands behind a blank or an @ is kept: "_RNv... [module]", "_Z1fv@plt". NULL when `name` is not mangled, or above a cap, or there is
 * no memory. The caller frees it. */
char *demangle(const char *name);
