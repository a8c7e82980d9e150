// SPDX-License-Identifier: Apache-2.0
#include "skywalking/sky_policies.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/process_stat.h"
#include "cli/output.h"

#define FIRST_ENTRIES	   16
#define BATCH		   100               /* services of a question: the answer to more would be longer than post.h keeps */
#define MAX_MESSAGE_BYTES  ((size_t)1 << 20)
#define DURATION_NS	   (600 * NS_PER_S)  /* of a task that begins by itself */
#define SILENCE_NS	   (1200 * NS_PER_S) /* of a process, from then on */

void sky_policies_done(struct sky_policies *policies)
{
	sky_policy_list_done(&policies->list);
	free(policies->watches);
	*policies = (struct sky_policies){ 0 };
}

/* --- what the server wants ------------------------------------------------------------------------------------------------------------ */

static void say_left_out(const char *service, const char *what)
{
	output_say("a policy of the service %s is left out: %.40s", service, what);
}

static int read_policies(struct sky_policies *policies, const struct reader *json, struct diag *diag)
{
	policies->list.left_out = say_left_out;
	return sky_policy_read(&policies->list, (const char *)json->pos, reader_left(json), diag);
}

/* Has an earlier process the service? */
static bool is_first_of(const struct sky_processes *processes, uint32_t number)
{
	for (uint32_t i = 0; i < number; i++) {
		if (!strcmp(processes->all[i].process.entity.service, processes->all[number].process.entity.service))
			return false;
	}
	return true;
}

static int ask(struct sky_policies *policies, struct buffer *message, struct sky_rpc *rpc, struct diag *diag)
{
	struct reader answer;
	struct sky_command command;
	int err = sky_rpc_call(rpc, SKY_POLICIES, message, diag);

	message->size = 0;
	if (err)
		return err;
	answer = sky_rpc_message(rpc);
	while (!err && sky_next_command(&answer, &command)) {
		const struct reader *json = sky_is_command(&command, "ContinuousProfilingPolicyQuery") ?
						    sky_argument_bytes(&command, "ServiceWithPolicyJSON") :
						    NULL;

		if (json)
			err = read_policies(policies, json, diag);
	}
	return err;
}

int sky_policies_query(struct sky_policies *policies, const struct sky_processes *processes, struct sky_rpc *rpc, struct diag *diag)
{
	CLEANUP(buffer_done) struct buffer message = BUFFER_INIT(MAX_MESSAGE_BYTES);
	uint32_t nr = 0;
	int err = 0;

	for (uint32_t i = 0; i < processes->nr && !err; i++) {
		const char *service = processes->all[i].process.entity.service;

		if (!is_first_of(processes, i))
			continue;
		sky_write_policy(service, sky_policy_want(&policies->list, service), &message);
		if (++nr % BATCH == 0)
			err = ask(policies, &message, rpc, diag);
	}
	if (!err && message.size)
		err = ask(policies, &message, rpc, diag);
	if (!err)
		sky_policy_keep_wanted(&policies->list);
	return err;
}

/* --- what the processes do ------------------------------------------------------------------------------------------------------------ */

struct measured {
	uint64_t cpu_ns, nr_threads;
};

/* False: it has ended, and the pid is another's or the program another one. */
static bool measure(const struct sky_watch *watch, struct measured *ret_measured)
{
	struct process_stat stat;
	struct sky_program now;

	if (process_stat_read(watch->pid, &stat))
		return false;
	sky_program_of(watch->pid, &stat, &now);
	if (!sky_program_is(&now, &watch->program))
		return false;
	ret_measured->cpu_ns = process_stat_ns(&stat, PROCESS_STAT_UTIME) + process_stat_ns(&stat, PROCESS_STAT_STIME);
	ret_measured->nr_threads = process_stat_number(&stat, PROCESS_STAT_THREADS);
	return true;
}

static struct sky_watch *watch_of(struct sky_policies *policies, const struct sky_known *known)
{
	struct sky_watch *watch;

	for (uint32_t i = 0; i < policies->nr_watches; i++) {
		watch = &policies->watches[i];
		if (watch->pid == known->process.pid && sky_program_is(&watch->program, &known->program))
			return watch;
	}
	if (!array_grow(&policies->watches, policies->nr_watches, &policies->max_watches, sizeof(*watch), FIRST_ENTRIES, SKY_MAX_PROCESSES))
		return NULL;
	watch = &policies->watches[policies->nr_watches++];
	*watch = (struct sky_watch){ .pid = known->process.pid, .program = known->program };
	return watch;
}

