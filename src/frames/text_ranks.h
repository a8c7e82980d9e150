/* SPDX-License-Identifier: Apache-2.0 */
/* text_ranks: maps texts to numbers in the order of strcmp(3), for sorting. Computing the ranks looks at each text some twenty times; after
 * that, comparing what has these texts compares numbers only. Texts of an untrusted file may be long, alike and shared by everything. */
#pragma once
#include "model/profile.h"

/* By string of the profile: the rank of the text, or of what follows its last slash (path_base). Equal texts have equal ranks. The caller
 * frees the list; NULL: no memory. */
uint32_t *text_ranks(const struct profile *profile, bool of_bases);
/* The rank of a text that may be missing from the profile. */
uint32_t text_rank_of(const struct profile *profile, const uint32_t *ranks, const char *text);
