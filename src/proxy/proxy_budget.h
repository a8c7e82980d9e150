/* SPDX-License-Identifier: Apache-2.0 */
/* proxy_budget: how long to wait for a proxy, and for whom, and how much it may copy (proxy/proxy.h has the rules). One thread. */
#pragma once
#include <stdbool.h>

#include "base/u64_map.h"
#include "proxy/proxy.h"
#include "proxy/proxy_message.h"
#include "proxy/trusted.h"

#define PROXY_BUDGET_MAX_CULPRITS 64

/* What timed out. */
struct proxy_culprit {
	uint32_t kind; /* enum proxy_kind */
	uint32_t tgid, uid;
	uint64_t device; /* 0: none */
};

struct proxy_allowance {
	uint64_t left_ns, given_ns;    /* what is left; and when that was last updated */
};

struct proxy_budget {
	struct trusted *trusted;
	/* For other users' processes; and for those of root and our user: no other user can spend that one. */
	struct proxy_allowance strangers, ours;
	uint64_t longest_ns;           /* longest single wait: decides whom the counts show */
	struct proxy_culprit culprits[PROXY_BUDGET_MAX_CULPRITS]; /* the most recent */
	struct proxy_counts counts;
	struct u64_map copied_mib;     /* by uid */
	uint64_t all_copied_mib;
};

void proxy_budget_init(struct proxy_budget *budget, struct trusted *trusted); /* `trusted` finds the user of a process: borrowed */
void proxy_budget_done(struct proxy_budget *budget);
/* May this request be made? Counts a refusal. */
bool proxy_budget_allows(struct proxy_budget *budget, const struct proxy_request *request);
/* How long to wait for the answer. */
uint64_t proxy_budget_wait_ns(struct proxy_budget *budget, const struct proxy_request *request);
/* Charges the time that a request took; `answer` is NULL after a timeout. */
void proxy_budget_charge(struct proxy_budget *budget, const struct proxy_request *request, uint64_t waited_ns,
			 const struct proxy_answer *answer);
/* How many bytes of the user's files may still be copied; and records a copy. */
uint64_t proxy_budget_copies_left(const struct proxy_budget *budget, uint32_t uid);
void proxy_budget_copied(struct proxy_budget *budget, uint32_t uid, uint64_t bytes);
