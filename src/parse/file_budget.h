/* SPDX-License-Identifier: Apache-2.0 */
/* file_budget: how much CPU time the files of each user may take to be read in one run, and which file systems have left us waiting. One
 * thread. */
#pragma once
#include "base/diag.h"
#include "parse/file_owner.h"

struct file_budget_limits {
	uint64_t owner_ns; /* of one user, or one device that any user may serve */
	uint64_t total_ns; /* of all of them: a user may have many names */
};

struct file_budget;
struct file_budget *file_budget_new(struct file_budget_limits limits); /* NULL: no memory */
void file_budget_free(struct file_budget *budget); /* takes NULL */
/* What a file may still take, UINT64_MAX for one that is trusted. 0: nothing; `diag` tells, once for each owner. */
uint64_t file_budget_left(struct file_budget *budget, const struct file_owner *owner, struct diag *diag);
void file_budget_spend(struct file_budget *budget, const struct file_owner *owner, uint64_t cpu_ns);
/* Its file system did not answer, and is not asked again; nor is any other that a user may have mounted. */
void file_budget_hang(struct file_budget *budget, const struct file_owner *owner);
