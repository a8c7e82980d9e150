// SPDX-License-Identifier: Apache-2.0
#include "skywalking/sky_tasks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/number.h"
#include "cli/output.h"
#include "cli/session_end.h"
#include "send/grpc.h"

#define MAX_BODY_BYTES	((size_t)64 << 20)
#define CALL_BYTES	((size_t)4 << 20) /* then another call */
#define MIN_PERIOD_NS	NS_PER_MS
#define MAX_PERIOD_NS	(3600 * NS_PER_S)
#define MAX_DURATION_S	(7 * 86400)
#define LAST_WINDOW_NS	(5 * NS_PER_S)    /* how long the names of the last window may take */
#define MAX_TRIES	3
#define MAX_RESETS	10
#define PAUSE_NS	NS_PER_S          /* before a task's next try */
#define SEND_NS		NS_PER_S          /* then there is other work, such as heartbeats */

int sky_period_parse(const char *text, uint64_t *ret_ns)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = { { "us", NS_PER_US }, { "ms", NS_PER_MS }, { "s", NS_PER_S }, { "m", 60 * NS_PER_S } };
	size_t length = strspn(text, "0123456789");
	char digits[16];
	uint64_t number;

	if (length >= sizeof(digits))
		return -EINVAL;
	memcpy(digits, text, length);
	digits[length] = '\0';
	if (number_u64(digits, MAX_PERIOD_NS / NS_PER_US, &number))
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (strcmp(text + length, units[i].name) != 0)
			continue;
		if (number > MAX_PERIOD_NS / units[i].ns || number * units[i].ns < MIN_PERIOD_NS)
			return -EINVAL;
		*ret_ns = number * units[i].ns;
		return 0;
	}
	return -EINVAL;
}

/* --- commands ------------------------------------------------------------------------------------------------------------------------- */

static bool number_argument(const struct sky_command *command, const char *key, uint64_t max, uint64_t *ret_value)
{
	char text[32];

	return sky_argument(command, key, text, sizeof(text)) && !number_u64(text, max, ret_value);
}

static struct sky_slot *free_slot(struct sky_tasks *tasks)
{
	for (uint32_t i = 0; i < SKY_MAX_TASKS; i++) {
		if (!tasks->slots[i].task)
			return &tasks->slots[i];
	}
	return NULL;
}

static void stop(struct sky_slot *slot)
{
	sky_task_stop(slot->task);
	if (!slot->stopped_ns)
		slot->stopped_ns = clock_ns();
}

static void start(struct sky_tasks *tasks, struct sky_task_options *options)
{
	struct sky_slot *slot = free_slot(tasks);
	struct diag diag = { 0 };
	int err;

	options->flush_ns = tasks->flush_ns;
	if (!options->is_off_cpu && sky_period_parse(tasks->period, &options->period_ns)) {
		output_say("task %s failed: the sampling period '%.40s' is no time of a millisecond or more, such as 9ms", options->id,
			   tasks->period);
		return;
	}
	if (!slot) {
		output_say("task %s failed: there are %d others", options->id, SKY_MAX_TASKS);
		return;
	}
	err = sky_task_start(options, &diag, &slot->task);
	if (err)
		output_say("task %s failed: %s", options->id, failure_text(&diag, err));
}

/* The same task, perhaps for longer? False: it is another one, or its session has ended. */
static bool extend(const struct sky_slot *slot, const struct sky_task_options *options)
{
	const struct sky_task_options *old = sky_task_options(slot->task);

	return !strcmp(old->id, options->id) && old->start_unix_ns == options->start_unix_ns &&
	       sky_task_extend(slot->task, options->end_unix_ns);
}

/* Of a process one task of a kind runs at a time: the older one ends when this one begins. */
static void make_way(struct sky_slot *slot, const struct sky_task_options *options)
{
	const struct sky_task_options *old = sky_task_options(slot->task);

	if (slot->stopped_ns || strcmp(old->process_id, options->process_id) != 0 || old->is_off_cpu != options->is_off_cpu ||
	    old->end_unix_ns <= options->start_unix_ns)
		return;
	if (strcmp(old->id, options->id) != 0)
		output_say("task %s is replaced by %s", old->id, options->id);
	if (options->start_unix_ns <= clock_of_ns(CLOCK_REALTIME))
		stop(slot);
	else
		sky_task_end_by(slot->task, options->start_unix_ns);
}

