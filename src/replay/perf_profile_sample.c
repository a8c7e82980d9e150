// SPDX-License-Identifier: Apache-2.0
/* perf_profile_sample: adds samples: divides their frames into kernel and user, finds the thread's name, and computes the values. */
#include <errno.h>

#include "replay/perf_profile_private.h"

#define DEFAULT_MAX_STACK 127 /* kernel.perf_event_max_stack */
#define SOFTWARE_EVENT 1
#define CPU_CLOCK 0
#define TASK_CLOCK 1
#define DUMMY 9 /* only carries process events */

/* --- values --------------------------------------------------------------------------------------------------------------------------- */

static bool is_dummy(const struct perf_data_event *event)
{
	return event->type == SOFTWARE_EVENT && event->config == DUMMY;
}

static const char *unit_of(const struct perf_data_event *event)
{
	return event->type == SOFTWARE_EVENT && (event->config == CPU_CLOCK || event->config == TASK_CLOCK) ? "nanoseconds" : "count";
}

int perf_import_columns(struct perf_import *import)
{
	const struct perf_data_info *info = import->info;
	struct profile_value_type types[PROFILE_MAX_VALUES];
	uint32_t nr_events = 0, nr = 0;

	for (uint32_t i = 0; i < info->nr_events; i++)
		nr_events += !is_dummy(&info->events[i]);
	import->counts_samples = nr_events <= 1;
	if (import->counts_samples)
		types[nr++] = (struct profile_value_type){ .type = profile_string(import->profile, "samples"),
							   .unit = profile_string(import->profile, "count") };
	for (uint32_t i = 0; i < info->nr_events; i++) {
		const struct perf_data_event *event = &info->events[i];

		import->column_of[i] = PROFILE_MAX_VALUES;
		if (nr == PROFILE_MAX_VALUES || is_dummy(event))
			continue;
		import->column_of[i] = (uint8_t)nr;
		types[nr++] = (struct profile_value_type){ .type = profile_string(import->profile, event->name),
							   .unit = profile_string(import->profile, unit_of(event)) };
	}
	for (uint32_t i = 0; i < nr; i++) {
		if (types[i].type == PROFILE_NONE || types[i].unit == PROFILE_NONE)
			return -ENOMEM;
	}
	import->nr_columns_known = info->nr_events;
	if (nr)
		profile_set_value_types(import->profile, types, nr, 0);
	return 0;
}

/* Returns how many events the sample stands for; 1 if the recording does not say. */
static uint64_t weight_of(const struct perf_data_event *event, const struct perf_data_sample *sample)
{
	if (sample->has_period)
		return sample->period;
	return event->is_freq ? 1 : event->period_or_freq;
}

/* --- stacks --------------------------------------------------------------------------------------------------------------------------- */

struct chain { /* of one side: a range in import->frames */
	uint32_t first, nr;
	bool is_broken; /* ended at something that is no address */
};

/* Splits the call chain at its marks. Each side's first frame is where it was interrupted; the others are return addresses. */
static void take_chain(struct perf_import *import, const struct perf_data_sample *sample, enum perf_data_mode mode, struct chain *kernel,
		       struct chain *user)
{
	struct chain *side = mode == PERF_DATA_MODE_KERNEL ? kernel : mode == PERF_DATA_MODE_USER ? user : NULL;
	uint32_t nr = 0;

	for (uint64_t i = 0; i < sample->nr_callchain && nr < PERF_MAX_CHAIN; i++) {
		uint64_t pc = perf_data_word(sample->callchain, i);

		if (pc >= PERF_DATA_CONTEXT_MAX) {
			side = pc == PERF_DATA_CONTEXT_KERNEL ? kernel : pc == PERF_DATA_CONTEXT_USER ? user : NULL;
			if (side && side->nr) { /* each side appears once */
				import->nr_bad_chain++;
				return;
			}
			if (side)
				side->first = nr;
			continue;
		}
		if (!side)
			continue;
		if (side == user && pc & SONDE_FRAME_RETURN) { /* code without frame pointers keeps other values there */
			import->nr_bad_chain++;
			user->is_broken = true;
			return;
		}
		import->frames[nr++] = side == user && side->nr ? pc | SONDE_FRAME_RETURN : pc;
		side->nr++;
	}
}

static int add_kernel(struct perf_import *import, const struct chain *chain, uint32_t *ret_stack)
{
	return chain->nr ? perf_stacks_kernel(import->stacks, import->frames + chain->first, chain->nr, ret_stack) : 0;
}

