/* SPDX-License-Identifier: Apache-2.0 */
/* java_code: where the caller's frame is at each instruction of a blob of HotSpot's code cache, by the instructions themselves. An nmethod
 * says how large its frame is, but not at which instructions it is just so large: compiled code pushes and pops between calls, too (C2's
 * String.indexOf keeps the old rsp on the stack; C1 passes arguments to its stubs there; barriers save registers).
 *
 * Follows all paths from the blob's start. What no path leads to is entered from outside: in an nmethod handlers of exceptions and cases of
 * a switch, with a complete frame; in other blobs further stubs. Such a piece of code counts only where it contradicts neither itself nor
 * what is known: it returns with sp at the return address, and joins other code with the frame that this has. Where paths meet with
 * different sp, the CFA may still be in a register or on the stack; else it is not known there. Linear in the instructions. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/java.h"
#include "base/cleanup.h"

#define JAVA_CODE_MAX_BYTES (256u << 10) /* what is made to take long takes a third of a second */

struct java_code_blob {
	const uint8_t *code;
	uint32_t size;
	uint64_t pc;
	uint32_t frame_bytes; /* of an nmethod, with the return address and rbp; 0: not an nmethod */
	uint32_t stub_bytes;  /* likewise, of a blob that is a single stub, which is entered at its start alone; 0: another */
	bool is_adapter;      /* what follows after it has taken its return address from the stack is not read: it moves that elsewhere */
	bool is_interrupting; /* it is entered at its start without a return address, for which it makes room: SafepointBlob */
};

struct java_code_row {
	uint32_t off; /* from the start of the code */
	struct sonde_java_row row; /* its `off` is not set */
};

struct java_code;
/* Borrows the bytes for the call. 0; -EFBIG; -ENOMEM. */
MUST_CHECK int java_code_read(const struct java_code_blob *blob, struct java_code **ret_code);
void java_code_free(struct java_code *code); /* takes NULL */
static inline void java_code_freep(struct java_code **code)
{
	java_code_free(*code);
}
/* Sorted; the first one is at 0. Borrowed. */
const struct java_code_row *java_code_rows(const struct java_code *code, uint32_t *ret_nr);
/* The row that holds at an instruction. */
struct sonde_java_row java_code_find(const struct java_code *code, uint32_t off);
/* The rows as the kernel side reads them: part 0, 1, ...: false: there are no more. */
bool java_code_part(const struct java_code *code, uint32_t part, struct sonde_java_rows *ret_rows);
