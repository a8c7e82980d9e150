/* SPDX-License-Identifier: Apache-2.0 */
/* tls_code: emulates a short x86-64 function from its first to its last instruction, with what is known of each register, to find which
 * thread's variable it returns. Follows all paths, and calls and jumps within the file and, through PLT stubs, to __tls_get_addr and
 * pthread_getspecific. */
#pragma once
#include "abi/runtime.h"
#include "base/cleanup.h"
#include "elf/elf_file.h"

/* 0; -EOPNOTSUPP: it returns something else, or different variables; -ENOMEM. */
MUST_CHECK int tls_code_follow(const struct elf_file *elf, uint64_t elf_vaddr, struct sonde_tls *ret_tls);
