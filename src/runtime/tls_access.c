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

/* Finds the symbol by a GOT slot that is filled for it. */
static int find_slot(const struct elf_file *elf, const char *symbol, struct sonde_tls *ret_tls)
{
	static const uint32_t x86[] = { R_X86_64_TPOFF64, R_X86_64_DTPMOD64 }, arm64[] = { R_AARCH64_TLS_TPREL, R_AARCH64_TLS_DTPMOD };
	const uint32_t *types = elf_file_machine(elf) == EM_X86_64 ? x86 : arm64;
	uint32_t budget = DYNAMIC_RELOCATION_BUDGET;
	struct dynamic_relocation relocation;
	struct dynamic_section section;

	if (dynamic_section_read(elf, &section))
		return -EOPNOTSUPP;
	for (uint32_t i = 0; i < ARRAY_SIZE(x86); i++) { /* the type that needs the library's facts comes last */
		if (dynamic_relocation_find_symbol(elf, &section, symbol, types + i, 1, &budget, &relocation))
			continue;
		*ret_tls = (struct sonde_tls){ .kind = i ? SONDE_TLS_MODULE : SONDE_TLS_OFFSET, .pc = relocation.slot };
		return 0;
	}
	return -EOPNOTSUPP;
}

int tls_access_symbol(const struct elf_file *elf, const char *symbol, struct sonde_tls *ret_tls)
{
	struct dynamic_symbol found;

	if (elf_file_machine(elf) != EM_X86_64 && elf_file_machine(elf) != EM_AARCH64)
		return -EOPNOTSUPP;
	if (dynamic_symbol_find(elf, symbol, &found) || found.type != STT_TLS)
		return -ENOENT;
	return find_slot(elf, symbol, ret_tls);
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
