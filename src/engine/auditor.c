// SPDX-License-Identifier: Apache-2.0
#include "engine/auditor.h"

#include <errno.h>
#include <inttypes.h>

#include "audit/audit.h"
#include "base/clock.h"
#include "parse/audit_pool.h"
#include "parse/parser_private.h"

#define MAX_TOLD 4
#define MAX_CPU_NS NS_PER_S         /* for one request; the largest tables take a tenth of it */
#define MAX_WAIT_NS NS_PER_S       /* at the end */
#define MODULES_BYTES_MAX ((size_t)64 << 20)

struct auditor {
	const struct process_table *processes;
	struct account *account;
	struct audit_pool *pool;
	uint32_t nr_told; /* differences noted so far */
	/* of the stack to be queued */
	struct buffer modules;
	uint64_t walked[AUDIT_MAX_FRAMES];
	uint32_t files[WIRE_MAX_FDS];
	struct audit_stack by_libdw; /* of the stack whose answer has arrived */
};

/* --- findings ------------------------------------------------------------------------------------------------------------------------- */

static void count(struct account *account, const struct audit_finding *finding)
{
	account->audited++;
	account->audit_agreed += finding->verdict == AUDIT_AGREES;
	account->audit_differed += finding->verdict == AUDIT_DIFFERS;
	if (finding->verdict == AUDIT_NOT_COMPARABLE)
		account->audit_not_comparable[finding->reason]++;
}

static void count_not_comparable(struct auditor *auditor, enum audit_reason reason)
{
	count(auditor->account, &(struct audit_finding){ .verdict = AUDIT_NOT_COMPARABLE, .reason = reason });
}

/* Notes where the first differing stacks differ: a difference needs a closer look. */
static void tell(struct auditor *auditor, const struct audit_batch *batch, const uint64_t *walked, uint32_t nr_walked, uint32_t frame)
{
	uint32_t last = frame && frame <= nr_walked ? frame - 1 : 0; /* the frame whose caller differs */
	const struct audit_message_module *module;
	uint64_t pc;

	if (!nr_walked || auditor->nr_told++ >= MAX_TOLD)
		return;
	pc = walked[last] & ~SONDE_FRAME_RETURN;
	module = audit_batch_module(batch, walked[last] & SONDE_FRAME_RETURN ? pc - 1 : pc);
	account_note(auditor->account,
		     "audit: process %" PRIu32 ": the caller of %s+%#" PRIx64 " (frame %" PRIu32 "): walked %#" PRIx64 ", libdw %#" PRIx64,
		     batch->tgid,
		     !module || module->object == OBJECT_NONE
			 ? ""
			 : object_table_at(process_table_objects(auditor->processes), module->object)->path,
		     module ? pc - module->load_bias : pc, last, frame < nr_walked ? walked[frame] : 0,
		     frame < auditor->by_libdw.nr_frames ? auditor->by_libdw.frames[frame] : 0);
}

/* Compares the walked stack with libdw's. */
static void compare(struct auditor *auditor, const struct audit_batch *batch, const struct audit_walked *walked, struct reader *answers)
{
	const uint64_t *frames = (const void *)(walked + 1);
	struct audit_finding finding;

	audit_answers_next(answers, &auditor->by_libdw);
	if (walked->switch_frame && auditor->by_libdw.nr_frames >= walked->switch_frame) {
		auditor->by_libdw.nr_frames = walked->switch_frame;
		auditor->by_libdw.end = AUDIT_END_NO_CFI;
	}
	finding = audit_compare(frames, walked->nr_frames, walked->stop, &auditor->by_libdw);
	if (finding.verdict == AUDIT_DIFFERS)
		tell(auditor, batch, frames, walked->nr_frames, finding.frame);
	count(auditor->account, &finding);
}

static void take(void *arg, const struct audit_batch *batch, struct reader *answers, enum audit_reason reason)
{
	struct auditor *auditor = arg;
	const char *at = batch->walked.data;

	for (uint32_t i = 0; i < batch->nr_stacks; i++) {
		const struct audit_walked *walked = (const void *)at;

		if (answers)
			compare(auditor, batch, walked, answers);
		else
			count_not_comparable(auditor, reason);
		at += sizeof(*walked) + walked->nr_frames * sizeof(uint64_t);
	}
}

/* --- requests ------------------------------------------------------------------------------------------------------------------------- */

