// SPDX-License-Identifier: Apache-2.0
#include "session/auditor.h"

#include <errno.h>

#include "audit/audit.h"

struct auditor {
	const struct process_table *processes;
	struct account *account;
	struct audit *audit;
	struct audit_stack by_libdw;
	uint64_t walked[AUDIT_MAX_FRAMES];
};

int auditor_new(const struct process_table *processes, struct account *account, struct diag *diag, struct auditor **ret_auditor)
{
	struct auditor *auditor = calloc(1, sizeof(*auditor));
	int err = auditor ? audit_new(diag, &auditor->audit) : -ENOMEM;

	if (err) {
		free(auditor);
		return err;
	}
	auditor->processes = processes;
	auditor->account = account;
	*ret_auditor = auditor;
	return 0;
}

void auditor_free(struct auditor *auditor)
{
	if (auditor)
		audit_free(auditor->audit);
	free(auditor);
}

/* Where a place in a file stands in this process: places know where they were first met. 0: the file is not mapped there. */
static uint64_t pc_of(const struct place *place, const struct process_mapping *mappings, uint32_t nr_mappings)
{
	if (!place->in_elf)
		return place->pc;
	for (uint32_t i = 0; i < nr_mappings; i++) {
		uint64_t pc = place->elf_vaddr + mappings[i].load_bias;

		if (mappings[i].object == place->object && pc - place->is_return - mappings[i].start_pc < mappings[i].end_pc - mappings[i].start_pc)
			return pc;
	}
	return 0;
}

static int unwind(struct auditor *auditor, const struct sonde_raw_record *record, uint32_t generation, const struct process_mapping *mappings, uint32_t nr_mappings)
{
	const struct object_table *objects = process_table_objects(auditor->processes);
	CLEANUP(freep) struct audit_module *modules = calloc(nr_mappings + 1u, sizeof(*modules));
	struct audit_process process = { .tgid = record->tgid, .generation = generation, .modules = modules, .nr_modules = nr_mappings };

	if (!modules)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr_mappings; i++) {
		modules[i] = (struct audit_module){ .start_pc = mappings[i].start_pc, .end_pc = mappings[i].end_pc, .load_bias = mappings[i].load_bias,
						    .object = mappings[i].object };
		if (mappings[i].object != OBJECT_NONE)
			modules[i].elf = object_table_at(objects, mappings[i].object)->elf;
	}
	return audit_unwind(auditor->audit, record, &process, &auditor->by_libdw);
}

static void count(struct account *account, const struct audit_finding *finding)
{
	account->audited++;
	account->audit_agreed += finding->verdict == AUDIT_AGREES;
	account->audit_differed += finding->verdict == AUDIT_DIFFERS;
	if (finding->verdict == AUDIT_NOT_COMPARABLE)
		account->audit_not_comparable[finding->reason]++;
}

int auditor_check(struct auditor *auditor, const struct sonde_raw_record *record, const struct place_table *places, const uint32_t *frames, uint32_t nr_frames,
		  enum sonde_stop stop)
{
	struct audit_finding finding = { .verdict = AUDIT_NOT_COMPARABLE, .reason = AUDIT_REASON_LOST };
	CLEANUP(freep) struct process_mapping *mappings = NULL;
	uint32_t nr_mappings = 0, generation = 0, nr = nr_frames < AUDIT_MAX_FRAMES ? nr_frames : AUDIT_MAX_FRAMES;
	int err = frames ? process_table_at(auditor->processes, record->tgid, record->time_ns, &mappings, &nr_mappings, &generation) : -ENOENT;

	if (!err)
		err = unwind(auditor, record, generation, mappings, nr_mappings);
	if (err == -ENOMEM)
		return err;
	for (uint32_t i = 0; !err && i < nr; i++) {
		const struct place *place = place_at(places, frames[i]);
		uint64_t pc = pc_of(place, mappings, nr_mappings);

		auditor->walked[i] = pc | (place->is_return ? SONDE_FRAME_RETURN : 0);
		err = pc ? 0 : -ENOENT;
	}
	if (!err)
		finding = audit_compare(auditor->walked, nr, stop, &auditor->by_libdw);
	count(auditor->account, &finding);
	return 0;
}
