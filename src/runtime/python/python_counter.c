// SPDX-License-Identifier: Apache-2.0
/* python_counter: the counter's offset is in no table and differs between builds, so it is read from the code that uses it. _PyCode_New
 * (Objects/codeobject.c), which exports no name, does
 *
 *   co->co_version = interp->func_state.next_version;
 *   if (interp->func_state.next_version != 0)
 *           interp->func_state.next_version++;
 *
 * In x86-64 this is a load of 32 bits from [interp + counter], a store of the same register to [co + co_version], and a store to
 * [interp + counter]. Nothing else in an interpreter does that; if two places do it with two offsets, none is taken. 3.12 has a global
 * variable instead. */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/python/python_counter.h"

#define CHUNK_BYTES (1u << 20)
#define MAX_CODE_BYTES (64u << 20) /* searched in a file: libpython has 3 MB */
#define MAX_DISTANCE 24            /* bytes between two of the three instructions */
#define MARGIN_BYTES 64            /* more than the three take on either side */
#define MAX_COUNTER (1u << 20)     /* struct PyInterpreterState of 3.13 has 270 KB */

struct access {
	uint32_t size; /* bytes of the instruction; 0: it is none */
	uint8_t reg, base; /* numbers of registers */
	int32_t off;
};

/* Decodes `mov %reg32, off(%base)` (0x89) or `mov off(%base), %reg32` (0x8b) at `code`, of which 9 bytes can be read. */
static struct access decode(const uint8_t *code, uint8_t opcode)
{
	uint32_t at = 0;
	uint8_t rex = 0, modrm, kind;
	struct access access = { .size = 0 };
	int32_t off;

	if ((code[at] & 0xf0) == 0x40)
		rex = code[at++];
	if (rex & 8 || code[at++] != opcode)
		return access;
	modrm = code[at++];
	kind = modrm >> 6;
	if ((modrm & 7) == 4 && code[at++] != 0x24) /* rsp's and r12's number: a byte more, 0x24 without an index */
		return access;
	if (kind != 1 && kind != 2)
		return access;
	access.reg = (uint8_t)((modrm >> 3 & 7) | (rex & 4) << 1);
	access.base = (uint8_t)((modrm & 7) | (rex & 1) << 3);
	if (kind == 1) {
		access.off = (int8_t)code[at++];
	} else {
		memcpy(&off, code + at, sizeof(off));
		access.off = off;
		at += sizeof(off);
	}
	access.size = at;
	return access;
}

/* The counter's offset if the instruction at `at` numbers a code object; else 0. There are MARGIN_BYTES on both sides. */
static uint32_t counter_at(const uint8_t *at, uint32_t code_version)
{
	struct access number = decode(at, 0x89);

	if (!number.size || number.off != (int32_t)code_version)
		return 0;
	for (uint32_t before = 3; before < MAX_DISTANCE; before++) {
		struct access load = decode(at - before, 0x8b);

		if (!load.size || load.size > before || load.reg != number.reg || load.off <= 0 || load.off > (int32_t)MAX_COUNTER)
			continue;
		for (uint32_t after = number.size; after < MAX_DISTANCE; after++) {
			struct access store = decode(at + after, 0x89);

			if (store.size && store.base == load.base && store.off == load.off)
				return (uint32_t)load.off;
		}
	}
	return 0;
}

/* Adds what is in these bytes to *counter: 0: nothing so far; all ones: two that differ. */
static void search(const uint8_t *code, size_t size, uint32_t code_version, uint32_t *counter)
{
	for (size_t at = MARGIN_BYTES; at + MARGIN_BYTES < size; at++) {
		uint32_t found;

		if (code[at] != 0x89 && (code[at] & 0xf0) != 0x40)
			continue;
		found = counter_at(code + at, code_version);
		if (found && *counter && found != *counter)
			*counter = UINT32_MAX;
		else if (found)
			*counter = found;
	}
}

uint32_t python_counter_find(const struct elf_file *elf, uint32_t code_version)
{
	CLEANUP(freep) uint8_t *code = malloc(CHUNK_BYTES);
	uint32_t counter = 0;
	uint64_t left = MAX_CODE_BYTES;

	if (!code || elf_file_machine(elf) != EM_X86_64)
		return 0;
	for (uint32_t i = 0; i < elf_file_nr_segments(elf); i++) {
		const struct elf_segment *segment = elf_file_segment(elf, i);

		if (!(segment->flags & PF_X))
			continue;
		for (uint64_t off = 0; off < segment->file_size && left >= CHUNK_BYTES; off += CHUNK_BYTES - 2 * MARGIN_BYTES) {
			uint64_t rest = segment->file_size - off;
			size_t size = rest < CHUNK_BYTES ? (size_t)rest : CHUNK_BYTES;

			if (elf_file_read_at(elf, segment->file_off + off, code, size))
				return 0;
			search(code, size, code_version, &counter);
			left -= CHUNK_BYTES;
		}
	}
	return counter == UINT32_MAX ? 0 : counter;
}