static void start_or_extend(struct sky_tasks *tasks, struct sky_task_options *options)
{
	for (uint32_t i = 0; i < SKY_MAX_TASKS; i++) {
		if (tasks->slots[i].task && extend(&tasks->slots[i], options))
			return;
	}
	for (uint32_t i = 0; i < SKY_MAX_TASKS; i++) {
		if (tasks->slots[i].task)
			make_way(&tasks->slots[i], options);
	}
	start(tasks, options);
}

/* A task as the server gives it. */
struct given {
	char id[SKY_ID_BYTES], process_ids[2048], target[32];
	uint64_t update_ms, start_ms, duration_s;
};

/* False: it cannot be read. */
static bool read_task(const struct sky_command *command, struct given *given)
{
	memset(given, 0, sizeof(*given)); /* it is hashed */
	return sky_argument(command, "TaskId", given->id, sizeof(given->id)) &&
	       sky_argument(command, "ProcessId", given->process_ids, sizeof(given->process_ids)) &&
	       sky_argument(command, "TargetType", given->target, sizeof(given->target)) &&
	       number_argument(command, "TaskUpdateTime", INT64_MAX / NS_PER_MS, &given->update_ms) &&
	       number_argument(command, "TaskStartTime", INT64_MAX / NS_PER_MS / 2, &given->start_ms) &&
	       number_argument(command, "FixedTriggerDuration", MAX_DURATION_S, &given->duration_s);
}

/* Notes the task. False: it was taken before, in the same words. */
static bool is_new(struct sky_tasks *tasks, const struct given *given)
{
	uint64_t hash = hash_bytes(given, sizeof(*given), 0);

	for (uint32_t i = 0; i < SKY_MAX_TAKEN; i++) {
		if (tasks->taken[i] == hash)
			return false;
	}
	tasks->taken[tasks->nr_taken++ % SKY_MAX_TAKEN] = hash;
	return true;
}

static void begin(struct sky_tasks *tasks, const struct sky_known *known, const struct given *given)
{
	struct sky_task_options options = { .pid = known->process.pid,
					    .program = known->program,
					    .is_off_cpu = !strcmp(given->target, "OFF_CPU"),
					    .start_unix_ns = given->start_ms * NS_PER_MS };

	options.end_unix_ns = options.start_unix_ns + given->duration_s * NS_PER_S;
	snprintf(options.id, sizeof(options.id), "%s", given->id);
	snprintf(options.process_id, sizeof(options.process_id), "%s", known->process.id);
	if (!options.is_off_cpu && strcmp(given->target, "ON_CPU") != 0)
		output_say("task %s is refused: %s is not profiled, only ON_CPU and OFF_CPU", given->id, given->target);
	else if (options.end_unix_ns <= clock_of_ns(CLOCK_REALTIME))
		output_say("task %s is dropped: its time is over", given->id);
	else
		start_or_extend(tasks, &options);
}

static bool is_past(const struct given *given)
{
	return given->start_ms + given->duration_s * (NS_PER_S / NS_PER_MS) <= clock_of_ns(CLOCK_REALTIME) / NS_PER_MS;
}

/* One whose process is not reported, or not yet, is not taken: the next query shall bring it again, until its time is over. False. */
static bool take(struct sky_tasks *tasks, const struct sky_processes *processes, const struct given *given)
{
	size_t length = strcspn(given->process_ids, ",");
	char first[SKY_ID_BYTES];
	const struct sky_known *known;

	snprintf(first, sizeof(first), "%.*s", (int)length, given->process_ids);
	known = length < sizeof(first) ? sky_processes_find(processes, first) : NULL;
	if (!known)
		return is_past(given);
	if (!is_new(tasks, given))
		return true;
	if (given->process_ids[length])
		output_say("task %s: one process is profiled; left out: %.400s", given->id, given->process_ids + length + 1);
	begin(tasks, known, given);
	return true;
}

static void say_unreadable(struct sky_tasks *tasks)
{
	if (!tasks->has_said_unreadable)
		output_say("a task of the server cannot be read: it lacks something, or is too long. Others are not said");
	tasks->has_said_unreadable = true;
}

void sky_tasks_take(struct sky_tasks *tasks, const struct sky_processes *processes, struct reader message)
{
	struct sky_command command;
	struct given given;
	/* of all; where the first one that must come again lies behind, and none behind now: the server's clock may have been wrong */
	uint64_t newest_ms = 0, before_ms = clock_of_ns(CLOCK_REALTIME) / NS_PER_MS;

	while (sky_next_command(&message, &command)) {
		if (!sky_is_command(&command, "EBPFProfilingTaskQuery"))
			continue;
		if (!read_task(&command, &given)) {
			say_unreadable(tasks);
			continue;
		}
		if (given.update_ms > newest_ms)
			newest_ms = given.update_ms;
		if (!take(tasks, processes, &given) && given.update_ms && given.update_ms - 1 < before_ms)
			before_ms = given.update_ms - 1;
	}
	if (newest_ms > before_ms)
		newest_ms = before_ms;
	if (newest_ms > tasks->seen_ms)
		tasks->seen_ms = newest_ms;
}

