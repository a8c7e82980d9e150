// SPDX-License-Identifier: Apache-2.0
#include "model/wait_kind.h"

#include <stdbool.h>
#include <string.h>

#include "abi/wait.h"
#include "base/cleanup.h"
#include "model/wait_rules.h"

/* From include/linux/sched.h; unchanged since Linux 4.14. */
#define STATE_STOPPED 0x0004
#define STATE_TRACED  0x0008
#define STATE_DEAD    0x0010
#define STATE_ZOMBIE  0x0020
#define STATE_PARKED  0x0040
#define STATE_FROZEN  0x8000 /* since 6.1 */

#define X(id, name, text) name,
static const char *const names[] = { WAIT_KIND_LIST(X) };
#undef X

/* The kind that the state alone determines; WAIT_KIND_COUNT: none. */
static enum wait_kind kind_of_state(uint16_t state)
{
	if (state & (STATE_STOPPED | STATE_TRACED))
		return WAIT_KIND_STOPPED;
	if (state & (STATE_DEAD | STATE_ZOMBIE))
		return WAIT_KIND_EXIT;
	if (state & STATE_FROZEN)
		return WAIT_KIND_FROZEN;
	return state & STATE_PARKED ? WAIT_KIND_KERNEL_THREAD : WAIT_KIND_COUNT;
}

/* The kind of the first function, leaf first, that has a rule of this strength. */
static enum wait_kind kind_of_stack(const struct wait_facts *facts, enum wait_rule_strength strength)
{
	const char *function;

	for (uint32_t i = 0; (function = facts->function_at(facts->functions, i)); i++) {
		const struct wait_rule *rule = wait_rule_of_function(function);

		if (rule && rule->strength == strength)
			return rule->kind;
	}
	return WAIT_KIND_COUNT;
}

enum wait_kind wait_kind_of(const struct wait_facts *facts)
{
	enum wait_kind kind = kind_of_state(facts->state);

	if (kind == WAIT_KIND_COUNT && facts->state == SONDE_WAIT_PREEMPTED) /* it did not begin the wait yet */
		return wait_rule_of_syscall(facts->syscall) == WAIT_KIND_YIELD ? WAIT_KIND_YIELD : WAIT_KIND_PREEMPTED;
	if (kind == WAIT_KIND_COUNT)
		kind = kind_of_stack(facts, WAIT_RULE_SURE);
	/* the program only touched memory: to it, this is not a disk access */
	if (kind == WAIT_KIND_DISK && kind_of_stack(facts, WAIT_RULE_AROUND) == WAIT_KIND_PAGE_FAULT)
		return WAIT_KIND_PAGE_FAULT;
	if (kind == WAIT_KIND_COUNT)
		kind = wait_rule_of_syscall(facts->syscall);
	if (kind == WAIT_KIND_COUNT)
		kind = kind_of_stack(facts, WAIT_RULE_AROUND);
	if (kind == WAIT_KIND_COUNT)
		kind = kind_of_stack(facts, WAIT_RULE_GUESS);
	if (kind == WAIT_KIND_COUNT)
		kind = kind_of_stack(facts, WAIT_RULE_LAST);
	return kind == WAIT_KIND_COUNT ? WAIT_KIND_OTHER : kind;
}

const char *wait_kind_name(enum wait_kind kind)
{
	return names[kind];
}

enum wait_kind wait_kind_by_name(const char *name, size_t size)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (size == strlen(names[i]) && !memcmp(name, names[i], size))
			return (enum wait_kind)i;
	}
	return WAIT_KIND_COUNT;
}
