/* SPDX-License-Identifier: Apache-2.0 */
/* demangle: turns linker names into what the programmer wrote: C++ with parameters, Rust v0 and legacy without hashes; a clone's suffix as
 * c++filt shows it, "f(int) [clone .cold]". Names are untrusted: a short one can stand for gigabytes of text (each parameter a pair of the
 * one before). So the output is capped, and a name over a cap stays as linked. */
#pragma once
#include <stdbool.h>

#define DEMANGLE_MAX_NAME 4096u		/* bytes in */
#define DEMANGLE_MAX_TEXT (64u * 1024u) /* bytes out */

/* Does the name look mangled? A cheap first check. */
bool demangle_is_candidate(const char *name);
/* Keeps the text after a blank or an @: "_RNv... [module]", "_Z1fv@plt". Returns NULL when `name` is not mangled or over a cap, or without
 * memory. The caller frees the result. */
char *demangle(const char *name);