static double value_of(enum sky_cause cause, const struct sky_watch *watch, const struct measured *measured, uint64_t now_ns)
{
	double load = 0;

	switch (cause) {
	case SKY_PROCESS_CPU: /* percent of one CPU, since the last time */
		return watch->at_ns ? 100.0 * ((double)measured->cpu_ns - (double)watch->cpu_ns) / (double)(now_ns - watch->at_ns) : 0;
	case SKY_PROCESS_THREADS:
		return (double)measured->nr_threads;
	case SKY_SYSTEM_LOAD:
		return getloadavg(&load, 1) == 1 ? load : 0;
	}
	return 0;
}

/* Notes a second; returns in how many of the last ones it was above. */
static uint32_t note(uint64_t bits[(SKY_MAX_PERIOD_S + 63) / 64], uint32_t period_s, bool is_above)
{
	uint64_t carry = is_above;
	uint32_t nr = 0;

	for (uint32_t i = 0; i < (SKY_MAX_PERIOD_S + 63) / 64; i++) {
		uint64_t out = bits[i] >> 63, left = period_s > 64 * i ? period_s - 64 * i : 0;

		bits[i] = bits[i] << 1 | carry;
		carry = out;
		nr += (uint32_t)__builtin_popcountll(left >= 64 ? bits[i] : bits[i] & ((UINT64_C(1) << left) - 1));
	}
	return nr;
}

/* True: a check is met; *ret_alarm says which, and by what. */
static bool is_alarmed(const struct sky_policy *policy, struct sky_watch *watch, struct sky_alarm *ret_alarm)
{
	struct measured measured;
	uint64_t now_ns = clock_ns(), hash = hash_bytes(policy->uuid, strlen(policy->uuid), 0);
	bool is_met = false;

	if (!measure(watch, &measured))
		return false;
	if (hash != watch->policy) /* what was above was so of other checks */
		memset(watch->above, 0, sizeof(watch->above));
	watch->policy = hash;
	for (uint32_t i = 0; i < policy->nr; i++) {
		const struct sky_check *check = &policy->checks[i];
		double value = value_of(check->cause, watch, &measured, now_ns);

		if (note(watch->above[i], check->period_s, value >= check->threshold) < check->count || is_met)
			continue;
		*ret_alarm = (struct sky_alarm){ .cause = check->cause,
						 .threshold = check->threshold,
						 .current = value,
						 .duration_s = DURATION_NS / NS_PER_S,
						 .is_off_cpu = check->is_off_cpu };
		is_met = true;
	}
	watch->cpu_ns = measured.cpu_ns;
	watch->at_ns = now_ns;
	return is_met;
}

/* Asks the server for a task, and begins it. */
static int begin(const struct sky_known *known, const struct sky_alarm *alarm, struct sky_tasks *tasks, struct sky_rpc *rpc,
		 struct diag *diag)
{
	CLEANUP(buffer_done) struct buffer message = BUFFER_INIT(MAX_MESSAGE_BYTES);
	struct reader answer;
	struct sky_command command;
	char id[SKY_ID_BYTES];
	int err;

	sky_write_alarm(&known->process.entity, alarm, &message);
	err = sky_rpc_call(rpc, SKY_TRIGGER, &message, diag);
	if (err)
		return err;
	answer = sky_rpc_message(rpc);
	while (sky_next_command(&answer, &command)) {
		if (sky_is_command(&command, "ContinuousProfilingReportTask") && sky_argument(&command, "TaskId", id, sizeof(id)))
			sky_tasks_begin(tasks, known, id, alarm->is_off_cpu, DURATION_NS);
	}
	return 0;
}

static void remove_ended(struct sky_policies *policies)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < policies->nr_watches; i++) {
		if (policies->watches[i].is_there)
			policies->watches[nr++] = policies->watches[i];
	}
	policies->nr_watches = nr;
}

int sky_policies_measure(struct sky_policies *policies, const struct sky_processes *processes, struct sky_tasks *tasks,
			 struct sky_rpc *rpc, struct diag *diag)
{
	int err = 0;

	for (uint32_t i = 0; i < policies->nr_watches; i++)
		policies->watches[i].is_there = false;
	for (uint32_t i = 0; i < processes->nr && !err; i++) {
		const struct sky_known *known = &processes->all[i];
		const struct sky_policy *policy = sky_policy_find(&policies->list, known->process.entity.service);
		struct sky_watch *watch = *known->process.id && policy && policy->nr ? watch_of(policies, known) : NULL;
		struct sky_alarm alarm;

		if (!watch)
			continue;
		watch->is_there = true;
		if (!is_alarmed(policy, watch, &alarm) || clock_ns() < watch->silent_until_ns)
			continue;
		err = begin(known, &alarm, tasks, rpc, diag);
		if (!err || err == -EPROTO) /* else it did not arrive, and is sent again */
			watch->silent_until_ns = clock_ns() + SILENCE_NS;
	}
	if (!err)
		remove_ended(policies);
	return err;
}
