/* SPDX-License-Identifier: Apache-2.0 */
/* jit_names: what a process's own files say about its JIT code. Perf maps and jitdumps are distinguished by their first bytes. A jitdump
 * has priority over a perf map, as it has lines; a later file has priority over an earlier one of its kind. */
#pragma once
#include <stdint.h>

#include "symbolize/jitdump.h"

#define JIT_NAMES_MAX_FILES 8

struct jit_names;
struct jit_names *jit_names_new(void); /* NULL: no memory */
void jit_names_free(struct jit_names *names);
/* Reads a file from a descriptor, which the caller keeps. 0; -ENODATA: nothing usable in it; -E2BIG: too many files; -ENOMEM; or the error
 * of the read. */
MUST_CHECK int jit_names_read_fd(struct jit_names *names, int fd);
/* 0 or -ENOENT. Borrowed until jit_names_free. */
MUST_CHECK int jit_names_find(const struct jit_names *names, uint64_t pc, struct jitdump_place *ret_location);
uint32_t jit_names_nr_refused(const struct jit_names *names); /* lines and records that made no sense, or were too many */
