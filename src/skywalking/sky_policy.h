/* SPDX-License-Identifier: Apache-2.0 */
/* sky_policy: what SkyWalking's server wants to be watched: thresholds of services. One thread. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"

#define SKY_MAX_POLICIES 1024 /* services that have any: as many as there may be processes */
#define SKY_MAX_CHECKS	 8   /* of a service */
#define SKY_MAX_PERIOD_S 300

/* What is compared; the numbers are the protocol's (ContinuousProfilingCauseType). */
enum sky_cause { SKY_PROCESS_CPU, SKY_PROCESS_THREADS, SKY_SYSTEM_LOAD };

struct sky_check {
	enum sky_cause cause;
	double threshold;          /* not a number: nothing is above it */
	uint32_t period_s, count;  /* above it in `count` of the last `period_s` seconds */
	bool is_off_cpu;
};

struct sky_policy {
	char service[128], uuid[160]; /* uuid: 128 digits in OAP */
	struct sky_check checks[SKY_MAX_CHECKS];
	uint32_t nr;
	bool is_wanted;            /* since the last sky_policy_keep_wanted */
};

struct sky_policy_list {
	struct sky_policy *all;
	uint32_t nr, max;
	/* Called for each part of a policy that cannot be met; NULL: nobody is told. */
	void (*left_out)(const char *service, const char *what);
};

void sky_policy_list_done(struct sky_policy_list *list);
/* Borrowed until the next reading. NULL: the service has none. */
const struct sky_policy *sky_policy_find(const struct sky_policy_list *list, const char *service);
/* Says that the service is still there. Returns the id of its policy, "" if it has none; borrowed as above. */
const char *sky_policy_want(struct sky_policy_list *list, const char *service);
/* Removes the policies of services that are not wanted any more. */
void sky_policy_keep_wanted(struct sky_policy_list *list);
/* Reads policies, JSON: those with another id take the place of the service's old one. 0, or -EBADMSG with a line: those before the
 * fault are taken. Policies that find no room are left out. */
MUST_CHECK int sky_policy_read(struct sky_policy_list *list, const char *json, size_t size, struct diag *diag);
