/* SPDX-License-Identifier: Apache-2.0 */
/* code_end: how far a routine surely goes, by its instructions alone: for assembly that has neither a size nor call frame information. It
 * goes on until control cannot pass an instruction (a return, a jump) that no conditional jump before leads over. A routine may be longer
 * (a jump table hides where it goes on), hardly shorter. Lengths of instructions: Intel SDM volume 2 appendix A, Arm ARM C4. */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* The first `size` bytes of a routine; `machine` EM_X86_64 or EM_AARCH64. How many of them belong to it, 0 for another machine or when the
 * first instruction is not known. */
size_t code_end_find(uint16_t machine, const uint8_t *code, size_t size);
