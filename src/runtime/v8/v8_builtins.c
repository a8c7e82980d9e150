// SPDX-License-Identifier: Apache-2.0
#include "runtime/v8/v8_builtins.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <elf.h>

#include "elf/dynamic_relocation.h"

#define HEAD_BYTES 24     /* of the data before the table: hashes */
#define ENTRY_BYTES 24    /* struct BuiltinMetadata: name, kind, data */
#define MAX_BUILTINS 8192
#define MAX_ALIGN 128     /* of a builtin's code */
#define MAX_RODATA_BYTES (128 << 20)
#define MAX_NAME 120
#define RELOCATIONS 1024  /* read at a time */

#define FIRST_BARE (SONDE_V8_ENTRIES + 1)
#define NR_NAMES (FIRST_BARE + SONDE_V8_BARE)

/* Those of functions' frames, the first handler of a bytecode, which all others follow, and those without a frame. */
static const char *const wanted_names[NR_NAMES] = { "InterpreterEntryTrampoline", "InterpreterEnterAtBytecode",
						    "InterpreterEnterAtNextBytecode", "InterpreterEntryTrampolineForProfiling",
						    "BaselineOrInterpreterEnterAtBytecode", "BaselineOrInterpreterEnterAtNextBytecode",
						    "BaselineLeaveFrame",
						    "WideHandler",
						    "CallFunction_ReceiverIsNullOrUndefined",
						    "CallFunction_ReceiverIsNotNullOrUndefined",
						    "CallFunction_ReceiverIsAny",
						    "Call_ReceiverIsNullOrUndefined",
						    "Call_ReceiverIsNotNullOrUndefined",
						    "Call_ReceiverIsAny",
						    "Construct",
						    "ConstructFunction",
						    "ResumeGeneratorTrampoline" };

/* A pointer in the file's data. */
static int read_pointer(const struct v8_file *file, uint64_t slot, uint64_t *ret_value)
{
	uint32_t budget = DYNAMIC_RELOCATION_BUDGET;
	struct dynamic_relocation relocation;
	struct dynamic_section section;

	if (elf_file_type(file->elf) == ET_DYN && !dynamic_section_read(file->elf, &section) &&
	    !dynamic_relocation_find(file->elf, &section, slot, &budget, &relocation)) {
		*ret_value = (uint64_t)relocation.addend + relocation.symbol_elf_vaddr;
		return 0;
	}
	return elf_file_read_vaddr(file->elf, slot, ret_value, sizeof(*ret_value)) ? -EOPNOTSUPP : 0;
}

/* What a function returns that only loads a value: an address, or with `is_word` a number. */
static int decode_accessor(const struct v8_file *file, const char *function, bool is_word, uint64_t *ret_value)
{
	const struct v8_symbol *symbol = v8_file_find(file, function);
	uint8_t code[24], *at = code;
	uint64_t slot;
	int32_t word;

	if (!symbol || elf_file_read_vaddr(file->elf, symbol->elf_vaddr, code, sizeof(code)))
		return -EOPNOTSUPP;
	if (!memcmp(at, "\x55\x48\x89\xe5", 4)) /* push rbp; mov rbp, rsp */
		at += 4;
	if (*at == 0xb8) { /* mov eax, value */
		memcpy(&word, at + 1, sizeof(word));
		*ret_value = (uint32_t)word;
		return 0;
	}
	at += *at == 0x48;
	if ((at[0] != 0x8b && at[0] != 0x8d) || at[1] != 0x05) /* mov or lea, relative to the next instruction */
		return -EOPNOTSUPP;
	memcpy(&word, at + 2, sizeof(word));
	slot = symbol->elf_vaddr + (uint64_t)(at + 6 - code) + (uint64_t)(int64_t)word;
	if (at[0] == 0x8d) {
		at += 6;
		at += *at == 0x48;
		if (at[0] != 0x8b || at[1] != 0x00) { /* mov (rax) */
			*ret_value = slot;
			return is_word ? -EOPNOTSUPP : 0;
		}
	}
	*ret_value = 0;
	if (is_word)
		return elf_file_read_vaddr(file->elf, slot, ret_value, 4) ? -EOPNOTSUPP : 0;
	return read_pointer(file, slot, ret_value);
}

struct place { /* struct LayoutDescription begins with it */
	uint32_t off, bytes;
};

