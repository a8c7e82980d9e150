// SPDX-License-Identifier: Apache-2.0
#include "session/auditor.h"

#include <errno.h>
#include <inttypes.h>

#include "audit/audit.h"

#define MAX_TOLD 4

struct auditor {
	const struct process_table *processes;
	struct account *account;
	struct audit *audit;
	struct audit_stack by_libdw;
	uint64_t walked[AUDIT_MAX_FRAMES];
	uint32_t nr_told; /* differences that were noted */
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

/* Says where the first stacks differ: what counts as a finding is to be looked into. */
static void tell(struct auditor *auditor, const struct sonde_raw_record *record, const struct audited *stack, uint32_t frame)
{
	uint32_t last = frame && frame <= stack->nr_frames ? frame - 1 : 0; /* whose caller it is about */
	const struct place *place;

	if (!stack->nr_frames || auditor->nr_told++ >= MAX_TOLD)
		return;
	place = place_at(stack->places, stack->frames[last]);
	account_note(auditor->account, "audit: process %" PRIu32 ": the caller of %s+%#" PRIx64 " (frame %" PRIu32 "): walked %#" PRIx64 ", libdw %#" PRIx64, record->tgid,
		     place->object == OBJECT_NONE ? "" : object_table_at(process_table_objects(auditor->processes), place->object)->path, place->elf_vaddr, last,
		     frame < stack->nr_frames ? auditor->walked[frame] : 0, frame < auditor->by_libdw.nr_frames ? auditor->by_libdw.frames[frame] : 0);
}

/* Unwinds by libdw, and puts what was walked beside it. */
static int unwind_both(struct auditor *auditor, const struct sonde_raw_record *record, const struct audited *stack)
{
	struct mappings_at then = { 0 };
	int err = stack->frames ? process_table_at(auditor->processes, record->tgid, record->time_ns, &then) : -ENOENT;
	CLEANUP(freep) struct process_mapping *mappings = then.list;

	if (!err)
		err = unwind(auditor, record, then.generation, mappings, then.nr);
	for (uint32_t i = 0; !err && i < stack->nr_frames && i < AUDIT_MAX_FRAMES; i++) {
		const struct place *place = place_at(stack->places, stack->frames[i]);
		uint64_t pc = place_pc(place, mappings, then.nr);

		auditor->walked[i] = pc | (place->is_return ? SONDE_FRAME_RETURN : 0);
		err = pc ? 0 : -ENOENT;
	}
	return err;
}

int auditor_check(struct auditor *auditor, const struct sonde_raw_record *record, const struct audited *stack)
{
	struct audit_finding finding = { .verdict = AUDIT_NOT_COMPARABLE, .reason = AUDIT_REASON_LOST };
	int err = unwind_both(auditor, record, stack);

	if (err == -ENOMEM)
		return err;
	if (!err && stack->switch_frame && auditor->by_libdw.nr_frames >= stack->switch_frame) {
		auditor->by_libdw.nr_frames = stack->switch_frame;
		auditor->by_libdw.end = AUDIT_END_NO_CFI;
	}
	if (!err)
		finding = audit_compare(auditor->walked, stack->nr_frames < AUDIT_MAX_FRAMES ? stack->nr_frames : AUDIT_MAX_FRAMES, stack->stop, &auditor->by_libdw);
	if (finding.verdict == AUDIT_DIFFERS)
		tell(auditor, record, stack, finding.frame);
	count(auditor->account, &finding);
	return 0;
}
