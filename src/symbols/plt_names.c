// SPDX-License-Identifier: Apache-2.0
/* Collects the slots that relocations refer to, and sorts them. Then searches each PLT section for jumps through one of them. Relocation
 * types: the psABIs of x86-64 and of the Arm 64-bit architecture. Stubs: what GNU ld, gold, lld and mold write. */
#include "symbols/plt_names.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

/* Of all sections together, which may overlap. libLLVM has 10 MB of relocations. */
#define MAX_RELA_BYTES	 ((size_t)512 << 20)
#define MAX_PLT_BYTES	 ((size_t)64 << 20)
#define MAX_SLOTS	 ((size_t)4 << 20)
#define MAX_SYMTAB_BYTES ((size_t)384 << 20)
#define MAX_STRTAB_BYTES ((size_t)1 << 30)
#define X86_ENTRY_BYTES	 16u
#define X86_SHORT_BYTES	 8u /* .plt.got without endbr64 */
#define ARM64_MAX_INSNS	 7u /* bti, adrp, ldr, add, autia1716, br, nop */

struct slot {
	uint64_t elf_vaddr;
	uint64_t resolver_vaddr;
	uint32_t name;
};

struct plt {
	const struct elf_file *elf;
	struct buffer slots; /* of struct slot, sorted once complete */
	const struct elf_section *dynsym;
	Elf64_Sym *syms;
	size_t nr_syms;
	size_t rela_left, plt_left; /* bytes that may still be read */
	struct plt_names *names;
};

static void plt_done(struct plt *plt)
{
	buffer_done(&plt->slots);
	free(plt->syms);
}

void plt_names_done(struct plt_names *names)
{
	buffer_done(&names->entries);
	free(names->strings);
	names->strings = NULL;
}

/* Reads .dynsym and its strings. A static program has none. */
static int read_dynsym(struct plt *plt)
{
	const struct elf_section *section;
	void *bytes;
	size_t size;
	int err;

	for (uint32_t i = 0; i < elf_file_nr_sections(plt->elf) && !plt->dynsym; i++) {
		if (elf_file_section(plt->elf, i)->type == SHT_DYNSYM)
			plt->dynsym = elf_file_section(plt->elf, i);
	}
	section = plt->dynsym;
	if (!section)
		return 0;
	if (section->entry_size != sizeof(Elf64_Sym) || section->link >= elf_file_nr_sections(plt->elf))
		return -EBADMSG;
	err = elf_file_read_section(plt->elf, section, MAX_SYMTAB_BYTES, NULL, &bytes, &size);
	if (err)
		return err;
	plt->syms = bytes;
	plt->nr_syms = size / sizeof(Elf64_Sym);
	err = elf_file_read_section(plt->elf, elf_file_section(plt->elf, section->link), MAX_STRTAB_BYTES, NULL, &bytes, &size);
	if (err)
		return err;
	plt->names->strings = bytes;
	plt->names->strings_size = size;
	return size && plt->names->strings[size - 1] == '\0' ? 0 : -EBADMSG;
}

static void add_slot(struct plt *plt, const Elf64_Rela *rela, bool is_dynsym)
{
	struct slot slot = { .elf_vaddr = rela->r_offset };
	uint64_t sym = ELF64_R_SYM(rela->r_info);
	uint32_t type = ELF64_R_TYPE(rela->r_info);
	bool is_arm = elf_file_machine(plt->elf) == EM_AARCH64;

	if (type == (is_arm ? R_AARCH64_IRELATIVE : R_X86_64_IRELATIVE)) {
		slot.resolver_vaddr = (uint64_t)rela->r_addend;
		if (!slot.resolver_vaddr)
			return;
	} else if (type == (is_arm ? R_AARCH64_JUMP_SLOT : R_X86_64_JUMP_SLOT) ||
		   type == (is_arm ? R_AARCH64_GLOB_DAT : R_X86_64_GLOB_DAT)) {
		if (!is_dynsym || sym >= plt->nr_syms || plt->syms[sym].st_name >= plt->names->strings_size ||
		    plt->names->strings[plt->syms[sym].st_name] == '\0')
			return;
		slot.name = plt->syms[sym].st_name;
	} else {
		return;
	}
	buffer_append(&plt->slots, &slot, sizeof(slot));
}