/* The table's entries differ in size by version: builtins follow each other. */
static int measure_table(const struct v8_file *file, struct v8_process *process)
{
	static const uint8_t strides[] = { 12, 16, 28, 32 };
	struct sonde_v8 *v8 = &process->v8;
	struct place place, next;

	for (size_t i = 0; i < sizeof(strides); i++) {
		uint32_t nr = 0;

		if (elf_file_read_vaddr(file->elf, v8->table, &place, sizeof(place)) || place.off)
			return -EOPNOTSUPP;
		for (; nr < MAX_BUILTINS; nr++, place = next) {
			if (!place.bytes || place.off + (uint64_t)place.bytes > process->layout.builtins_bytes ||
			    elf_file_read_vaddr(file->elf, v8->table + (nr + 1) * (uint64_t)strides[i], &next, sizeof(next)))
				break;
			if (next.off - (place.off + place.bytes) > MAX_ALIGN) {
				nr++;
				break;
			}
		}
		if (nr < 100)
			continue;
		v8->table_stride = strides[i];
		v8->nr_builtins = nr;
		return 0;
	}
	return -EOPNOTSUPP;
}

static int note_wanted(const struct v8_file *file, struct v8_process *process, uint32_t which, uint32_t number)
{
	struct place place;

	if (number >= process->v8.nr_builtins ||
	    elf_file_read_vaddr(file->elf, process->v8.table + (uint64_t)number * process->v8.table_stride, &place, sizeof(place)))
		return which < FIRST_BARE ? -EOPNOTSUPP : 0;
	if (which >= FIRST_BARE)
		process->v8.bare[which - FIRST_BARE] = (struct sonde_v8_entry){ place.off, place.off + place.bytes };
	else if (which < SONDE_V8_ENTRIES)
		process->v8.entries[which] = (struct sonde_v8_entry){ place.off, place.off + place.bytes };
	else
		process->v8.handlers = place.off;
	return 0;
}

/* By the table of names, whose address is known, in a file that is not relocated. */
static int find_entries(const struct v8_file *file, struct v8_process *process)
{
	for (uint32_t i = 0; i < process->v8.nr_builtins; i++) {
		char name[48] = "";
		uint64_t at;

		if (elf_file_read_vaddr(file->elf, process->layout.metadata + i * (uint64_t)ENTRY_BYTES, &at, sizeof(at)) ||
		    elf_file_read_vaddr(file->elf, at, name, sizeof(name) - 1))
			return -EOPNOTSUPP;
		for (uint32_t which = 0; which < NR_NAMES; which++) {
			if (!strcmp(name, wanted_names[which]) && note_wanted(file, process, which, i))
				return -EOPNOTSUPP;
		}
	}
	return process->v8.entries[0].end && process->v8.handlers ? 0 : -EOPNOTSUPP;
}

struct slot {
	uint64_t slot, value;
};

/* All words of the file that the dynamic linker only adds the load bias to, in their order, which is that of their addresses. */
static int read_slots(const struct v8_file *file, struct slot **ret_slots, size_t *ret_nr)
{
	struct dynamic_section section;
	Elf64_Rela some[RELOCATIONS];
	struct slot *slots;
	size_t nr;

	if (dynamic_section_read(file->elf, &section) || section.relocations_bytes / sizeof(*some) > DYNAMIC_RELOCATION_BUDGET)
		return -EOPNOTSUPP;
	nr = section.relocations_bytes / sizeof(*some);
	slots = calloc(nr ? nr : 1, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		size_t left = nr - i < RELOCATIONS ? nr - i : RELOCATIONS;

		if (!(i % RELOCATIONS) &&
		    elf_file_read_vaddr(file->elf, section.relocations + i * sizeof(*some), some, left * sizeof(*some))) {
			free(slots);
			return -EOPNOTSUPP;
		}
		if (ELF64_R_TYPE(some[i % RELOCATIONS].r_info) == R_X86_64_RELATIVE)
			slots[i] = (struct slot){ some[i % RELOCATIONS].r_offset, (uint64_t)some[i % RELOCATIONS].r_addend };
	}
	*ret_slots = slots;
	*ret_nr = nr;
	return 0;
}

/* The slot that has the address of this text; nr: none. */
static size_t find_name(const struct elf_section *rodata, const char *bytes, size_t size, const struct slot *slots, size_t nr,
			const char *name)
{
	const char *at = bytes;

	while ((at = memmem(at, size - (size_t)(at - bytes), name, strlen(name) + 1)) != NULL) {
		uint64_t vaddr = rodata->vaddr + (uint64_t)(at++ - bytes);

		for (size_t i = 0; i < nr; i++) {
			if (slots[i].slot && slots[i].value == vaddr)
				return i;
		}
	}
	return nr;
}

