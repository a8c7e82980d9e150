// SPDX-License-Identifier: Apache-2.0
/* Any bytes as the .gopclntab of a Go program (the first one selects which): its functions and rows are in order, the table made of them
 * is valid, and each address in a function has a name. Seeds: the programs of tests/unit/go_programs.h. */
#include <string.h>

#include "check_table.h"
#include "pclntab/go_pclntab.h"
#include "../unit/go_programs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct order {
	uint64_t last_vaddr;
	bool is_open;
};

/* Checks what cfi_walk promises. */
static int take_row(void *arg, uint64_t start_vaddr, const struct sonde_rule *rule)
{
	struct order *order = arg;

	check_that(order->is_open ? start_vaddr > order->last_vaddr : rule != NULL);
	check_that(!rule || rule->kind != SONDE_RULE_KIND_STEP || rule->cfa_off >= 8);
	check_that(!rule || rule->kind != SONDE_RULE_KIND_SWITCH || rule->cfa_kind <= SONDE_SWITCH_SCHEDULER);
	order->last_vaddr = start_vaddr;
	order->is_open = rule != NULL;
	return 0;
}

static void check_functions(const struct go_pclntab *go)
{
	uint64_t last_vaddr = 0;

	for (uint32_t i = 0; i < go_pclntab_nr_functions(go); i++) {
		struct go_function function;

		if (!go_pclntab_function(go, i, &function))
			continue;
		check_that(function.start_vaddr >= last_vaddr && function.end_vaddr >= function.start_vaddr);
		last_vaddr = function.start_vaddr;
	}
}

static void check_frames(const struct go_pclntab *go)
{
	for (uint64_t vaddr = GO_TEXT_VADDR - 1; vaddr <= GO_TEXT_VADDR + go_text.size; vaddr++) {
		struct go_frame frames[3];
		uint32_t nr;

		if (go_pclntab_frames(go, vaddr, frames, 3, &nr))
			continue;
		check_that(nr >= 1 && nr <= 3);
		for (uint32_t i = 0; i < nr; i++)
			check_that(frames[i].name[0] && strlen(frames[i].file) < IMAGE_MAX);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct made_program *const programs[] = { &new_program, &old_program, &oldest_program };
	static struct bytes image;
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	CLEANUP(go_pclntab_freep) struct go_pclntab *go = NULL;
	CLEANUP(rule_table_freep) struct rule_table *rules = rule_table_new(256);
	CLEANUP(unwind_table_freep) struct unwind_table *table = NULL;
	struct order order = { 0 };
	struct cfi_stats stats;

	if (!size || size > 65536 || !rules)
		return 0;
	go_make_parts(programs[data[0] % 3]);
	go_make_image(&image, data + 1, size - 1);
	if (elf_file_open_memory(image.data, image.size, NULL, &elf))
		abort();
	if (go_pclntab_read(elf, NULL, &go))
		return 0;
	check_functions(go);
	check_frames(go);
	check_that(!go_pclntab_walk(go, take_row, &order, &stats) && !order.is_open);
	if (!unwind_table_build(elf, rules, NULL, &table))
		check_table(table, rules);
	return 0;
}
