/* SPDX-License-Identifier: Apache-2.0 */
/* proxy_budget: how long, and for whom, a proxy is waited for, and how much it may copy (proxy/proxy.h says the rules). One thread. */
#pragma once
#include <stdbool.h>

#include "base/u64_map.h"
#include "proxy/proxy.h"
#include "proxy/proxy_message.h"
#include "proxy/trusted.h"

#define PROXY_BUDGET_MAX_CULPRITS 64

/* What was waited for in vain. */
struct proxy_culprit {
	uint32_t kind; /* enum proxy_kind */
	uint32_t tgid, uid;
	uint64_t device; /* 0: none */
};

struct proxy_allowance {
	uint64_t left_ns, given_ns;    /* what is left; and when that was last counted */
};

struct proxy_budget {
	struct trusted *trusted;
	struct proxy_allowance strangers,
	    ours;		       /* of waiting for strangers; for root's processes, and our user's: nobody can spend theirs */
	uint64_t longest_ns;           /* that was waited for at a time: by it somebody is named */
	struct proxy_culprit culprits[PROXY_BUDGET_MAX_CULPRITS]; /* the last of them */
	struct proxy_counts counts;
	struct u64_map copied_mib;     /* by uid */
	uint64_t all_copied_mib;
};

void proxy_budget_init(struct proxy_budget *budget, struct trusted *trusted); /* by which it is told whose processes are: borrowed */
void proxy_budget_done(struct proxy_budget *budget);
/* May it be asked? Counts when not. */
bool proxy_budget_allows(struct proxy_budget *budget, const struct proxy_request *request);
/* How long the answer may take. */
uint64_t proxy_budget_wait_ns(struct proxy_budget *budget, const struct proxy_request *request);
/* It took so long, for an answer or in vain (NULL). */
void proxy_budget_charge(struct proxy_budget *budget, const struct proxy_request *request, uint64_t waited_ns,
			 const struct proxy_answer *answer);
/* How many bytes of the user's files may be copied; and that some were. */
uint64_t proxy_budget_copies_left(const struct proxy_budget *budget, uint32_t uid);
void proxy_budget_copied(struct proxy_budget *budget, uint32_t uid, uint64_t bytes);
