/* SPDX-License-Identifier: Apache-2.0 */
/* placement: where in a function a uprobe costs least. At the first instruction of a function the kernel may have to execute that
 * instruction by a single step, which costs another trap: ten times the probe in a virtual machine. It emulates others (x86-64: push, nop,
 * call, jumps: arch/x86/kernel/uprobes.c, branch_setup_xol_ops and push_setup_xol_ops). So the probe goes to the first emulated instruction
 * that is reached from the entry through instructions which leave the arguments, the stack pointer and the saved registers alone: there
 * everything is as at the entry, also the return address that a uretprobe replaces. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "elf/elf_file.h"

#define PLACEMENT_MAX_BYTES 32 /* from the entry; the walk needs as many bytes of code */

/* Of x86-64 code that begins at a function's entry: the offset of that instruction. -ENOENT: there is none, so the probe belongs to the
 * entry. */
MUST_CHECK int placement_x86(const uint8_t *code, size_t size, uint32_t *ret_off);

struct placement { /* elf_vaddrs; placed behind the entry only if it is safe */
	uint64_t entry, probe;
	bool is_slow; /* set: the probe stays at an instruction that the kernel executes by a single step */
};
/* Moves the probes of the functions in `placements` (probe == entry at first) to the best instruction. A probe stays at its entry when a
 * jump or call of the file may land between the entry and that instruction: whoever comes that way would be counted without having called
 * the function, or with another stack. Searched is every byte of the file's code, so that no misread instruction hides one; a sequence of
 * bytes that is none by chance only costs the better place. (An indirect jump there would need a jump table for the code before a
 * function's first branch.) 0, -ENOMEM or the error of reading the file. */
MUST_CHECK int placement_improve(const struct elf_file *elf, struct placement *placements, uint32_t nr);
