/* SPDX-License-Identifier: Apache-2.0 */
/* tls_code: follows a short function of x86-64 from its first instruction to its last, with what is known of each register, to tell which
 * thread's variable it returns. All ways through are followed; calls and jumps too, into the file itself and, through the stubs of the PLT,
 * to __tls_get_addr and pthread_getspecific. */
#pragma once
#include "abi/runtime.h"
#include "base/cleanup.h"
#include "elf/elf_file.h"

/* 0; -EOPNOTSUPP: it returns something else, or not always the same variable; -ENOMEM. */
MUST_CHECK int tls_code_follow(const struct elf_file *elf, uint64_t elf_vaddr, struct sonde_tls *ret_tls);
