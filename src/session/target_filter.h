/* SPDX-License-Identifier: Apache-2.0 */
/* target_filter: turns the requested targets (processes, threads, a name, a cgroup) into the kernel side's filter. The same for every
 * measurement. */
#pragma once
#include "abi/config.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "engine/target.h"
#include "model/account.h"

struct target_filter { /* borrowed for the call */
	const uint32_t *tgids, *tids;
	uint32_t nr_tgids, nr_tids;
	const char *comm, *cgroup; /* NULL: any */
	bool has_command;
};

/* Finds the requested processes or threads, by their ids in our own pid namespace. 0; -EINVAL; or as targets_of_tgids. */
MUST_CHECK int target_filter_find(const struct target_filter *filter, struct diag *diag, struct targets *ret_targets);
/* Fills in the filters of `config`, and the requested processes or threads. 0 or a negative errno; -EINVAL is the caller's mistake,
 * -EOPNOTSUPP means that this kernel or machine cannot do it. */
MUST_CHECK int target_filter_resolve(const struct target_filter *filter, struct account *account, struct diag *diag,
				     struct sonde_config *config, struct targets *ret_targets);
