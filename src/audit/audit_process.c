// SPDX-License-Identifier: Apache-2.0
#include "audit/audit_process.h"

#include <errno.h>
#include <inttypes.h>

uint64_t audit_low_pc(const struct audit_module *module)
{
	const struct elf_segment *first;

	if (!elf_file_nr_segments(module->elf))
		return module->load_bias;
	first = elf_file_segment(module->elf, 0);
	return module->load_bias + (first->vaddr & -first->align);
}

static bool is_same_file(const struct audit_module *a, const struct audit_module *b)
{
	return a->object == b->object && a->load_bias == b->load_bias;
}

/* Number of entries from `i` on that are one module for libdw: those of one file, and anonymous memory between them. *ret_end: where it
 * ends. */
static uint32_t run_of(const struct audit_process *process, uint32_t i, uint64_t *ret_end)
{
	const struct audit_module *first = &process->modules[i];
	uint32_t next = i + 1;

	*ret_end = first->end_pc;
	for (uint32_t at = next; at < process->nr_modules; at++) {
		const struct audit_module *module = &process->modules[at];

		if (!module->elf)
			continue;
		if (!is_same_file(first, module))
			break;
		*ret_end = module->end_pc;
		next = at + 1;
	}
	return next - i;
}

static int report_modules(void *arg, Dwfl *dwfl, const struct audit_process *process)
{
	uint64_t prev_end = 0, end;

	dwfl_report_begin(dwfl);
	for (uint32_t i = 0, nr; i < process->nr_modules; i += nr) {
		const struct audit_module *first = &process->modules[i];
		Dwfl_Module *module;
		char name[16];
		void **userdata;

		nr = 1;
		if (!first->elf)
			continue;
		nr = run_of(process, i, &end);
		if (audit_low_pc(first) < prev_end || audit_low_pc(first) > first->start_pc || end <= first->start_pc)
			continue; /* files within each other's range: libdw cannot represent them, and look_up finds no module there */
		snprintf(name, sizeof(name), "%" PRIu32, first->object);
		module = dwfl_report_module(dwfl, name, audit_low_pc(first), end);
		if (!module)
			return -ENOMEM;
		dwfl_module_info(module, &userdata, NULL, NULL, NULL, NULL, NULL, NULL);
		*userdata = arg;
		prev_end = end;
	}
	return dwfl_report_end(dwfl, NULL, NULL) ? -ENOMEM : 0;
}

static void forget_process(struct known_process *known)
{
	if (known->dwfl)
		dwfl_end(known->dwfl);
	*known = (struct known_process){ 0 };
}

void audit_processes_done(struct audit_processes *processes)
{
	for (int i = 0; i < AUDIT_MAX_PROCESSES; i++)
		forget_process(&processes->known[i]);
	audit_files_clear(&processes->files);
}

static uint64_t hash_modules(const struct audit_process *process)
{
	uint64_t hash = process->nr_modules;

	for (uint32_t i = 0; i < process->nr_modules; i++) {
		const struct audit_module *module = &process->modules[i];
		uint64_t words[] = { module->start_pc, module->end_pc, module->load_bias, module->elf ? module->object : UINT64_MAX };

		for (size_t word = 0; word < ARRAY_SIZE(words); word++) {
			hash = (hash ^ words[word]) * 0x9e3779b97f4a7c15ULL;
			hash ^= hash >> 32;
		}
	}
	return hash;
}

/* Returns the entry of this process, or the least recently used one, emptied. */
static struct known_process *entry_of(struct audit_processes *processes, const struct audit_process *process)
{
	struct known_process *oldest = &processes->known[0];

	for (int i = 0; i < AUDIT_MAX_PROCESSES; i++) {
		struct known_process *known = &processes->known[i];

		if (known->dwfl && known->tgid == process->tgid) {
			oldest = known;
			break;
		}
		if (known->last_use < oldest->last_use)
			oldest = known;
	}
	if (oldest->tgid != process->tgid || oldest->generation != process->generation)
		forget_process(oldest);
	return oldest;
}

int audit_processes_get(struct audit_processes *processes, const struct audit_process *process, Dwfl **ret_dwfl)
{
	uint64_t hash = hash_modules(process);
	struct known_process *known;

	if (audit_files_are_full(&processes->files))
		audit_processes_done(processes);
	known = entry_of(processes, process);
	known->last_use = ++processes->nr_uses;
	if (!known->dwfl || known->modules_hash != hash) {
		bool is_new = !known->dwfl;

		known->tgid = process->tgid;
		known->generation = process->generation;
		known->modules_hash = hash;
		if (is_new)
			known->dwfl = dwfl_begin(processes->file_callbacks);
		if (!known->dwfl || report_modules(processes->arg, known->dwfl, process) ||
		    (is_new && !dwfl_attach_state(known->dwfl, processes->machine, 1, processes->thread_callbacks, processes->arg))) {
			forget_process(known);
			return -ENOMEM;
		}
	}
	*ret_dwfl = known->dwfl;
	return 0;
}