void sky_tasks_begin(struct sky_tasks *tasks, const struct sky_known *known, const char *id, bool is_off_cpu, uint64_t duration_ns)
{
	struct sky_task_options options = { .pid = known->process.pid, .program = known->program, .is_off_cpu = is_off_cpu };

	snprintf(options.id, sizeof(options.id), "%s", id);
	snprintf(options.process_id, sizeof(options.process_id), "%s", known->process.id);
	options.start_unix_ns = clock_of_ns(CLOCK_REALTIME);
	options.end_unix_ns = options.start_unix_ns + duration_ns;
	start_or_extend(tasks, &options);
}

/* --- windows -------------------------------------------------------------------------------------------------------------------------- */

struct sending {
	struct sky_slot *slot;
	struct sky_rpc *rpc;
	struct diag *diag;
	struct sky_data data;
	struct buffer body;
	uint64_t nr;      /* samples in the body */
	uint32_t nr_call; /* of the window */
};

/* Answers that may be another one next time, and that may as well be the fault of these records (UNKNOWN is what a Java server says when it
 * fails): some tries are made. */
static bool is_fault(const struct post_answer *answer)
{
	return answer->grpc_status == GRPC_UNKNOWN || answer->grpc_status == GRPC_INTERNAL;
}

/* Will the server never take it? */
static bool is_lost(const struct sending *sending, int err)
{
	const struct post_answer *answer = sending->rpc->answer;

	if (err == -EIO) /* heartbeats come between, so there is a server, which may not want to read so much */
		return ++sending->slot->nr_tries == MAX_RESETS;
	if (err != -EPROTO)
		return false;
	return grpc_is_refusal(answer) || (is_fault(answer) && ++sending->slot->nr_tries >= MAX_TRIES);
}

/* What is lost is counted, and the others go on. */
static int send_call(struct sending *sending)
{
	struct sky_slot *slot = sending->slot;
	int err = sky_rpc_stream(sending->rpc, SKY_RECORDS, &sending->body, sending->diag);

	if (!err) {
		slot->nr_sent += sending->nr;
	} else if (is_lost(sending, err)) {
		output_say("task %s: %" PRIu64 " samples are lost: %s", sending->data.task_id, sending->nr,
			   failure_text(sending->diag, err));
		*sending->diag = (struct diag){ 0 };
		slot->nr_refused += sending->nr;
		err = 0;
	}
	if (!err) {
		slot->nr_calls++;
		slot->nr_tries = 0;
	}
	return err;
}

static int send_body(struct sending *sending)
{
	bool was_answered = sending->nr_call++ < sending->slot->nr_calls; /* when the window was sent before */
	int err = was_answered || !sending->body.size ? 0 : send_call(sending);

	sending->body.size = 0;
	sending->nr = 0;
	return err;
}

static int append_record(void *arg, const struct sky_record *record)
{
	struct sending *sending = arg;
	bool is_first = !sending->body.size;
	size_t opened = grpc_open(&sending->body);

	sky_write_record(&sending->data, is_first, record, &sending->body);
	grpc_close(&sending->body, opened, false);
	sending->nr += (uint64_t)record->count;
	if (sending->body.err)
		return sending->body.err;
	return sending->body.size >= CALL_BYTES ? send_body(sending) : 0;
}

/* Goes on behind the calls that were answered. A call that may have arrived replaces itself: the server's keys are the task, the stacks'
 * ids and the time. */
static int send_window(struct sky_slot *slot, struct sky_rpc *rpc, struct diag *diag)
{
	const struct sky_task_options *task = sky_task_options(slot->task);
	const struct sky_stacks *window = &slot->window;
	struct sending sending = { .slot = slot,
				   .rpc = rpc,
				   .diag = diag,
				   .body = BUFFER_INIT(MAX_BODY_BYTES),
				   .data = { .task_id = task->id,
					     .process_id = task->process_id,
					     .start_ms = sky_task_since_ms(slot->task),
					     .now_ms = (window->start_unix_ns + window->duration_ns) / NS_PER_MS,
					     .is_off_cpu = task->is_off_cpu } };
	int err = sky_stacks_records(window, append_record, &sending);

	if (!err)
		err = send_body(&sending);
	buffer_done(&sending.body);
	if (!err)
		slot->nr_without += window->nr_without;
	return err;
}