static int read_slots(struct plt *plt, const struct elf_section *section)
{
	bool is_dynsym =
	    plt->dynsym && section->link < elf_file_nr_sections(plt->elf) && elf_file_section(plt->elf, section->link) == plt->dynsym;
	CLEANUP(freep) void *bytes = NULL;
	size_t size;
	int err;

	if (section->entry_size != sizeof(Elf64_Rela) || !(section->flags & SHF_ALLOC))
		return 0;
	err = elf_file_read_section(plt->elf, section, plt->rela_left, NULL, &bytes, &size);
	if (err)
		return err;
	plt->rela_left -= size;
	for (size_t off = 0; off + sizeof(Elf64_Rela) <= size && !plt->slots.err; off += sizeof(Elf64_Rela)) {
		Elf64_Rela rela;

		memcpy(&rela, (char *)bytes + off, sizeof(rela));
		add_slot(plt, &rela, is_dynsym);
	}
	return plt->slots.err;
}

static int compare_slots(const void *left, const void *right)
{
	const struct slot *a = left, *b = right;

	return a->elf_vaddr < b->elf_vaddr ? -1 : a->elf_vaddr > b->elf_vaddr;
}

static void add_entry(struct plt *plt, uint64_t vaddr, uint32_t size, uint64_t slot_vaddr)
{
	const struct slot key = { .elf_vaddr = slot_vaddr };
	const struct slot *slot =
	    bsearch(&key, plt->slots.data, plt->slots.size / sizeof(struct slot), sizeof(struct slot), compare_slots);
	struct plt_entry entry = { .elf_vaddr = vaddr, .size_bytes = size };

	if (!slot)
		return;
	entry.resolver_vaddr = slot->resolver_vaddr;
	entry.name = slot->name;
	buffer_append(&plt->names->entries, &entry, sizeof(entry));
}

/* Decodes the jump through a slot in an entry of up to `size` bytes: [endbr64] [mov $n, %r11d] [bnd] jmp *slot(%rip). Returns the offset of
 * its end, or 0. */
static uint32_t x86_jump(const uint8_t *code, size_t size, int32_t *ret_displacement)
{
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	uint32_t at = 0;

	if (size >= sizeof(endbr64) && memcmp(code, endbr64, sizeof(endbr64)) == 0)
		at = sizeof(endbr64);
	if (size - at >= 6 && code[at] == 0x41 && code[at + 1] == 0xbb)
		at += 6;
	if (size - at >= 1 && code[at] == 0xf2)
		at++;
	if (size - at < 6 || code[at] != 0xff || code[at + 1] != 0x25)
		return 0;
	memcpy(ret_displacement, code + at + 2, sizeof(*ret_displacement));
	return at + 6;
}

/* With IBT the jump through the slot is in .plt.sec. In .plt only the number that an entry pushes identifies the target. The dynamic linker
 * uses that number, which counts the relocations of .rela.plt. Such entries run once each and stay without a name. */
static void find_x86(struct plt *plt, const struct elf_section *section, const uint8_t *code, size_t size)
{
	uint32_t entry_size = section->entry_size == X86_SHORT_BYTES ? X86_SHORT_BYTES : X86_ENTRY_BYTES;

	for (size_t off = 0; off < size && !plt->names->entries.err; off += entry_size) {
		size_t left = size - off < entry_size ? size - off : entry_size;
		int32_t displacement;
		uint32_t end = x86_jump(code + off, left, &displacement);

		if (end)
			add_entry(plt, section->vaddr + off, (uint32_t)left, section->vaddr + off + end + (uint64_t)(int64_t)displacement);
	}
}

static uint32_t arm64_insn(const uint8_t *code, size_t size, size_t off)
{
	uint32_t insn = 0;

	if (size >= sizeof(insn) && off <= size - sizeof(insn))
		memcpy(&insn, code + off, sizeof(insn));
	return insn;
}

