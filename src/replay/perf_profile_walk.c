// SPDX-License-Identifier: Apache-2.0
#include "replay/perf_profile_walk.h"

#include <errno.h>
#include <string.h>

#include "track/table_loader.h"

#define MAX_TABLE_BYTES ((uint64_t)1 << 30)
#define MAX_NEEDED_TABLES 64 /* per stack, loaded one after the other */
#define REGS_ABI_64 2 /* PERF_SAMPLE_REGS_ABI_64 */
#ifdef SONDE_ARM64
#define OUR_ARCH "aarch64"
#else
#define OUR_ARCH "x86_64"
#endif
#define RECORD_WORDS ((sizeof(struct sonde_deferred_record) + 65536) / 8)
#define NO_REG (-1)
#define REG_OF_PC SONDE_REG_PC

/* Returns the DWARF number of perf's register number (arch/x86/include/uapi/asm/perf_regs.h, psABI figure 3.36; on arm64 the numbers are
 * the same). */
static int dwarf_register(uint32_t bit)
{
#ifdef SONDE_ARM64
	return bit < SONDE_NR_REGS ? (int)bit : NO_REG;
#else
	static const int8_t numbers[] = { 0,	  3,	  2,	  1,	  4, 5, 6,  7,	REG_OF_PC, NO_REG, NO_REG, NO_REG,
					  NO_REG, NO_REG, NO_REG, NO_REG, 8, 9, 10, 11, 12, 13, 14, 15 };

	return bit < ARRAY_SIZE(numbers) ? numbers[bit] : NO_REG;
#endif
}

struct perf_walk {
	struct process_table *processes;
	struct table_store *store;
	struct table_loader *loader;
	struct deferred_walk *walk;
	struct process_mapping *mappings; /* of `process`, at the time of the last walk */
	struct sonde_mapping *kernel_mappings;
	struct deferred_process process;
	bool is_known;                  /* the mappings are valid for process.tgid */
	uint64_t record[RECORD_WORDS];
};

static int ignore_change(void *arg, uint32_t tgid, uint32_t generation, const struct process_mapping *mappings, uint32_t nr_mappings)
{
	return 0;
}

static int tell_all(void *arg)
{
	struct perf_walk *walk = arg;

	walk->is_known = false;
	return process_table_changes(walk->processes, ignore_change, NULL);
}

static void perf_walk_freep(struct perf_walk **walk)
{
	perf_walk_free(*walk);
}

int perf_walk_new(struct process_table *processes, struct account *account, struct parser *parser, struct diag *diag,
		  struct perf_walk **ret_walk)
{
	const struct table_store_options options = { .chunks_fd = -1,
						     .rules_fd = -1,
						     .processes_fd = -1,
						     .table_generation_fd = -1,
						     .max_rules = SONDE_MAX_RULES,
						     .max_bytes = MAX_TABLE_BYTES };
	CLEANUP(perf_walk_freep) struct perf_walk *walk = calloc(1, sizeof(*walk));
	int err;

	if (!walk)
		return -ENOMEM;
	walk->processes = processes;
	err = table_store_new(&options, diag, &walk->store);
	if (err)
		return err;
	walk->walk = deferred_walk_new(walk->store, 0);
	walk->loader = table_loader_new(walk->store, processes, account, parser, tell_all, walk);
	if (!walk->walk || !walk->loader)
		return -ENOMEM;
	*ret_walk = MOVE(walk);
	return 0;
}

void perf_walk_free(struct perf_walk *walk)
{
	if (!walk)
		return;
	deferred_walk_free(walk->walk);
	table_loader_free(walk->loader);
	table_store_free(walk->store);
	free(walk->mappings);
	free(walk->kernel_mappings);
	free(walk);
}

void perf_walk_changed(struct perf_walk *walk)
{
	walk->is_known = false;
}

bool perf_walk_can(const struct perf_data_sample *sample, const char *arch)
{
	uint64_t needed = 0;

	if (sample->regs_abi != REGS_ABI_64 || (*arch && strcmp(arch, OUR_ARCH)))
		return false;
	for (uint32_t bit = 0; bit < 64; bit++) {
		int number = dwarf_register(bit);

#ifdef SONDE_ARM64
		needed |= number == 29 || number == 31 || number == REG_OF_PC ? 1ULL << bit : 0;
#else
		needed |= number == 6 || number == 7 || number == REG_OF_PC ? 1ULL << bit : 0;
#endif
	}
	return sample->stack && sample->regs && (sample->regs_mask & needed) == needed && sample->stack_bytes <= 65536;
}

/* --- mappings ------------------------------------------------------------------------------------------------------------------------- */

