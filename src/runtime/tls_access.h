/* SPDX-License-Identifier: Apache-2.0 */
/* tls_access: finds a thread's variable, or the value of a pthread key, by decoding a short exported function that returns it. So the
 * variable is found in files without a symbol for it. Decodes the instructions that gcc and clang generate for the TLS models of the ELF
 * ABI ("ELF Handling For Thread-Local Storage"), and for pthread_getspecific of a key in a global variable. */
#pragma once
#include <stdbool.h>

#include "abi/runtime.h"
#include "base/cleanup.h"
#include "elf/elf_file.h"

/* Decodes the exported function `function`. The pc is as linked; the C library's facts are not filled in. 0; -ENOENT: no such function;
 * -EOPNOTSUPP: it does something else, or is not x86-64 code; -ENOMEM. */
MUST_CHECK int tls_access_decode(const struct elf_file *elf, const char *function, struct sonde_tls *ret_tls);
/* Finds an exported TLS symbol: in a program by its place in the program's block, in a library by the GOT slot that is filled for it. 0;
 * -ENOENT: no such symbol; -EOPNOTSUPP: it has no slot. */
MUST_CHECK int tls_access_symbol(const struct elf_file *elf, const char *symbol, struct sonde_tls *ret_tls);
/* True: one of the two functions above could have made it. */
bool tls_access_is_sound(const struct sonde_tls *tls);
/* Adds the load bias and the library's facts. 0; -EOPNOTSUPP: the library's facts are needed and not known. */
struct libc_facts;
MUST_CHECK int tls_access_place(const struct sonde_tls *tls, uint64_t load_bias, const struct libc_facts *libc, struct sonde_tls *ret_tls);
