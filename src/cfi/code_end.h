/* SPDX-License-Identifier: Apache-2.0 */
/* code_end: where a routine ends, by its instructions alone: for assembly without a size or call frame information. It ends at an
 * instruction that control cannot pass (a return, a jump) and that no earlier conditional jump skips. A routine may be longer (a jump table
 * hides where it continues), but hardly shorter. Lengths of instructions: Intel SDM volume 2 appendix A, Arm ARM C4. */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* `code`: the first `size` bytes of a routine; `machine`: EM_X86_64 or EM_AARCH64. Returns how many of them belong to it; 0: another
 * machine, or the first instruction is not known. */
size_t code_end_find(uint16_t machine, const uint8_t *code, size_t size);
