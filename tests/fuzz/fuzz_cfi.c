// SPDX-License-Identifier: Apache-2.0
/* Any bytes as call frame information (the first one selects the form): rows arrive in order, and the table made of them is valid. */
#include <errno.h>
#include <string.h>

#include "check_table.h"
#include "cfi/cfi.h"
#include "../unit/elf_image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SECTION_VADDR 0x10000

enum { IS_DEBUG_FRAME = 1, IS_OPEN_ENDED = 2, IS_AARCH64 = 4 };

struct order {
	bool is_open;
	uint64_t start_vaddr, last_vaddr;
	struct cfi_stats counted;
};

/* Checks what cfi.h promises about the calls. */
static int take_row(void *arg, uint64_t start_vaddr, const struct sonde_rule *rule)
{
	struct order *order = arg;

	if (!order->is_open) {
		check_that(rule != NULL);
		order->start_vaddr = start_vaddr;
		order->counted.nr_fdes++;
	} else if (rule && start_vaddr == order->start_vaddr) {
		check_that(rule->kind == SONDE_RULE_KIND_UNSUPPORTED); /* takes the rows back */
	} else {
		check_that(start_vaddr > order->last_vaddr);
	}
	order->last_vaddr = start_vaddr;
	order->is_open = rule != NULL;
	if (!rule)
		return 0;
	order->counted.nr_rows++;
	order->counted.nr_unsupported += rule->kind == SONDE_RULE_KIND_UNSUPPORTED;
	check_that(rule->kind == SONDE_RULE_KIND_STEP || (!rule->cfa_off && !rule->cfa_kind && !rule->bp_kind && !rule->ra_off));
	check_that(rule->kind <= SONDE_RULE_KIND_UNSUPPORTED);
	check_that(rule->cfa_kind <= SONDE_CFA_DEREF_TWICE && rule->bp_kind <= SONDE_BP_UNDEFINED);
	check_that(!rule->cfa_reg || (rule->cfa_kind == SONDE_CFA_REG && rule->cfa_reg < 32) || rule->cfa_kind == SONDE_CFA_PLT ||
		   rule->cfa_kind == SONDE_CFA_DEREF_TWICE);
	return 0;
}

static void check_walk(const uint8_t *data, size_t size, uint8_t form)
{
	struct cfi_section section = {
		.bytes = data,
		.size = size,
		.vaddr = SECTION_VADDR,
		.data_vaddr = 0x8000,
		.format = form & IS_DEBUG_FRAME ? CFI_DEBUG_FRAME : CFI_EH_FRAME,
		.machine = form & IS_AARCH64 ? EM_AARCH64 : EM_X86_64,
		.is_open_ended = form & IS_OPEN_ENDED,
	};
	struct order order = { 0 };
	struct cfi_stats stats;
	int err = cfi_walk(&section, take_row, &order, &stats, NULL);

	check_that(!err || err == -EBADMSG);
	check_that(!order.is_open && order.counted.nr_fdes == stats.nr_fdes && order.counted.nr_rows == stats.nr_rows);
	check_that(order.counted.nr_unsupported == stats.nr_unsupported);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct bytes image;
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	CLEANUP(rule_table_freep) struct rule_table *rules = rule_table_new(256);
	CLEANUP(unwind_table_freep) struct unwind_table *table = NULL;
	struct image_section section = { ".eh_frame", SHT_PROGBITS, SECTION_VADDR, data + 1, size - 1 };

	if (!size || size > 65536 || !rules)
		return 0;
	check_walk(data + 1, size - 1, data[0]);
	if (data[0] & IS_DEBUG_FRAME)
		section.name = ".debug_frame";
	image_make(&image, NULL, 0, &section, 1);
	if (elf_file_open_memory(image.data, image.size, NULL, &elf))
		abort();
	if (!unwind_table_build(elf, rules, NULL, &table))
		check_table(table, rules);
	return 0;
}