int auditor_new(const struct process_table *processes, struct account *account, struct diag *diag, struct auditor **ret_auditor)
{
	struct auditor *auditor = calloc(1, sizeof(*auditor));
	const struct audit_pool_options options = { .program = PARSER_PROGRAM,
						    .kind = PARSER_AUDIT,
						    .max_cpu_ns = MAX_CPU_NS,
						    .objects = process_table_objects(processes),
						    .account = account,
						    .done = take,
						    .arg = auditor };
	int err = auditor ? audit_pool_new(&options, diag, &auditor->pool) : -ENOMEM;

	if (err) {
		free(auditor);
		return err;
	}
	auditor->processes = processes;
	auditor->account = account;
	auditor->modules = BUFFER_INIT(MODULES_BYTES_MAX);
	*ret_auditor = auditor;
	return 0;
}

void auditor_free(struct auditor *auditor)
{
	if (!auditor)
		return;
	audit_pool_free(auditor->pool);
	buffer_done(&auditor->modules);
	free(auditor);
}

void auditor_set_nice(struct auditor *auditor, int nice)
{
	if (auditor)
		audit_pool_set_nice(auditor->pool, nice);
}

static int take_modules(struct auditor *auditor, const struct process_mapping *mappings, uint32_t nr_mappings)
{
	auditor->modules.size = 0;
	for (uint32_t i = 0; i < nr_mappings; i++) {
		const struct audit_message_module module = { .start_pc = mappings[i].start_pc,
							     .end_pc = mappings[i].end_pc,
							     .load_bias = mappings[i].load_bias,
							     .object = mappings[i].object };

		buffer_append(&auditor->modules, &module, sizeof(module));
	}
	return auditor->modules.err;
}

/* Adds a frame's file, once. If a stack passes through more files than a request may have, libdw cannot see the others. */
static void take_file(struct auditor *auditor, const struct location *location, struct audit_request *request)
{
	uint32_t i = request->nr_files;

	if (!location->in_elf)
		return;
	while (i && auditor->files[i - 1] != location->object)
		i--;
	if (!i && request->nr_files < WIRE_MAX_FDS)
		auditor->files[request->nr_files++] = location->object;
}

/* Collects the pcs of the walked stack, and their files. 0; -ENOENT: a file is no longer mapped. */
static int take_walked(struct auditor *auditor, const struct audited *stack, const struct process_mapping *mappings, uint32_t nr_mappings,
		       struct audit_request *request)
{
	request->walked = auditor->walked;
	request->files = auditor->files;
	for (uint32_t i = 0; i < stack->nr_frames && i < AUDIT_MAX_FRAMES; i++) {
		const struct location *location = location_at(stack->locations, stack->frames[i]);
		uint64_t pc = location_pc(location, mappings, nr_mappings);

		if (!pc)
			return -ENOENT;
		auditor->walked[request->nr_walked++] = pc | (location->is_return ? SONDE_FRAME_RETURN : 0);
		take_file(auditor, location, request);
	}
	return 0;
}

/* 0; -ENOENT: the stack, or its process's mappings, are not available; -ENOMEM; as audit_pool_add. */
static int ask(struct auditor *auditor, const struct sonde_deferred_record *record, const struct audited *stack)
{
	struct mappings_at then = { 0 };
	int err = stack->frames ? process_table_at(auditor->processes, record->tgid, record->time_ns, &then) : -ENOENT;
	CLEANUP(freep) struct process_mapping *mappings = then.list;
	struct audit_request request = { .record = record,
					 .generation = then.generation,
					 .nr_modules = then.nr,
					 .switch_frame = stack->switch_frame,
					 .stop = stack->stop };

	if (!err)
		err = take_modules(auditor, mappings, then.nr);
	if (!err)
		err = take_walked(auditor, stack, mappings, then.nr, &request);
	request.modules = (const void *)auditor->modules.data;
	return err ? err : audit_pool_add(auditor->pool, &request);
}

int auditor_check(struct auditor *auditor, const struct sonde_deferred_record *record, const struct audited *stack)
{
	int err = ask(auditor, record, stack);
	bool is_busy;

	switch (err) {
	case 0:
		return audit_pool_is_crowded(auditor->pool) ? audit_pool_step(auditor->pool, &is_busy) : 0;
	case -ENOMEM:
		return err;
	case -EPERM:
		count_not_comparable(auditor, AUDIT_REASON_NOT_ASKED);
		return 0;
	case -EAGAIN:
		count_not_comparable(auditor, AUDIT_REASON_NO_ANSWER);
		return 0;
	}
	count_not_comparable(auditor, AUDIT_REASON_LOST);
	return 0;
}

int auditor_step(struct auditor *auditor, bool *ret_is_busy)
{
	*ret_is_busy = false;
	return auditor ? audit_pool_step(auditor->pool, ret_is_busy) : 0;
}

int auditor_finish(struct auditor *auditor)
{
	return auditor ? audit_pool_finish(auditor->pool, MAX_WAIT_NS) : 0;
}
