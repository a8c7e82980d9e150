/* SPDX-License-Identifier: Apache-2.0 */
/* call_numbers: the numbers of this machine's system calls, by name: those of 64 bits, and those of 32-bit programs (none on arm64, whose
 * headers do not have them). The tables are made from the kernel's headers (tools/call_names.py). */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct call_number {
	const char *name; /* "openat"; NULL ends */
	uint32_t number;
};

extern const struct call_number call_numbers_64[], call_numbers_32[];

#define CALL_UNKNOWN UINT32_MAX
/* CALL_UNKNOWN: there is no such call. */
uint32_t call_number(const char *name, bool is_32_bit);
/* NULL: no call has this number. */
const char *call_name(uint32_t number, bool is_32_bit);
