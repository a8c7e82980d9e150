/* SPDX-License-Identifier: Apache-2.0 */
/* label_table: the label sets that the kernel side sent, by hash, and their form in a profile. The texts are untrusted. One thread. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "abi/record.h"
#include "base/cleanup.h"
#include "model/profile.h"
#include "stacks/stack_owner.h"
#include "stacks/stack_walker.h"

#define LABEL_TABLE_LEFT_KEY "labels_left_out" /* a number: how many more labels the thread had */

/* A context's: trace, span, and as many attributes as other labels; those with the least numbers are kept. */
#define LABEL_TABLE_MAX (2 * SONDE_MAX_LABELS + 2)

struct label_table;
struct label_table *label_table_new(size_t max_bytes); /* of sets; more are lost, as if they had not come. NULL: no memory */
void label_table_free(struct label_table *table); /* takes NULL */
/* Takes a record as the sampler delivers it, followed by its labels; copies it. If the hash is known, its labels stay. `walker` touches
 * memory that could not be read. 0; -ENOMEM; -EBADMSG: more labels than a record can have. */
MUST_CHECK int label_table_record(struct label_table *table, const struct sonde_labels_record *record, const struct stack_walker *walker);
/* Tries again the attributes of contexts whose names were not known; call it from time to time. 0 or -ENOMEM. */
MUST_CHECK int label_table_ask_again(struct label_table *table, const struct stack_walker *walker);
/* Copies the set with that hash from another table, which must have it. 0 or -ENOMEM. */
MUST_CHECK int label_table_copy(struct label_table *table, const struct label_table *from, uint64_t hash);
size_t label_table_bytes(const struct label_table *table); /* of all sets */
/* Borrowed until the next record; NULL: the hash is not known. */
const struct stack_owner *label_table_owner(const struct label_table *table, uint64_t hash);
/* Returns the number in `profile` of the labels with that hash, sorted by key. PROFILE_NO_LABELS: the hash is not known; PROFILE_NONE: no
 * memory. */
uint32_t label_table_labels(const struct label_table *table, uint64_t hash, struct profile *profile);
