// SPDX-License-Identifier: Apache-2.0
#include "engine/deferred_stacks.h"

#include <errno.h>
#include <string.h>

#include "process/context_keys.h"

#define MAX_NEEDED_TABLES 32 /* that one stack may need, one after the other */

struct deferred_stacks {
	struct tracker *tracker;
	struct sampler *sampler;
	struct deferred_walk *walk;
	struct auditor *auditor;
	struct initial_stacks *initial_stacks;
	struct context_keys *context_keys;
};

struct code_source {
	const struct process_table *processes;
	uint32_t tgid;
	uint64_t time_ns;
	struct initial_stacks *initial_stacks; /* NULL: the record is not an initial stack */
	uint64_t id;
};

/* Reads code from the file that was mapped there. Memory without a file may hold other code by now. It is read only for an initial stack,
 * since it is known whether that thread still waits. */
static int read_code(void *arg, uint64_t pc, void *to, size_t size)
{
	const struct code_source *source = arg;
	const struct process_mapping *mapping = process_table_find(source->processes, source->tgid, source->time_ns, pc);
	const struct object *object =
	    mapping && mapping->object != OBJECT_NONE ? object_table_at(process_table_objects(source->processes), mapping->object) : NULL;

	if (!object || !object->elf)
		return source->initial_stacks ? initial_stacks_read_on(source->initial_stacks, source->id, source->tgid, pc, to, size)
					      : -EFAULT;
	if (mapping->end_pc - pc < size)
		return -EFAULT;
	return elf_file_read_at(object->elf, mapping->file_off + (pc - mapping->start_pc), to, size);
}

/* Loads the table whose absence ended the walk. *ret_loaded: it is loaded now. */
static int need_table(struct deferred_stacks *stacks, const struct code_source *source, const struct deferred_stack *stack,
		      bool *ret_loaded)
{
	const struct process_mapping *mapping =
	    process_table_find(source->processes, source->tgid, source->time_ns, stack->last_pc - (stack->nr_walked > 1));

	*ret_loaded = false;
	if (stack->stop != SONDE_STOP_NOT_LOADED || !mapping || mapping->object == OBJECT_NONE)
		return 0;
	return tracker_need(stacks->tracker, mapping->object, source->time_ns, ret_loaded);
}

static int walk_deferred(struct deferred_stacks *stacks, const struct sonde_deferred_record *record, struct deferred_stack *ret_stack)
{
	struct code_source source = { .processes = tracker_processes(stacks->tracker),
				      .tgid = record->tgid,
				      .time_ns = record->time_ns,
				      .initial_stacks = record->use == SONDE_DEFERRED_INITIAL ? stacks->initial_stacks : NULL,
				      .id = record->id };
	bool again = true;
	int err = 0;

	for (int turn = 0; !err && again && turn < MAX_NEEDED_TABLES; turn++) {
		struct deferred_process process;

		err = tracker_process_at(stacks->tracker, record->tgid, record->time_ns, &process);
		if (err)
			return err;
		deferred_walk_run(stacks->walk, record, &process, read_code, &source, ret_stack);
		err = need_table(stacks, &source, ret_stack, &again);
	}
	return err;
}

static int walk(void *arg, const struct sonde_deferred_record *record, struct deferred_stack *ret_stack)
{
	struct deferred_stacks *stacks = arg;
	int err = walk_deferred(stacks, record, ret_stack);

	if (err)
		return err;
	if (record->stop == SONDE_STOP_NO_PROCESS)
		tracker_disbelieved(stacks->tracker, record->tgid, record->time_ns);
	if (ret_stack->hash == record->hash)
		sampler_settle(stacks->sampler, record->hash); /* it need not be deferred again */
	return 0;
}

static int check(void *arg, const struct sonde_deferred_record *record, const struct location_table *locations, const uint32_t *frames,
		 uint32_t nr_frames, enum sonde_stop stop)
{
	struct deferred_stacks *stacks = arg;
	struct deferred_stack again;
	int err = walk_deferred(stacks, record, &again);

	return err || !stacks->auditor
		   ? err
		   : auditor_check(stacks->auditor, record, &(struct audited){ locations, frames, nr_frames, again.switch_frame, stop });
}

static void used(void *arg, uint32_t object, uint64_t time_ns)
{
	const struct deferred_stacks *stacks = arg;

	tracker_used(stacks->tracker, object, time_ns);
}

static int need(void *arg, uint32_t object, uint64_t time_ns)
{
	const struct deferred_stacks *stacks = arg;
	bool is_loaded;

	return tracker_need(stacks->tracker, object, time_ns, &is_loaded); /* for later stacks */
}

static enum runtime_answer describe(void *arg, uint32_t tgid, uint32_t generation, const struct sonde_runtime_frame *frame,
				    const struct sonde_code_record *copy, bool is_again, struct runtime_function *ret_function)
{
	const struct deferred_stacks *stacks = arg;

	return runtime_loader_describe(tracker_runtimes(stacks->tracker), tgid, generation, frame, copy, is_again, ret_function);
}

static uint32_t context_key(void *arg, uint32_t tgid, uint32_t generation, uint8_t number, char *key)
{
	const struct deferred_stacks *stacks = arg;
	/* the records were read before the side-band: what began to run since is known */
	bool is_current = process_table_is_current(tracker_processes(stacks->tracker), tgid, generation);
	const struct context_key *found = context_keys_find(stacks->context_keys, tgid, generation, number, is_current);

	_Static_assert(sizeof(found->key) == SONDE_LABEL_KEY_BYTES, "as in a label");
	if (found)
		memcpy(key, found->key, sizeof(found->key));
	return found ? found->bytes : 0;
}

static void touch(void *arg, uint32_t tgid, uint64_t pc)
{
	const struct deferred_stacks *stacks = arg;

	runtime_loader_touch(tracker_runtimes(stacks->tracker), tgid, pc);
}

struct deferred_stacks *deferred_stacks_new(struct tracker *tracker, struct sampler *sampler, struct proxy *proxy, struct auditor *auditor,
					    struct initial_stacks *initial_stacks)
{
	struct deferred_stacks *stacks = calloc(1, sizeof(*stacks));

	if (!stacks)
		return NULL;
	stacks->tracker = tracker;
	stacks->sampler = sampler;
	stacks->auditor = auditor;
	stacks->initial_stacks = initial_stacks;
	stacks->walk = deferred_walk_new(tracker_tables(tracker), sampler_config(sampler)->hash_seed);
	stacks->context_keys = context_keys_new(proxy);
	if (stacks->walk && stacks->context_keys)
		return stacks;
	deferred_stacks_free(stacks);
	return NULL;
}

void deferred_stacks_free(struct deferred_stacks *stacks)
{
	if (!stacks)
		return;
	deferred_walk_free(stacks->walk);
	context_keys_free(stacks->context_keys);
	free(stacks);
}

struct stack_walker deferred_stacks_walker(struct deferred_stacks *stacks)
{
	return (struct stack_walker){
		.walk = walk, .check = check, .used = used, .need = need, .describe = describe,
		.context_key = context_key, .touch = touch, .arg = stacks
	};
}