/* [bti c] adrp x16, page; ldr x17, [x16, #off]; add x16, x16, #off; [autia1716] br x17 [nop] */
static void find_arm64(struct plt *plt, const struct elf_section *section, const uint8_t *code, size_t size)
{
	const uint32_t bti_c = 0xd503245f, br_x17 = 0xd61f0220, nop = 0xd503201f;

	for (size_t off = 0; off + 8 <= size && !plt->names->entries.err; off += 4) {
		uint32_t adrp = arm64_insn(code, size, off), ldr = arm64_insn(code, size, off + 4);
		size_t start = off, end = off + 8;
		uint64_t page;

		if ((adrp & 0x9f00001f) != 0x90000010 || (ldr & 0xffc003ff) != 0xf9400211)
			continue;
		page = (((uint64_t)(adrp >> 5) & 0x7ffff) << 2 | ((adrp >> 29) & 3)) << 12;
		page = (uint64_t)((int64_t)(page << 31) >> 31); /* sign-extends 33 bits */
		page += (section->vaddr + off) & ~(uint64_t)0xfff;
		if (off >= 4 && arm64_insn(code, size, off - 4) == bti_c)
			start = off - 4;
		while (end < size && end - start < 4 * ARM64_MAX_INSNS && arm64_insn(code, size, end) != br_x17)
			end += 4;
		if (arm64_insn(code, size, end) != br_x17)
			continue;
		for (end += 4; arm64_insn(code, size, end) == nop;)
			end += 4;
		add_entry(plt, section->vaddr + start, (uint32_t)(end - start), page + ((ldr >> 10) & 0xfff) * 8);
	}
}

bool plt_names_is_section(const char *name)
{
	return strncmp(name, ".plt", 4) == 0 || strncmp(name, ".iplt", 5) == 0;
}

static int find_entries(struct plt *plt, const struct elf_section *section)
{
	CLEANUP(freep) void *code = NULL;
	size_t size;
	int err;

	if (!(section->flags & SHF_EXECINSTR) || !plt_names_is_section(section->name))
		return 0;
	err = elf_file_read_section(plt->elf, section, plt->plt_left, NULL, &code, &size);
	if (err)
		return err == -ENODATA ? 0 : err;
	plt->plt_left -= size;
	if (elf_file_machine(plt->elf) == EM_AARCH64)
		find_arm64(plt, section, code, size);
	else
		find_x86(plt, section, code, size);
	return plt->names->entries.err;
}

static int read_all(struct plt *plt)
{
	int err = read_dynsym(plt);

	for (uint32_t i = 0; i < elf_file_nr_sections(plt->elf) && !err; i++) {
		if (elf_file_section(plt->elf, i)->type == SHT_RELA)
			err = read_slots(plt, elf_file_section(plt->elf, i));
	}
	if (!err && !plt->slots.size)
		err = -ENODATA;
	if (err)
		return err;
	qsort(plt->slots.data, plt->slots.size / sizeof(struct slot), sizeof(struct slot), compare_slots);
	for (uint32_t i = 0; i < elf_file_nr_sections(plt->elf) && !err; i++)
		err = find_entries(plt, elf_file_section(plt->elf, i));
	return err;
}

int plt_names_read(const struct elf_file *elf, struct plt_names *ret_names)
{
	CLEANUP(plt_names_done) struct plt_names names = { .entries = BUFFER_INIT(MAX_SLOTS * sizeof(struct plt_entry)) };
	CLEANUP(plt_done) struct plt plt = { .elf = elf,
					     .slots = BUFFER_INIT(MAX_SLOTS * sizeof(struct slot)),
					     .rela_left = MAX_RELA_BYTES,
					     .plt_left = MAX_PLT_BYTES,
					     .names = &names };
	int err;

	if (elf_file_machine(elf) != EM_X86_64 && elf_file_machine(elf) != EM_AARCH64)
		return -ENODATA;
	err = read_all(&plt);
	if (!err && !names.entries.size)
		err = -ENODATA;
	if (err)
		return err;
	*ret_names = names;
	names = (struct plt_names){ .entries = BUFFER_INIT(0) };
	return 0;
}
