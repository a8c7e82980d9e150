/* SPDX-License-Identifier: Apache-2.0 */
/* libc_facts: where a C library keeps the data of a thread, relative to its thread pointer. glibc describes itself for debuggers in the
 * _thread_db_* tables (nptl_db/structs.def: each is {u32 bits, u32 elements, u32 offset}; exported by libc.so.6 from 2.34 on, before that
 * in the .symtab of libpthread.so.0). musl has no such tables: constants (src/internal/pthread_impl.h). */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "elf/elf_file.h"

struct libc_facts { /* all zero: not known */
	uint32_t dtv_off;    /* as in struct sonde_tls */
	uint32_t keys_off;
	uint16_t key_block;
	uint8_t dtv_stride;
	uint8_t is_known;
	uint32_t pad;
};

/* True: libc_facts_read could have returned these facts, or they are not known. */
bool libc_facts_are_sound(const struct libc_facts *facts);
/* 0; -ENOENT: the file is not a C library. Runs in the worker. */
MUST_CHECK int libc_facts_read(const struct elf_file *elf, struct libc_facts *ret_facts);
