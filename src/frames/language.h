/* SPDX-License-Identifier: Apache-2.0 */
/* language: the language of a frame, as far as the profile shows it: by the suffix of its source file, else by the mangling of its name.
 * Otherwise it is "native": C, or C++, Rust and others without lines and with plain names. */
#pragma once
#include "model/profile.h"

/* "C", "C++", "Rust", "Go", "native", "JIT or anonymous", "kernel", "not known", or the name in SONDE_RUNTIME_LIST. Constant texts: equal
 * languages are equal pointers. */
const char *language_of(const struct profile *profile, uint32_t location);
