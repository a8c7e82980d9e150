/* SPDX-License-Identifier: Apache-2.0 */
/* file_budget: limits the CPU time for reading each user's files in one run, and remembers which file systems hang. One thread. */
#pragma once
#include "base/diag.h"
#include "parse/file_owner.h"

struct file_budget_limits {
	uint64_t owner_ns; /* of one user, or of one device that any user may serve */
	uint64_t total_ns; /* of all of them: a user may have many uids */
};

struct file_budget;
struct file_budget *file_budget_new(struct file_budget_limits limits); /* NULL: no memory */
void file_budget_free(struct file_budget *budget); /* takes NULL */
/* CPU time left for a file; UINT64_MAX if it is trusted. 0: none; `diag` is set once for each owner. */
uint64_t file_budget_left(struct file_budget *budget, const struct file_owner *owner, struct diag *diag);
void file_budget_spend(struct file_budget *budget, const struct file_owner *owner, uint64_t cpu_ns);
/* The owner's file system did not answer: it is not used again, nor is any other that a user may have mounted. */
void file_budget_hang(struct file_budget *budget, const struct file_owner *owner);