static void end_window(struct sky_slot *slot)
{
	sky_stacks_done(&slot->window);
	slot->has_window = false;
	slot->nr_calls = slot->nr_tries = 0;
}

/* False: there is none. */
static bool next_window(struct sky_slot *slot)
{
	slot->has_window = slot->has_window || sky_task_take_window(slot->task, &slot->window);
	return slot->has_window;
}

static void drop_windows(struct sky_slot *slot)
{
	for (; next_window(slot); end_window(slot))
		slot->nr_lost++;
}

/* What became of a task that will send no more. */
static void say_end(const struct sky_slot *slot)
{
	const struct sky_task_options *options = sky_task_options(slot->task);
	struct sky_task_losses losses = sky_task_losses(slot->task);
	const char *reason;

	if (!sky_task_is_over(slot->task, &reason))
		output_say("task %s does not end: what it sampled last is lost", options->id);
	else if (*reason)
		output_say("task %s failed: %s", options->id, reason);
	if (!sky_task_since_ms(slot->task)) /* it never began */
		return;
	output_say("task %s, %s of process %" PRIu32 ": %" PRIu64 " %s sent; without a stack: %" PRIu64 ", lost: %" PRIu64
		   ", lost windows: %" PRIu64,
		   options->id, options->is_off_cpu ? "OFF_CPU" : "ON_CPU", options->pid, slot->nr_sent,
		   options->is_off_cpu ? "waits" : "samples", slot->nr_without, losses.nr_samples + slot->nr_refused,
		   slot->nr_lost + losses.nr_windows);
}

/* Sends one window, so that no task keeps the others waiting; is done with the task when there are no more. */
static int serve(struct sky_slot *slot, struct sky_rpc *rpc, struct diag *diag)
{
	const char *reason;
	bool is_over = sky_task_is_over(slot->task, &reason); /* looked at before the windows: there are no more then */
	int err = 0;

	if (slot->stopped_ns && !is_over && clock_ns() - slot->stopped_ns > LAST_WINDOW_NS)
		sky_task_stop(slot->task);
	if (clock_ns() < slot->try_at_ns)
		return 0;
	if (next_window(slot)) {
		err = send_window(slot, rpc, diag);
		if (err)
			slot->try_at_ns = clock_ns() + PAUSE_NS;
		else
			end_window(slot);
	} else if (is_over) {
		say_end(slot);
		sky_task_free(slot->task);
		*slot = (struct sky_slot){ 0 };
	}
	return err;
}

int sky_tasks_send(struct sky_tasks *tasks, struct sky_rpc *rpc, struct diag *diag)
{
	uint64_t until_ns = clock_ns() + SEND_NS;
	int first_err = 0;

	for (uint32_t i = 0; i < SKY_MAX_TASKS && clock_ns() < until_ns; i++) {
		struct sky_slot *slot = &tasks->slots[tasks->next++ % SKY_MAX_TASKS];
		int err = slot->task ? serve(slot, rpc, diag) : 0;

		if (err && err != -EPROTO) /* no server there: none of them */
			return err;
		first_err = first_err ?: err;
	}
	return first_err;
}

void sky_tasks_stop(struct sky_tasks *tasks)
{
	for (uint32_t i = 0; i < SKY_MAX_TASKS; i++) {
		if (tasks->slots[i].task)
			stop(&tasks->slots[i]);
	}
}

bool sky_tasks_are_over(const struct sky_tasks *tasks)
{
	for (uint32_t i = 0; i < SKY_MAX_TASKS; i++) {
		if (tasks->slots[i].task)
			return false;
	}
	return true;
}

/* The names of its last window are hurried after a while. False: it does not end. */
static bool join(const struct sky_slot *slot, uint64_t until_ns)
{
	uint64_t hurry_ns = slot->stopped_ns + LAST_WINDOW_NS;

	if (sky_task_join(slot->task, hurry_ns < until_ns ? hurry_ns : until_ns))
		return true;
	sky_task_stop(slot->task);
	return sky_task_join(slot->task, until_ns);
}

void sky_tasks_done(struct sky_tasks *tasks, uint64_t until_ns)
{
	for (uint32_t i = 0; i < SKY_MAX_TASKS; i++) {
		struct sky_slot *slot = &tasks->slots[i];
		bool has_ended = slot->task && join(slot, until_ns);

		if (!slot->task)
			continue;
		drop_windows(slot);
		say_end(slot);
		if (has_ended) /* else its thread has what it uses until this process ends */
			sky_task_free(slot->task);
		*slot = (struct sky_slot){ 0 };
	}
}
