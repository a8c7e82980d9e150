// SPDX-License-Identifier: Apache-2.0
#include "proxy/proxy_budget.h"

#include <string.h>
#include <sys/sysmacros.h>

#include "base/caller.h"
#include "base/clock.h"
#include "base/order.h"
#include "proxy/credentials.h"

#define TOTAL_NS (PROXY_TOTAL_MS * NS_PER_MS)
#define LEAST_NS (2 * NS_PER_MS)
#define FREE_NS NS_PER_MS     /* of each answer: reading from memory takes less, even on a busy machine */
#define GIVEN_BACK 100        /* one hundredth of the time */
#define MAX_OF_USER 4         /* timeouts; then nothing of the user is requested */
#define MIB_SHIFT 20

void proxy_budget_init(struct proxy_budget *budget, struct trusted *trusted)
{
	const struct proxy_allowance whole = { .left_ns = TOTAL_NS, .given_ns = clock_ns() };

	*budget = (struct proxy_budget){ .trusted = trusted, .strangers = whole, .ours = whole };
}

void proxy_budget_done(struct proxy_budget *budget)
{
	u64_map_done(&budget->copied_mib);
}

static uint64_t left_ns(struct proxy_allowance *allowance)
{
	uint64_t now = clock_ns();

	allowance->left_ns += (now - allowance->given_ns) / GIVEN_BACK;
	allowance->given_ns = now;
	if (allowance->left_ns > TOTAL_NS)
		allowance->left_ns = TOTAL_NS;
	return allowance->left_ns;
}

/* The user that a request is charged to. 0: root, our user, or a process that has ended. */
static uint32_t credentials_of(const struct proxy_budget *budget, const struct proxy_request *request)
{
	uint32_t uid = request->tgid ? trusted_uid(budget->trusted, request->tgid) : 0;

	return uid == CREDENTIALS_GONE || caller_is_us(uid) ? 0 : uid;
}

uint64_t proxy_budget_wait_ns(struct proxy_budget *budget, const struct proxy_request *request)
{
	uint64_t max = PROXY_DEADLINE_MS * NS_PER_MS, left = left_ns(&budget->strangers), ours = left_ns(&budget->ours);

	if ((left < max || ours < max) && !credentials_of(budget, request)) /* else neither allowance limits the wait */
		left = ours;
	return left > max ? max : left > LEAST_NS ? left : LEAST_NS;
}

/* --- what is not requested again ------------------------------------------------------------------------------------------------------ */

/* Does the device identify what timed out? A disk answers in the end: a timeout on one is recorded for the process, or everybody's files on
 * it would go unread. */
static bool is_of_device(const struct proxy_request *request)
{
	return request->kind == PROXY_OPEN && !major(request->device);
}

/* Whoever wrote the path, or mounted something there, need not be the process's user. */
static bool is_of_name(uint32_t kind)
{
	return kind == PROXY_OPEN_DEBUG || kind == PROXY_OPEN_OWN || kind == PROXY_CONNECT_OWN;
}

static bool is_alike(const struct proxy_culprit *culprit, const struct proxy_request *request)
{
	if (is_of_device(request) || culprit->device)
		return is_of_device(request) && culprit->device == request->device;
	return is_of_name(culprit->kind) == is_of_name(request->kind) && request->tgid && culprit->tgid == request->tgid;
}

bool proxy_budget_allows(struct proxy_budget *budget, const struct proxy_request *request)
{
	uint32_t nr = budget->counts.nr_timed_out, nr_of_user = 0, uid = nr ? credentials_of(budget, request) : 0;
	bool is_known = false, has_many = nr >= PROXY_BUDGET_MAX_CULPRITS;

	for (uint32_t i = 0; i < nr && i < PROXY_BUDGET_MAX_CULPRITS; i++) {
		const struct proxy_culprit *culprit = &budget->culprits[i];

		nr_of_user += uid && culprit->uid == uid && !is_of_name(culprit->kind);
		is_known |= is_alike(culprit, request);
	}
	if (!is_known && nr_of_user < MAX_OF_USER && !(has_many && uid && left_ns(&budget->strangers) < LEAST_NS))
		return true;
	budget->counts.nr_refused++;
	return false;
}

static void note_culprit(struct proxy_budget *budget, const struct proxy_request *request, uint32_t uid)
{
	budget->culprits[budget->counts.nr_timed_out++ % PROXY_BUDGET_MAX_CULPRITS] = (struct proxy_culprit){
		.kind = request->kind, .tgid = request->tgid, .uid = uid, .device = is_of_device(request) ? request->device : 0
	};
}

/* A slow answer about root's processes may come from a disk, and is not charged. A timeout is, and a file that users serve. */
void proxy_budget_charge(struct proxy_budget *budget, const struct proxy_request *request, uint64_t waited_ns,
			 const struct proxy_answer *answer)
{
	uint64_t cost_ns = waited_ns > FREE_NS ? waited_ns - FREE_NS : 0;
	uint32_t uid = cost_ns || !answer ? credentials_of(budget, request) : 0;
	struct proxy_allowance *allowance = uid ? &budget->strangers : &budget->ours;
	bool is_charged = uid || !answer || answer->file_system == FILE_SYSTEM_FOREIGN;

	if (is_charged)
		allowance->left_ns -= cost_ns < allowance->left_ns ? cost_ns : allowance->left_ns;
	if (is_charged && waited_ns > budget->longest_ns) {
		budget->longest_ns = waited_ns;
		budget->counts.tgid = request->tgid;
		budget->counts.uid = uid;
	}
	if (!answer)
		note_culprit(budget, request, uid);
}

/* --- copies --------------------------------------------------------------------------------------------------------------------------- */

uint64_t proxy_budget_copies_left(const struct proxy_budget *budget, uint32_t uid)
{
	uint64_t max = PROXY_COPIES_MAX >> MIB_SHIFT;
	const uint32_t *mib = u64_map_find(&budget->copied_mib, uid);

	return smaller(max - smaller(max, mib ? *mib : 0), 2 * max - smaller(2 * max, budget->all_copied_mib)) << MIB_SHIFT;
}

void proxy_budget_copied(struct proxy_budget *budget, uint32_t uid, uint64_t bytes)
{
	uint32_t nr = (uint32_t)((bytes + (1u << MIB_SHIFT) - 1) >> MIB_SHIFT), *mib = u64_map_find(&budget->copied_mib, uid);

	budget->all_copied_mib += nr;
	if (mib)
		*mib += nr;
	else if (u64_map_add(&budget->copied_mib, uid, nr)) /* no memory: no more copies */
		budget->all_copied_mib = UINT64_MAX / 2;
}