static int add_user(struct perf_import *import, const struct perf_data_record *record, const struct perf_data_event *event,
		    const struct chain *chain, uint32_t nr_all, uint32_t *ret_stack)
{
	uint32_t tgid = record->tgid | RECORDED_TGID, max_stack = event->max_stack ? event->max_stack : DEFAULT_MAX_STACK;
	const struct perf_data_sample *sample = &record->sample;
	enum sonde_stop stop = nr_all >= max_stack ? SONDE_STOP_DEPTH : SONDE_STOP_COMPLETE;
	int err;

	if (perf_walk_can(sample, import->info->arch)) {
		struct deferred_stack stack;

		err = perf_walk_run(import->walk, tgid, record->time_ns, sample, event->stack_bytes, &stack);
		import->account->late++;
		import->account->stopped[err ? SONDE_STOP_COMPLETE : stack.stop] += !err;
		return err ? err
			   : perf_stacks_user(import->stacks, tgid, record->time_ns, stack.frames, stack.nr_frames, stack.nr_walked,
					      stack.stop, ret_stack);
	}
	import->has_unwalkable |= sample->stack_bytes > 0;
	if (!chain->nr)
		return 0;
	if (chain->is_broken)
		stop = SONDE_STOP_NO_MAPPING;
	import->account->stopped[stop]++;
	return perf_stacks_user(import->stacks, tgid, record->time_ns, import->frames + chain->first, chain->nr, chain->nr, stop,
				ret_stack);
}

static int add_stacks(struct perf_import *import, const struct perf_data_record *record, const struct perf_data_event *event,
		      struct perf_sample *to)
{
	const struct perf_data_sample *sample = &record->sample;
	struct chain kernel = { 0 }, user = { 0 };
	int err;

	if (sample->nr_callchain) {
		take_chain(import, sample, record->mode, &kernel, &user);
	} else if (sample->has_ip) {
		import->frames[0] = sample->ip;
		kernel.nr = record->mode == PERF_DATA_MODE_KERNEL;
		user.nr = record->mode == PERF_DATA_MODE_USER && !(sample->ip & SONDE_FRAME_RETURN);
	}
	err = add_kernel(import, &kernel, &to->kernel_stack);
	return err ? err : add_user(import, record, event, &user, sample->nr_callchain ? kernel.nr + user.nr : 0, &to->user_stack);
}

/* --- a sample ------------------------------------------------------------------------------------------------------------------------- */

static uint32_t comm_of(const struct perf_import *import, const struct perf_data_record *record)
{
	const uint32_t *known = u64_map_find(&import->comm_by_tid, record->tid);

	if (!known)
		known = u64_map_find(&import->comm_by_tid, record->tgid);
	return known ? *known : PROFILE_EMPTY_STRING;
}

int perf_import_sample(struct perf_import *import, const struct perf_data_record *record)
{
	const struct perf_data_event *event = &import->info->events[record->sample.event];
	struct perf_sample sample = {
		.time_ns = import->options.timestamps ? record->time_ns : 0,
		.user_stack = PERF_NO_STACK,
		.kernel_stack = PERF_NO_STACK,
		.tgid = record->tgid == UINT32_MAX ? 0 : record->tgid,
		.tid = record->tid == UINT32_MAX ? 0 : record->tid,
		.cpu = record->sample.cpu == PERF_DATA_NO_CPU ? PROFILE_NONE : record->sample.cpu,
		.comm = comm_of(import, record),
	};
	uint64_t weight = weight_of(event, &record->sample);
	uint8_t column;
	int err = import->nr_columns_known == import->info->nr_events ? 0 : perf_import_columns(import);

	if (err)
		return err;
	column = import->column_of[record->sample.event];
	import->nr_samples++;
	import->nr_guest += record->mode == PERF_DATA_MODE_GUEST_KERNEL || record->mode == PERF_DATA_MODE_GUEST_USER;
	if (column == PROFILE_MAX_VALUES) {
		import->nr_no_column++;
		return 0;
	}
	if (record->time_ns && (!import->first_ns || record->time_ns < import->first_ns))
		import->first_ns = record->time_ns;
	if (record->time_ns > import->last_ns)
		import->last_ns = record->time_ns;
	if (import->counts_samples)
		sample.values[0] = 1;
	sample.values[column] = weight > INT64_MAX ? INT64_MAX : (int64_t)weight;
	err = add_stacks(import, record, event, &sample);
	return err ? err : perf_stacks_add(import->stacks, &sample);
}
