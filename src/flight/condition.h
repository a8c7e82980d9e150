/* SPDX-License-Identifier: Apache-2.0 */
/* condition: the half of a trigger that is a number above a limit: read once a second, and its mean over the trigger's time. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "flight/trigger.h"

struct condition;
/* Borrows the trigger. 0; -EOPNOTSUPP with a line: this kernel does not have what it reads. */
MUST_CHECK int condition_new(const struct trigger *trigger, struct diag *diag, struct condition **ret_condition);
void condition_free(struct condition *condition); /* takes NULL */
/* Once a second. True: the condition holds since now, and *ret_value is the mean; not before it did not hold for a while does it fire
 * again. What cannot be read is counted, and said once until it can. */
bool condition_look(struct condition *condition, double *ret_value);
uint64_t condition_nr_unread(const struct condition *condition);