/* In a relocated file without the table's symbol: by the slots that lead to the entries' names. The table begins where names stop. */
static int search_entries(const struct v8_file *file, struct v8_process *process, const struct slot *slots, size_t nr)
{
	const struct elf_section *rodata = elf_file_find_section(file->elf, ".rodata");
	CLEANUP(freep) char *bytes = NULL;
	uint64_t first, found[NR_NAMES] = { 0 };
	size_t size, i;
	int err;

	if (!rodata)
		return -EOPNOTSUPP;
	err = elf_file_read_section(file->elf, rodata, MAX_RODATA_BYTES, NULL, (void **)&bytes, &size);
	if (err)
		return err == -ENOMEM ? err : -EOPNOTSUPP;
	for (uint32_t which = 0; which < NR_NAMES; which++) {
		i = find_name(rodata, bytes, size, slots, nr, wanted_names[which]);
		found[which] = i < nr ? slots[i].slot : 0;
	}
	i = find_name(rodata, bytes, size, slots, nr, wanted_names[0]);
	if (i == nr)
		return -EOPNOTSUPP;
	for (first = slots[i].slot; i > 0;) { /* an entry may have a second slot */
		size_t back = slots[i - 1].slot == first - ENTRY_BYTES ? 1 : i > 1 && slots[i - 2].slot == first - ENTRY_BYTES ? 2 : 0;

		if (!back || slots[i - back].value - rodata->vaddr >= size)
			break;
		i -= back;
		first -= ENTRY_BYTES;
	}
	process->layout.metadata = first;
	for (uint32_t which = 0; which < NR_NAMES; which++) {
		if (found[which] && note_wanted(file, process, which, (uint32_t)((found[which] - first) / ENTRY_BYTES)))
			return -EOPNOTSUPP;
	}
	return process->v8.handlers ? 0 : -EOPNOTSUPP;
}

int v8_builtins_find(const struct v8_file *file, struct v8_process *process)
{
	const struct v8_symbol *metadata = v8_file_find(file, "_ZN2v88internal12_GLOBAL__N_1L16builtin_metadataE");
	struct v8_layout *layout = &process->layout;
	CLEANUP(freep) struct slot *slots = NULL;
	uint64_t places;
	size_t nr;
	int err;

	if (!metadata)
		metadata = v8_file_find(file, "_ZN2v88internal12_GLOBAL__N_116builtin_metadataE");
	if (decode_accessor(file, "_ZN2v88internal23DefaultEmbeddedBlobCodeEv", false, &layout->builtins) ||
	    decode_accessor(file, "_ZN2v88internal27DefaultEmbeddedBlobCodeSizeEv", true, &layout->builtins_bytes) ||
	    decode_accessor(file, "_ZN2v88internal23DefaultEmbeddedBlobDataEv", false, &places))
		return -EOPNOTSUPP;
	process->v8.table = places + HEAD_BYTES;
	if (measure_table(file, process))
		return -EOPNOTSUPP;
	if (metadata && elf_file_type(file->elf) != ET_DYN) {
		layout->metadata = metadata->elf_vaddr;
		return find_entries(file, process);
	}
	err = read_slots(file, &slots, &nr);
	return err ? err : search_entries(file, process, slots, nr);
}

/* The number of the builtin at an offset: the table is sorted by it. */
static int find_number(const struct sonde_v8 *v8, const struct runtime_memory *memory, uint32_t off, uint32_t *ret_number)
{
	uint32_t low = 0, high = v8->nr_builtins;
	struct place place;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		uint64_t at = v8->table + (uint64_t)middle * v8->table_stride;
		int err = memory->read(memory->arg, at, &place, sizeof(place));

		if (err)
			return err;
		if (place.off <= off)
			low = middle;
		else
			high = middle;
	}
	*ret_number = low;
	return 0;
}

int v8_builtins_name(const struct v8_process *process, const struct runtime_memory *memory, uint32_t off, char *name, size_t size)
{
	char text[MAX_NAME + 1] = "";
	uint32_t number;
	uint64_t at;
	size_t in_page;
	int err = find_number(&process->v8, memory, off, &number);

	if (!err)
		err = memory->read(memory->arg, process->layout.metadata + (uint64_t)number * ENTRY_BYTES, &at, sizeof(at));
	if (err)
		return err;
	in_page = 4096 - at % 4096;
	err = memory->read(memory->arg, at, text, in_page < MAX_NAME ? in_page : MAX_NAME);
	if (err)
		return err;
	for (const char *pos = text; *pos; pos++) {
		if (*pos <= ' ' || *pos > '~')
			return -EBADMSG;
	}
	snprintf(name, size, "Builtin:%s", text);
	return text[0] ? 0 : -EBADMSG;
}
