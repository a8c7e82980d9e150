/* SPDX-License-Identifier: Apache-2.0 */
/* language: what a frame was written in, as far as the profile tells: by the suffix of its source file, or else by how its name is mangled.
 * What neither tells is "native": C, or C++, Rust and others without lines and with plain names. */
#pragma once
#include "model/profile.h"

/* "C", "C++", "Rust", "Go", "native", "JIT or anonymous", "kernel", "not known", or as SONDE_RUNTIME_LIST shows it. Constant texts: the
 * same language is the same pointer. */
const char *language_of(const struct profile *profile, uint32_t location);
