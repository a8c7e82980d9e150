/* SPDX-License-Identifier: Apache-2.0 */
/* sky_policies: SkyWalking's continuous profiling: thresholds of services, which begin tasks by themselves. One thread. */
#pragma once
#include "skywalking/sky_policy.h"
#include "skywalking/sky_processes.h"
#include "skywalking/sky_rpc.h"
#include "skywalking/sky_tasks.h"

struct sky_watch {                 /* a process of a service with a policy */
	uint32_t pid;
	struct sky_program program;
	uint64_t cpu_ns, at_ns;    /* of the last measurement */
	uint64_t silent_until_ns;
	uint64_t policy;           /* hash of the id of the policy that `above` belongs to */
	/* By check, one bit a second: was it above? The newest is bit 0 of the first word. */
	uint64_t above[SKY_MAX_CHECKS][(SKY_MAX_PERIOD_S + 63) / 64];
	bool is_there;
};

struct sky_policies {
	struct sky_policy_list list;
	struct sky_watch *watches;
	uint32_t nr_watches, max_watches;
};

void sky_policies_done(struct sky_policies *policies);
/* Asks for the policies of all services that were reported. */
MUST_CHECK int sky_policies_query(struct sky_policies *policies, const struct sky_processes *processes, struct sky_rpc *rpc,
				  struct diag *diag);
/* Once a second: measures, and begins the tasks of what is above its threshold. */
MUST_CHECK int sky_policies_measure(struct sky_policies *policies, const struct sky_processes *processes, struct sky_tasks *tasks,
				    struct sky_rpc *rpc, struct diag *diag);
