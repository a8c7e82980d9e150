// SPDX-License-Identifier: Apache-2.0
#include "runtime/tls_access.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "elf/dynamic_relocation.h"
#include "elf/dynamic_symbol.h"
#include "runtime/libc_facts.h"
#include "runtime/tls_code.h"

#ifndef R_AARCH64_TLS_DTPMOD
#define R_AARCH64_TLS_DTPMOD 1028
#define R_AARCH64_TLS_TPREL 1030
#endif
#ifndef DF_1_PIE
#define DF_1_PIE 0x08000000
#endif

int tls_access_decode(const struct elf_file *elf, const char *function, struct sonde_tls *ret_tls)
{
	struct dynamic_symbol symbol;
	int err;

	if (elf_file_machine(elf) != EM_X86_64)
		return -EOPNOTSUPP;
	err = dynamic_symbol_find(elf, function, &symbol);
	if (err || symbol.type == STT_TLS || symbol.type == STT_OBJECT)
		return -ENOENT;
	return tls_code_follow(elf, symbol.elf_vaddr, ret_tls);
}

enum slot { SLOT_OFFSET, SLOT_DESCRIPTOR, SLOT_MODULE, SLOT_COUNT }; /* that which needs the C library's facts comes last */

static uint32_t slot_type(const struct elf_file *elf, enum slot slot)
{
	static const uint32_t x86[] = { R_X86_64_TPOFF64, R_X86_64_TLSDESC, R_X86_64_DTPMOD64 },
			      arm64[] = { R_AARCH64_TLS_TPREL, R_AARCH64_TLSDESC, R_AARCH64_TLS_DTPMOD };

	return elf_file_machine(elf) == EM_X86_64 ? x86[slot] : arm64[slot];
}

static struct sonde_tls tls_of(enum slot slot, uint64_t elf_vaddr)
{
	return (struct sonde_tls){ .kind = slot == SLOT_MODULE ? SONDE_TLS_MODULE : SONDE_TLS_OFFSET,
				   .pc = elf_vaddr + (slot == SLOT_DESCRIPTOR ? 8 : 0) };
}

/* Finds the symbol by a GOT slot that is filled for it. */
static int find_slot(const struct elf_file *elf, const struct dynamic_section *section, const char *symbol, uint32_t *budget,
		     struct sonde_tls *ret_tls)
{
	struct dynamic_relocation relocation;

	for (enum slot slot = 0; slot < SLOT_COUNT; slot++) {
		uint32_t type = slot_type(elf, slot);

		if (dynamic_relocation_find_symbol(elf, section, symbol, &type, 1, budget, &relocation))
			continue;
		*ret_tls = tls_of(slot, relocation.slot);
		return 0;
	}
	return -EOPNOTSUPP;
}

/* A library linked with -Bsymbolic names no symbol: the slot's addend is the variable's place in the library's block, or the pair of any
 * variable tells which module the library is. */
static int find_bare_slot(const struct elf_file *elf, const struct dynamic_section *section, uint64_t place, uint32_t *budget,
			  struct sonde_tls *ret_tls)
{
	struct dynamic_relocation relocation;
	int64_t addend = (int64_t)place;
	uint64_t pair_off;

	for (enum slot slot = 0; slot < SLOT_COUNT; slot++) {
		if (dynamic_relocation_find_bare(elf, section, slot_type(elf, slot), slot == SLOT_MODULE ? NULL : &addend, budget,
						 &relocation))
			continue;
		*ret_tls = tls_of(slot, relocation.slot);
		if (slot == SLOT_MODULE && elf_file_read_vaddr(elf, relocation.slot + 8, &pair_off, sizeof(pair_off)))
			return -EOPNOTSUPP;
		ret_tls->off = slot == SLOT_MODULE ? (int64_t)(place - pair_off) : 0;
		return 0;
	}
	return -EOPNOTSUPP;
}

static int read_header(const struct elf_file *elf, uint32_t type, Elf64_Phdr *ret_header)
{
	Elf64_Ehdr header;

	if (elf_file_read_at(elf, 0, &header, sizeof(header)) || header.e_phentsize != sizeof(*ret_header))
		return -ENOENT;
	for (uint32_t i = 0; i < header.e_phnum; i++) {
		if (elf_file_read_at(elf, header.e_phoff + i * sizeof(*ret_header), ret_header, sizeof(*ret_header)))
			return -ENOENT;
		if (ret_header->p_type == type)
			return 0;
	}
	return -ENOENT;
}

/* The linker made local exec of all accesses in a program. ELF TLS, "Variant I" and "II". */
static int find_in_program(const struct elf_file *elf, uint64_t place, struct sonde_tls *ret_tls)
{
	Elf64_Phdr tls;

	if (read_header(elf, PT_TLS, &tls) || (tls.p_align & (tls.p_align - 1)))
		return -EOPNOTSUPP;
	*ret_tls = (struct sonde_tls){ .kind = SONDE_TLS_STATIC };
	if (elf_file_machine(elf) == EM_X86_64) /* the block ends at the thread pointer */
		ret_tls->off = (int64_t)(place - tls.p_memsz - ((-tls.p_vaddr - tls.p_memsz) & (tls.p_align - 1)));
	else /* it begins after two words there */
		ret_tls->off = (int64_t)(place + 16 + ((tls.p_vaddr - 16) & (tls.p_align - 1)));
	return 0;
}

static bool is_program(const struct elf_file *elf, const struct dynamic_section *section)
{
	return elf_file_type(elf) == ET_EXEC || (section->flags_1 & DF_1_PIE);
}

int tls_access_symbol(const struct elf_file *elf, const char *symbol, struct sonde_tls *ret_tls)
{
	uint32_t budget = DYNAMIC_RELOCATION_BUDGET;
	struct dynamic_section section;
	struct dynamic_symbol found;
	int err;

	if (elf_file_machine(elf) != EM_X86_64 && elf_file_machine(elf) != EM_AARCH64)
		return -EOPNOTSUPP;
	if (dynamic_symbol_find(elf, symbol, &found) || found.type != STT_TLS)
		return -ENOENT;
	if (dynamic_section_read(elf, &section))
		return -EOPNOTSUPP;
	if (is_program(elf, &section))
		return find_in_program(elf, found.elf_vaddr, ret_tls);
	err = find_slot(elf, &section, symbol, &budget, ret_tls);
	return err ? find_bare_slot(elf, &section, found.elf_vaddr, &budget, ret_tls) : 0;
}

bool tls_access_is_sound(const struct sonde_tls *tls)
{
	return tls->kind <= SONDE_TLS_KEY && !tls->dtv_off && !tls->keys_off && !tls->key_block && !tls->dtv_stride && !tls->pad;
}

int tls_access_place(const struct sonde_tls *tls, uint64_t load_bias, const struct libc_facts *libc, struct sonde_tls *ret_tls)
{
	struct sonde_tls placed = *tls;

	if ((tls->kind == SONDE_TLS_MODULE || tls->kind == SONDE_TLS_KEY) && !libc->is_known)
		return -EOPNOTSUPP;
	if (tls->kind != SONDE_TLS_STATIC)
		placed.pc += load_bias;
	if (libc->is_known) { /* also for OFFSET: a TLSDESC may lead to a pair */
		placed.dtv_off = libc->dtv_off;
		placed.dtv_stride = libc->dtv_stride;
		placed.keys_off = libc->keys_off;
		placed.key_block = libc->key_block;
	}
	*ret_tls = placed;
	return 0;
}
