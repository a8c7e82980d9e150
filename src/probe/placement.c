// SPDX-License-Identifier: Apache-2.0
#include "probe/placement.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cfi/x86_code.h"

#define MAX_CODE_BYTES ((size_t)512 << 20) /* of a segment; probes of a larger file stay at the entries */

/* --- the best instruction ------------------------------------------------------------------------------------------------------------- */

/* Does the kernel emulate it? Instructions with an operand-size prefix it does not. */
static bool is_emulated(const struct x86_code *code, const uint8_t *bytes)
{
	uint8_t first = bytes[0];

	if (code->op >= 0x50 && code->op <= 0x57) /* push; of prefixes only 41 */
		return code->size == 1 || (code->size == 2 && first == 0x41);
	if (code->is_16 || code->is_vector)
		return false;
	if (code->op == 0x90)
		return code->size == 1;
	return code->op == 0xe8 || code->op == 0xe9 || code->op == 0xeb || (code->op >= 0x70 && code->op <= 0x7f) ||
	       (code->op >= 0x180 && code->op <= 0x18f);
}

/* Neither an argument nor one that the caller wants back, nor the stack pointer: rax, r10, r11. */
static bool is_spare(uint8_t reg)
{
	return reg == X86_CODE_AX || reg == 10 || reg == 11;
}

/* Compares, tests and does nothing. */
static bool writes_flags_alone(const struct x86_code *code)
{
	uint32_t op = code->op;

	if (code->is_vector)
		return false;
	if ((op >= 0x38 && op <= 0x3d) || op == 0x84 || op == 0x85 || op == 0xa8 || op == 0xa9 || op == 0x11f)
		return true;
	if (op == 0x80 || op == 0x81 || op == 0x83)
		return x86_code_extension(code) == 7;
	if (op == 0xf6 || op == 0xf7)
		return x86_code_extension(code) < 2;
	return op == 0x11e && code->is_rep && code->modrm == 0xfa; /* endbr64 */
}

/* Writes a spare register alone. */
static bool writes_spare(const struct x86_code *code)
{
	uint32_t op = code->op;

	if (code->is_vector)
		return false;
	if (op == 0x8b || op == 0x8d || op == 0x33) /* mov, lea, xor */
		return is_spare(x86_code_reg(code));
	if (op == 0x89 || op == 0x31)
		return x86_code_is_register(code) && is_spare(x86_code_rm(code));
	if (op >= 0xb8 && op <= 0xbf)
		return is_spare((uint8_t)((op & 7) | (code->rex & 1) << 3));
	return false;
}

int placement_x86(const uint8_t *code, size_t size, uint32_t *ret_off)
{
	struct x86_code at;
	size_t off = 0;

	for (; off < PLACEMENT_MAX_BYTES && x86_code_read(code + off, size - off, &at); off += at.size) {
		if (is_emulated(&at, code + off)) {
			*ret_off = (uint32_t)off;
			return 0;
		}
		if (!writes_flags_alone(&at) && !writes_spare(&at))
			break;
	}
	return -ENOENT;
}

/* --- the proof ------------------------------------------------------------------------------------------------------------------------ */

/* A branch lands there: behind the entry, up to the probe. */
static void refuse_target(struct placement *placements, uint32_t nr, uint64_t target)
{
	for (uint32_t i = 0; i < nr; i++) {
		if (target > placements[i].entry && target <= placements[i].probe)
			placements[i].probe = placements[i].entry;
	}
}

static int32_t read_i32(const uint8_t *bytes)
{
	int32_t value;

	memcpy(&value, bytes, sizeof(value));
	return value;
}

/* Takes each byte for the start of each kind of direct branch. */
static void refuse_landings(struct placement *placements, uint32_t nr, const uint8_t *code, size_t size, uint64_t elf_vaddr)
{
	for (size_t i = 0; i + 1 < size; i++) {
		uint8_t op = code[i], second = code[i + 1];
		uint64_t at = elf_vaddr + i;

		if ((op >= 0x70 && op <= 0x7f) || op == 0xeb || (op >= 0xe0 && op <= 0xe3))
			refuse_target(placements, nr, at + 2 + (uint64_t)(int8_t)second);
		else if ((op == 0xe8 || op == 0xe9) && size - i >= 5)
			refuse_target(placements, nr, at + 5 + (uint64_t)read_i32(code + i + 1));
		else if (op == 0x0f && (second & 0xf0) == 0x80 && size - i >= 6)
			refuse_target(placements, nr, at + 6 + (uint64_t)read_i32(code + i + 2));
	}
}

static void keep_at_entries(struct placement *placements, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		placements[i].probe = placements[i].entry;
}

static int check_segment(const struct elf_file *elf, const struct elf_segment *segment, struct placement *placements, uint32_t nr)
{
	CLEANUP(freep) uint8_t *code = NULL;
	int err;

	if (segment->file_size > MAX_CODE_BYTES) {
		keep_at_entries(placements, nr);
		return 0;
	}
	code = malloc(segment->file_size + 1);
	err = code ? elf_file_read_at(elf, segment->file_off, code, segment->file_size) : -ENOMEM;
	if (!err)
		refuse_landings(placements, nr, code, segment->file_size, segment->vaddr);
	return err;
}

/* Of one that could not be moved. */
static void look_at_entry(const struct elf_file *elf, struct placement *placement)
{
	uint8_t code[PLACEMENT_MAX_BYTES + 16];
	uint32_t off;

	placement->is_slow = placement->probe == placement->entry && !elf_file_read_vaddr(elf, placement->entry, code, sizeof(code)) &&
			     (placement_x86(code, sizeof(code), &off) || off);
}

static void choose(const struct elf_file *elf, struct placement *placement)
{
	uint8_t code[PLACEMENT_MAX_BYTES + 16];
	uint32_t off;

	/* a function so close to the end of the file's code is not one of an allocator */
	if (!elf_file_read_vaddr(elf, placement->entry, code, sizeof(code)) && !placement_x86(code, sizeof(code), &off))
		placement->probe = placement->entry + off;
}

int placement_improve(const struct elf_file *elf, struct placement *placements, uint32_t nr)
{
	bool is_moved = false;
	int err = 0;

	if (elf_file_machine(elf) != EM_X86_64)
		return 0;
	for (uint32_t i = 0; i < nr; i++) {
		choose(elf, &placements[i]);
		is_moved |= placements[i].probe != placements[i].entry;
	}
	for (uint32_t i = 0; is_moved && !err && i < elf_file_nr_segments(elf); i++) {
		const struct elf_segment *segment = elf_file_segment(elf, i);

		if (segment->flags & PF_X)
			err = check_segment(elf, segment, placements, nr);
	}
	for (uint32_t i = 0; !err && i < nr; i++)
		look_at_entry(elf, &placements[i]);
	return err;
}
