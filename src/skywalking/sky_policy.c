// SPDX-License-Identifier: Apache-2.0
#include "skywalking/sky_policy.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "codec/json_read.h"

#define FIRST_POLICIES 16
#define MAX_POLICY_TEXT_BYTES 256
#define DECIMALS       6

void sky_policy_list_done(struct sky_policy_list *list)
{
	free(list->all);
	*list = (struct sky_policy_list){ 0 };
}

static struct sky_policy *find(const struct sky_policy_list *list, const char *service)
{
	for (uint32_t i = 0; i < list->nr; i++) {
		if (!strcmp(list->all[i].service, service))
			return &list->all[i];
	}
	return NULL;
}

const struct sky_policy *sky_policy_find(const struct sky_policy_list *list, const char *service)
{
	return find(list, service);
}

const char *sky_policy_want(struct sky_policy_list *list, const char *service)
{
	struct sky_policy *policy = find(list, service);

	if (!policy)
		return "";
	policy->is_wanted = true;
	return policy->uuid;
}

void sky_policy_keep_wanted(struct sky_policy_list *list)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < list->nr; i++) {
		if (list->all[i].is_wanted)
			list->all[nr++] = list->all[i];
	}
	list->nr = nr;
	for (uint32_t i = 0; i < nr; i++)
		list->all[i].is_wanted = false;
}

static bool is_known(const struct sky_policy_list *list, const struct sky_policy *policy)
{
	const struct sky_policy *old = find(list, policy->service);

	return old && !strcmp(old->uuid, policy->uuid);
}

struct reading {
	struct json_reader r;
	struct buffer key, text;
	const struct sky_policy_list *list;
};

static void reading_done(struct reading *reading)
{
	buffer_done(&reading->key);
	buffer_done(&reading->text);
}

/* A number in a text. */
static double threshold_of(const struct buffer *text)
{
	struct json_reader r = json_reader_of(text->data ?: "", text->size);
	int64_t number = json_read_decimal(&r, DECIMALS);

	json_end(&r);
	return r.bad ? (double)NAN : (double)number / 1e6;
}

/* The largest one in place of those that are larger: it is no possible check. */
static uint32_t read_u32(struct json_reader *r)
{
	uint64_t number = json_read_u64(r);

	return number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
}

static void read_check(struct reading *reading, struct sky_check *check)
{
	if (!json_enter(&reading->r, '{'))
		return;
	while (json_next_key(&reading->r, &reading->key)) {
		if (!strcmp(reading->key.data, "Threshold")) {
			json_read_text(&reading->r, &reading->text);
			check->threshold = threshold_of(&reading->text);
		} else if (!strcmp(reading->key.data, "Period")) {
			check->period_s = read_u32(&reading->r);
		} else if (!strcmp(reading->key.data, "Count")) {
			check->count = read_u32(&reading->r);
		} else {
			json_skip(&reading->r);
		}
	}
}

static bool is_known_cause(const char *name, enum sky_cause *ret_cause)
{
	static const char *const names[] = { [SKY_PROCESS_CPU] = "PROCESS_CPU",
					     [SKY_PROCESS_THREADS] = "PROCESS_THREAD_COUNT",
					     [SKY_SYSTEM_LOAD] = "SYSTEM_LOAD" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (!strcmp(names[i], name)) {
			*ret_cause = (enum sky_cause)i;
			return true;
		}
	}
	return false;
}

static bool is_possible(const struct sky_check *check)
{
	return check->count && check->count <= check->period_s && check->period_s <= SKY_MAX_PERIOD_S;
}

static void leave_out(const struct sky_policy_list *list, const struct sky_policy *policy, const char *what)
{
	if (list->left_out)
		list->left_out(policy->service, what);
}

/* The checks of a target: { "PROCESS_CPU": { ... } }. */
static void read_target(struct reading *reading, struct sky_policy *policy, bool is_off_cpu)
{
	if (!json_enter(&reading->r, '{'))
		return;
	while (json_next_key(&reading->r, &reading->key)) {
		struct sky_check check = { .is_off_cpu = is_off_cpu };
		char name[40];
		bool is_known;

		snprintf(name, sizeof(name), "%s", reading->key.data);
		is_known = is_known_cause(name, &check.cause);
		read_check(reading, &check);
		if (!is_known || !is_possible(&check) || policy->nr == SKY_MAX_CHECKS)
			leave_out(reading->list, policy, name);
		else
			policy->checks[policy->nr++] = check;
	}
}

static void read_targets(struct reading *reading, struct sky_policy *policy)
{
	if (!json_enter(&reading->r, '{'))
		return;
	while (json_next_key(&reading->r, &reading->key)) {
		if (!strcmp(reading->key.data, "ON_CPU") || !strcmp(reading->key.data, "OFF_CPU")) {
			read_target(reading, policy, reading->key.data[1] == 'F');
		} else {
			leave_out(reading->list, policy, reading->key.data);
			json_skip(&reading->r);
		}
	}
}

static void read_text(struct reading *reading, char *room, size_t room_bytes)
{
	json_read_text(&reading->r, &reading->text);
	snprintf(room, room_bytes, "%s", reading->text.data ?: "");
}

/* The service's name may come behind its policies: those are kept for later. */
static void read_policy(struct reading *reading, struct sky_policy *policy)
{
	struct json_reader profiling = { 0 }, end;

	if (!json_enter(&reading->r, '{'))
		return;
	while (json_next_key(&reading->r, &reading->key)) {
		if (!strcmp(reading->key.data, "ServiceName")) {
			read_text(reading, policy->service, sizeof(policy->service));
		} else if (!strcmp(reading->key.data, "UUID")) {
			read_text(reading, policy->uuid, sizeof(policy->uuid));
		} else {
			if (!strcmp(reading->key.data, "Profiling"))
				profiling = reading->r;
			json_skip(&reading->r);
		}
	}
	end = reading->r;
	if (!profiling.pos || json_peek(&profiling) != '{' || end.bad || is_known(reading->list, policy))
		return;
	reading->r = profiling;
	read_targets(reading, policy);
	if (!reading->r.bad)
		reading->r = end;
}

static void put(struct sky_policy_list *list, const struct sky_policy *policy)
{
	struct sky_policy *old = find(list, policy->service);

	if (is_known(list, policy))
		return;
	if (!old) {
		if (!array_grow(&list->all, list->nr, &list->max, sizeof(*list->all), FIRST_POLICIES, SKY_MAX_POLICIES)) {
			leave_out(list, policy, "all of it, as there is no room");
			return;
		}
		old = &list->all[list->nr++];
	}
	*old = *policy;
}

int sky_policy_read(struct sky_policy_list *list, const char *json, size_t size, struct diag *diag)
{
	CLEANUP(reading_done) struct reading reading = { .r = json_reader_of(json, size),
							 .key = BUFFER_INIT(MAX_POLICY_TEXT_BYTES),
							 .text = BUFFER_INIT(MAX_POLICY_TEXT_BYTES),
							 .list = list };

	if (json_enter(&reading.r, '[')) {
		while (json_next(&reading.r)) {
			struct sky_policy policy = { .is_wanted = true };

			read_policy(&reading, &policy);
			if (!reading.r.bad && *policy.service)
				put(list, &policy);
		}
	}
	if (reading.r.bad)
		return diag_errno(diag, EBADMSG, "the server's policies cannot be read: %s", reading.r.bad);
	return 0;
}
