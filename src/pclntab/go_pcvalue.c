// SPDX-License-Identifier: Apache-2.0
/* Pairs of varints: a zigzag difference of the value, then a difference of the address. A value difference of 0, except in the first pair,
 * ends them (Go's src/runtime/symtab.go, step). */
#include "pclntab/go_pclntab_private.h"

struct go_pcvalue go_pcvalue_of(const struct go_pclntab *table, const struct go_function *function, uint32_t table_off)
{
	struct go_pcvalue values = { .vaddr = function->start_vaddr, .end_vaddr = function->end_vaddr, .value = -1 };

	values.r = go_reader_at(table, table->values, table_off);
	if (!table_off)
		reader_fail(&values.r);
	return values;
}

bool go_pcvalue_next(struct go_pcvalue *values, uint64_t *ret_start)
{
	uint32_t value_step, vaddr_step;

	if (values->vaddr >= values->end_vaddr)
		return false;
	value_step = (uint32_t)reader_uleb(&values->r);
	if (!value_step && values->is_begun)
		return false;
	values->is_begun = true;
	vaddr_step = (uint32_t)reader_uleb(&values->r);
	if (values->r.bad || !vaddr_step) /* an empty range: damage, and could make us read on for ever */
		return false;
	*ret_start = values->vaddr;
	values->value = (int32_t)((uint32_t)values->value + (value_step & 1 ? ~(value_step >> 1) : value_step >> 1));
	values->vaddr += vaddr_step;
	if (values->vaddr > values->end_vaddr)
		values->vaddr = values->end_vaddr;
	return true;
}

int32_t go_pcvalue_at(const struct go_pclntab *table, const struct go_function *function, uint32_t table_off, uint64_t elf_vaddr,
		      int32_t fallback)
{
	struct go_pcvalue values = go_pcvalue_of(table, function, table_off);
	uint64_t start;

	while (go_pcvalue_next(&values, &start)) {
		if (elf_vaddr < values.vaddr)
			return values.value;
	}
	return fallback;
}