static int know_process(struct perf_walk *walk, uint32_t tgid, uint64_t time_ns)
{
	struct mappings_at then = { 0 };
	int err;

	if (walk->is_known && walk->process.tgid == tgid)
		return 0;
	free(MOVE(walk->mappings));
	free(MOVE(walk->kernel_mappings));
	err = process_table_at(walk->processes, tgid, time_ns, &then);
	if (err && err != -ENOENT)
		return err;
	walk->mappings = then.list;
	walk->kernel_mappings = calloc(then.nr + 1, sizeof(*walk->kernel_mappings));
	if (!walk->kernel_mappings)
		return -ENOMEM;
	for (uint32_t i = 0; i < then.nr; i++) {
		walk->kernel_mappings[i] =
		    (struct sonde_mapping){ .start_pc = walk->mappings[i].start_pc, .end_pc = walk->mappings[i].end_pc };
		table_loader_fill(walk->loader, walk->mappings[i].object, walk->mappings[i].load_bias, &walk->kernel_mappings[i]);
	}
	walk->process = (struct deferred_process){
		.tgid = tgid, .generation = then.generation, .mappings = walk->kernel_mappings, .nr_mappings = then.nr
	};
	walk->is_known = true;
	return 0;
}

static const struct process_mapping *mapping_at(const struct perf_walk *walk, uint64_t pc)
{
	uint32_t lo = 0, hi = walk->process.nr_mappings;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (walk->mappings[mid].start_pc <= pc)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && pc < walk->mappings[lo - 1].end_pc ? &walk->mappings[lo - 1] : NULL;
}

/* Reads code from its ELF file. Code outside of files was not recorded. */
static int read_code(void *arg, uint64_t pc, void *to, size_t size)
{
	const struct perf_walk *walk = arg;
	const struct process_mapping *mapping = mapping_at(walk, pc);
	const struct object *object =
	    mapping && mapping->object != OBJECT_NONE ? object_table_at(process_table_objects(walk->processes), mapping->object) : NULL;

	if (!object || !object->elf || mapping->end_pc - pc < size)
		return -EFAULT;
	return elf_file_read_at(object->elf, mapping->file_off + (pc - mapping->start_pc), to, size);
}

/* If the walk ended at a table that is not loaded, loads it. *ret_again: repeat the walk, the table is loaded now or does not exist. */
static int need_table(struct perf_walk *walk, const struct deferred_stack *stack, uint64_t time_ns, bool *ret_again)
{
	const struct process_mapping *mapping = mapping_at(walk, stack->last_pc - (stack->nr_walked > 1));
	int err;

	*ret_again = false;
	if (stack->stop != SONDE_STOP_NOT_LOADED || !mapping || mapping->object == OBJECT_NONE)
		return 0;
	if (table_loader_is_met(walk->loader, mapping->object)) {
		err = table_loader_need(walk->loader, mapping->object, time_ns, ret_again);
	} else {
		err = table_loader_meet(walk->loader, mapping->object);
		*ret_again = true;
	}
	walk->is_known = false;
	return err;
}

/* --- a stack -------------------------------------------------------------------------------------------------------------------------- */

static void fill_record(struct perf_walk *walk, uint32_t tgid, uint64_t time_ns, const struct perf_data_sample *sample)
{
	struct sonde_deferred_record *record = (struct sonde_deferred_record *)walk->record;
	uint32_t nr = 0;

	memset(record, 0, sizeof(*record));
	record->type = SONDE_RECORD_DEFERRED;
	record->tgid = tgid;
	record->time_ns = time_ns;
	for (uint32_t bit = 0; bit < 64; bit++) {
		if (!(sample->regs_mask >> bit & 1))
			continue;
		if (dwarf_register(bit) >= 0)
			record->regs[dwarf_register(bit)] = perf_data_word(sample->regs, nr);
		nr++;
	}
#ifdef SONDE_ARM64
	record->stack_start = record->regs[31];
#else
	record->stack_start = record->regs[7];
#endif
	record->stack_bytes = sample->stack_bytes;
	record->compat = sample->regs_abi == 1;
	memcpy(record + 1, sample->stack, sample->stack_bytes);
}

int perf_walk_run(struct perf_walk *walk, uint32_t tgid, uint64_t time_ns, const struct perf_data_sample *sample, uint32_t asked_bytes,
		  struct deferred_stack *ret_stack)
{
	const struct sonde_deferred_record *record = (const struct sonde_deferred_record *)walk->record;
	bool again = true;

	fill_record(walk, tgid, time_ns, sample);
	for (int turn = 0; again && turn < MAX_NEEDED_TABLES; turn++) {
		int err = know_process(walk, tgid, time_ns);

		if (err)
			return err;
		deferred_walk_run(walk->walk, record, &walk->process, read_code, walk, ret_stack);
		err = need_table(walk, ret_stack, time_ns, &again);
		if (err)
			return err;
	}
	if (ret_stack->stop == SONDE_STOP_READ_FAULT && sample->stack_bytes >= asked_bytes) /* only part of it was recorded */
		ret_stack->stop = SONDE_STOP_DEPTH;
	return 0;
}
