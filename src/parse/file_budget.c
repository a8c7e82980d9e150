// SPDX-License-Identifier: Apache-2.0
#include "parse/file_budget.h"

#include <errno.h>
#include <inttypes.h>

#include "base/clock.h"

#define MAX_OWNERS 64 /* further ones share the last entry */
#define MAX_HUNG   8  /* devices; after that all file systems that are not local count as hung */

struct owner_cost {
	struct file_owner owner;
	uint64_t cpu_ns;
	bool is_told; /* reported that it is spent */
};

struct file_budget {
	struct file_budget_limits limits;
	struct owner_cost costs[MAX_OWNERS];
	uint32_t nr_costs, nr_hung;
	uint64_t total_ns;
	uint64_t hung[MAX_HUNG]; /* devices */
	bool has_hung_users;     /* one that a user may have mounted */
	bool has_reported_hung;
};

struct file_budget *file_budget_new(struct file_budget_limits limits)
{
	struct file_budget *budget = calloc(1, sizeof(*budget));

	if (budget)
		budget->limits = limits;
	return budget;
}

void file_budget_free(struct file_budget *budget)
{
	free(budget);
}

static struct owner_cost *cost_of(struct file_budget *budget, const struct file_owner *owner)
{
	uint32_t i = 0;

	while (i < budget->nr_costs && !file_owner_is_same(&budget->costs[i].owner, owner))
		i++;
	if (i == MAX_OWNERS)
		return &budget->costs[MAX_OWNERS - 1];
	if (i == budget->nr_costs) {
		budget->costs[i] = (struct owner_cost){ .owner = *owner };
		budget->nr_costs++;
	}
	return &budget->costs[i];
}

static bool is_hung(const struct file_budget *budget, const struct file_owner *owner)
{
	bool is_hung = owner->is_users ? budget->has_hung_users : budget->nr_hung == MAX_HUNG;

	for (uint32_t i = 0; i < budget->nr_hung; i++)
		is_hung |= budget->hung[i] == owner->device;
	return is_hung && !owner->is_local;
}

uint64_t file_budget_left(struct file_budget *budget, const struct file_owner *owner, struct diag *diag)
{
	struct owner_cost *cost;
	uint64_t left;

	if (is_hung(budget, owner)) {
		if (!budget->has_reported_hung)
			diag_errno(diag, EDQUOT, "its file system does not answer");
		budget->has_reported_hung = true;
		return 0;
	}
	if (owner->is_trusted)
		return UINT64_MAX;
	cost = cost_of(budget, owner);
	left = cost->cpu_ns < budget->limits.owner_ns ? budget->limits.owner_ns - cost->cpu_ns : 0;
	if (left > budget->limits.total_ns - budget->total_ns)
		left = budget->limits.total_ns - budget->total_ns;
	if (!left && !cost->is_told) {
		cost->is_told = true;
		diag_errno(diag, EDQUOT,
			   "reading files of user %" PRIu32
			   " has taken %.1f s, and of all users %.1f s: this one and the user's others are not read",
			   owner->uid, (double)cost->cpu_ns / (double)NS_PER_S, (double)budget->total_ns / (double)NS_PER_S);
	}
	return left;
}

void file_budget_spend(struct file_budget *budget, const struct file_owner *owner, uint64_t cpu_ns)
{
	uint64_t left = budget->limits.total_ns - budget->total_ns;

	if (owner->is_trusted)
		return;
	cost_of(budget, owner)->cpu_ns += cpu_ns;
	budget->total_ns += cpu_ns < left ? cpu_ns : left;
}

void file_budget_hang(struct file_budget *budget, const struct file_owner *owner)
{
	if (budget->nr_hung < MAX_HUNG)
		budget->hung[budget->nr_hung++] = owner->device;
	budget->has_hung_users |= owner->is_users;
}
