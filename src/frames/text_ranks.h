/* SPDX-License-Identifier: Apache-2.0 */
/* text_ranks: texts as numbers in the order of strcmp(3), for sorting by them. Each text is looked at some twenty times, and not at each
 * comparison of what bears it: a stranger's texts may be long, alike, and borne by all. */
#pragma once
#include "model/profile.h"

/* By string of the profile: its rank, or that of what stands behind its last slash (path_base). Equal texts have equal ranks. The caller
 * frees the list; NULL: no memory. */
uint32_t *text_ranks(const struct profile *profile, bool of_bases);
/* The rank that a text has among them that the profile may not have. */
uint32_t text_rank_of(const struct profile *profile, const uint32_t *ranks, const char *text);
